"""Names of the methods page: the protocol and what the runs cost, such as `paper_cost.shakespeare.hours`."""

from rtx_core.report.evidence import device_of
from rtx_core.report.values import Space
from study import paper
from study.experiments import EXPERIMENTS

GROUPS = {
    "sst2": ["sst2"],
    "yelp": ["yelp"],
    "domains": ["multi-domain", "multi-domain-imdb"],
    "shakespeare": ["shakespeare", "shakespeare-small"],
    "tinystories": ["tinystories", "tinystories-small"],
    "looping": ["facts", "khop", "khop-hard", "khop-published", "state-tracking", "state-tracking-scan", "iso-depth"],
}


def protocol() -> Space:
    return Space(EXPERIMENTS["sst2"].train.model_dump())


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


VALUES = {"protocol": protocol, "paper_cost": paper_cost, "audits": audits}
