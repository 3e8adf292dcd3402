"""Values of the page on thresholds: models tested on another corpus, and stopped before they knew every class."""

from rtx_core.report import statistics
from rtx_core.report.evidence import badge
from rtx_core.report.values import Gap, Space
from study import paper
from study.values.common import task

CLASSES = ("business", "film", "product")


def moved(of: str) -> Space:
    """Baseline minus Recurrent on the corpus they were not trained on; lists have an entry a run."""
    measured = paper.measurements("transfer", of)
    both = {name: [m for m in measured if m["model"] == name] for name in ("baseline", "recurrent")}
    areas = {name: [statistics.auc(m) for m in found] for name, found in both.items()}
    space = {
        "difference": Gap(statistics.difference(*both.values()), badge(both)),
        "accuracies": [m["test"]["accuracy"] for m in measured],
        "matched": [statistics.matched_accuracy(m) for m in measured],
        "aucs": sum(areas.values(), []),
        **{name: {"auc": sum(found) / len(found)} for name, found in areas.items()},
    }
    if len(areas["baseline"]) > 1:
        space["auc_p"] = statistics.over_seeds(*areas.values())[3]
    return Space(space)


def answers(name: str) -> Space:
    """By model of the first seed: how many test texts it gives each class."""
    found = {}
    for model in ("baseline", "recurrent"):
        confusion = getattr(task(name), model).records[0]["test"]["confusion"]  # rows: truth, columns: answers
        found[model] = {"given": dict(zip(CLASSES, map(sum, zip(*confusion))))}
    return Space(found)


DOMAINS, FILMS = "multi-domain-trainrows5000-epochs1", "multi-domain-imdb-trainrows5000-epochs1"
VALUES = {
    "transfer": lambda: Space(
        {"to_yelp": moved("sst2-10pct-to-yelp"), "to_sst2": moved("yelp-trainrows10000-epochs1-to-sst2")}
    ),
    "domains_answers": lambda: answers(DOMAINS),
    "domains_imdb_answers": lambda: answers(FILMS),
    "domain_steps": lambda: task(DOMAINS).recurrent.records[0]["history"][-1]["step"],
}
