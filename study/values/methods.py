"""How models train (`recipes.sst2.batch_size`), what the runs cost (`paper_cost.hours`), and counts of the data sets
(`texts.sst2_seeded_128.test.inside`).
"""

import numpy as np

from rtx_core import paths
from rtx_core.models.registry import config_of
from rtx_core.report.evidence import device_of
from rtx_core.report.values import Space
from study import paper
from study.analysis.corpora import each_length, inside, positive
from study.experiments import EXPERIMENTS
from study.values.common import computed


def paper_cost() -> Space:
    """Runs, and hours of training and validation, of all; the machines."""
    runs = paper.records()
    machines = " and ".join(sorted({device_of(run) for run in runs}))
    return Space({"runs": len(runs), "hours": sum(run["seconds"] for run in runs) / 3600, "machines": machines})


def parts_of(name: str) -> dict[str, dict]:
    return paper.profile(name)["parts"]


def described(part: dict) -> dict:
    """The number of texts, the shares that are positive and that stand `inside` a training text, lengths in words."""
    words = each_length(part)
    found = {"n": part["n"], "positive": positive(part), "inside": inside(part)}
    return found | {"words": {"mean": float(words.mean()), "median": float(np.median(words))}}


def texts() -> Space:
    """Of each data set and part: `texts.sst2_seeded_128.test.inside`."""
    names = sorted(path.stem for path in (paths.home() / "results" / "data").glob("*.json"))
    return Space({name: {part: described(found) for part, found in parts_of(name).items()} for name in names})


def left_out() -> int:
    """The phrases of SST-2 that the leak-free split leaves out, as sentences of both validation and test have them."""
    every, kept = (sum(part["n"] for part in parts_of(f"sst2-{cut}-128").values()) for cut in ("seeded", "grouped"))
    return every - kept


VALUES = {"looped_size": lambda: config_of("looped", **EXPERIMENTS["khop"].models["1x4"].settings)}
VALUES |= {"recipes": lambda: Space({k.replace("-", "_"): e.train for k, e in EXPERIMENTS.items()})}
VALUES |= computed(paper_cost, texts, left_out)
