"""What the study is made of: its protocol and what the runs cost (`paper_cost.shakespeare.hours`), counts of the
data sets (`texts.sst2_seeded_128.test.inside`), and how many papers of the field's table ran which control.
"""

import numpy as np

from rtx_core import paths, records
from rtx_core.report.evidence import device_of
from rtx_core.report.values import Space
from study import field, paper
from study.experiments import EXPERIMENTS
from study.values.common import computed

GROUPS = {
    "sst2": ["sst2"],
    "yelp": ["yelp"],
    "domains": ["multi-domain", "multi-domain-imdb"],
    "shakespeare": ["shakespeare", "shakespeare-small"],
    "tinystories": ["tinystories", "tinystories-small"],
}
GROUPS["looping"] = [name for name in EXPERIMENTS if name not in sum(GROUPS.values(), [])]


def paper_cost() -> Space:
    """Runs, hours of training and validation, and most memory of each group and of all; the machines."""
    runs = paper.records()
    found = {group: sums([run for run in runs if run["experiment"] in names]) for group, names in GROUPS.items()}
    return Space(found | {"whole": sums(runs), "machines": " and ".join(sorted({device_of(run) for run in runs}))})


def sums(runs: list) -> dict[str, float]:
    return {
        "runs": len(runs),
        "hours": sum(run["seconds"] for run in runs) / 3600,
        "gib": max(run["peak_memory_mib"] for run in runs) / 1024,
    }


def audits() -> Space:
    """The audits of the paper's runs: how many; the `steps` of those that repeated a part, in order; the `worst`
    relative difference of a loss or accuracy."""
    outcomes = [audit["outcome"] for audit in paper.measurements("audits")]
    steps = sorted(outcome["steps"] for outcome in outcomes if outcome["predictions_equal"] is None)
    return Space({"n": len(outcomes), "steps": steps, "worst": max(outcome["worst"] for outcome in outcomes)})


def profile(name: str) -> dict:
    """The parts of a data set, as counted."""
    return records.read_json(paths.home() / "results" / "data" / f"{name}.json")["parts"]


def spelled_out(histogram: dict[str, int]) -> np.ndarray:
    """Of each text its length."""
    return np.repeat([int(length) for length in histogram], list(histogram.values()))


def described(part: dict) -> dict:
    """The number of texts, the shares that are positive and that stand `inside` a training text, lengths in words."""
    n, words = part["n"], spelled_out(part["words"])
    found = {"n": n, "positive": part["labels"][1] / n, "inside": (part["within_training"] or 0) / n}
    return found | {"words": {"mean": float(words.mean()), "median": float(np.median(words))}}


def texts() -> Space:
    """`texts.sst2_seeded_128.test.inside`."""
    names = sorted(path.stem for path in (paths.home() / "results" / "data").glob("*.json"))
    return Space({name: {part: described(found) for part, found in profile(name).items()} for name in names})


def left_out() -> int:
    """The phrases of SST-2 that the leak-free split leaves out, as sentences of both validation and test have them."""
    every, kept = (sum(part["n"] for part in profile(f"sst2-{cut}-128").values()) for cut in ("seeded", "grouped"))
    return every - kept


def controls() -> Space:
    papers = [row for row in field.rows() if row["key"]]
    ran = {name: sum(name in row.get("controls", ()) for row in papers) for name in field.CONTROLS}
    return Space(
        {
            "papers": len(papers),
            "abstract": sum(row["read"].startswith("abstract") for row in papers),
            **{field.CONTROLS[name].lower(): number for name, number in ran.items()},
        }
    )


VALUES = {
    "protocol": lambda: EXPERIMENTS["sst2"].train,
    "language": lambda: Space({"shakespeare": paper.records(experiment="shakespeare")[0]["data"]}),
    "field": controls,
}
VALUES |= computed(paper_cost, audits, texts, left_out)
