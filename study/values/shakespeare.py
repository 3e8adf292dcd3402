"""Names of the Shakespeare page: `shakespeare.report.kausik.loss`, `shakespeare.speed.ours`."""

import numpy as np

from rtx_core import paths, records
from rtx_core.report.evidence import badge
from rtx_core.report.statistics import common
from rtx_core.report.values import Space
from study import paper, published

RECIPES = {"report": 10_000 * 128 * 256, "nanogpt": 5000 * 64 * 256}  # characters that each reads in full
STANDARD = ("gpt-1", "gpt-2", "gpt-6")
RECURRENT = ("kausik", "kausik-positions")


def shakespeare() -> Space:
    found = {}
    leads = []
    for recipe, full in RECIPES.items():
        every = paper.records(name=f"shakespeare-{recipe}-reduced")
        groups = {model: [r for r in every if r["model"] == model] for model in (*STANDARD, *RECURRENT)}
        losses = {model: [r["test"]["loss"] for r in some] for model, some in groups.items()}
        part = {model: {"loss": np.mean(some)} for model, some in losses.items()}
        part["standard"] = [np.mean(losses[model]) for model in STANDARD]
        part["share"] = every[0]["history"][-1]["tokens"] / full
        leads += [
            b["test"]["loss"] - a["test"]["loss"]
            for first in RECURRENT
            for second in STANDARD
            for a, b in common(groups[first], groups[second])
        ]
        found[recipe] = part
    (counted,) = (m["losses"] for m in paper.measurements("ngrams"))
    return Space(
        found
        | {
            "leads": leads,
            "badge": badge(paper.records(experiment="shakespeare")),
            "pairs": counted["2"],
            "triples": counted["3"],
            "published": published.published()["shakespeare"]["losses"],
            "speed": speed(),
        }
    )


def speed() -> dict:
    """What `benchmarks/recurrence-cpu.json` says, in ms."""
    content = records.read_json(paths.home() / "results" / "benchmarks" / "recurrence-cpu.json")
    plain, ours = (content["steps"][way]["median_ms"] for way in ("plain loop", "this project"))
    found = {"plain": plain, "ours": ours, "floor": content["floor"]["ms"]}
    passes = {(row["who"], row["length"]): row["median_ms"] for row in content["by_length"]}
    found["ratio"] = {  # of the recurrence's time to that of a standard model, by length
        who: [passes["kausik", n] / passes[who, n] for n in content["sizes"]["lengths"]] for who in ("gpt-2", "gpt-6")
    }
    following = {(row["who"], row["length"]): row["median_ms"] for row in content["next_character"]}
    for who in ("gpt-6", "kausik"):
        found[f"next-{who}"] = [following[who, n] for n in content["sizes"]["generated"]]
    return found


VALUES = {"shakespeare": shakespeare}
