"""Values of the three domains: which classes a model ever answers, and how many of a class it finds."""

from rtx_core import records
from rtx_core.report.values import Space

CLASSES = ("business", "film", "product")
NAMES = {"domains": "multi-domain-trainrows5000-epochs1", "domains_imdb": "multi-domain-imdb-trainrows5000-epochs1"}


def answers(name: str) -> Space:
    """By model, seed 0: `given` answers of each class on the test set, `found` the share recognized."""
    found = {}
    for model in ("baseline", "recurrent"):
        confusion = records.find(name, model, 0)["test"]["confusion"]  # rows: truth, columns: answers
        given = {each: sum(row[n] for row in confusion) for n, each in enumerate(CLASSES)}
        share = {each: confusion[n][n] / sum(confusion[n]) for n, each in enumerate(CLASSES)}
        found[model] = {"given": given, "found": share}
    return Space(found | {"of_each": sum(confusion[0])})


VALUES = {f"{key}_answers": lambda name=name: answers(name) for key, name in NAMES.items()}
VALUES["domain_steps"] = lambda: records.find(NAMES["domains"], "recurrent", 0)["history"][-1]["step"]
