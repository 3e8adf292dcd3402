"""What a run costs, for the page on using the project: `costs.sst2.recurrent.minutes`, `costs.sst2.most` in GiB."""

from rtx_core.report.evidence import as_records, by_model
from rtx_core.report.values import Space
from study import paper


def costs() -> Space:
    """By folder of `results/`: minutes of each model on a CPU, of the fastest seed, and the most memory of a run."""
    found = {}
    for record in paper.records():
        if record["environment"]["device_type"] == "cpu" and record["environment"]["threads"] == 1:
            found.setdefault(record["name"], []).append(record)
    return Space({name: cost(of) for name, of in found.items()})


def cost(found: list) -> dict:
    minutes = {
        model: {"minutes": min(record["seconds"] / 60 for record in of)} for model, of in by_model(found).items()
    }
    return minutes | {"most": max(record["peak_memory_mib"] for record in as_records(found)) / 1024}


VALUES = {"costs": costs}
