"""Names of the TinyStories page, such as `stories.gap.frailt.control_long`."""

import math

import numpy as np

from rtx_core import paths, records
from rtx_core.report.evidence import badge
from rtx_core.report.statistics import mean_interval, paired
from rtx_core.report.values import Space
from study import paper, published

NAME = "tinystories-report-reduced"
LOOPS = ("frailt", "three-part", "relaxed")
CONTROLS = ("control", "control-long", "control-16", "control-8")
STUDY = ("control", "relaxed", "frailt", "three-part")  # in the order of its tables
FULL = 204_800_000  # tokens of a published run


def stories() -> Space:
    groups = {model: [r for r in paper.records(name=NAME) if r["model"] == model] for model in (*LOOPS, *CONTROLS)}
    losses = {model: [r["test"]["loss"] for r in some] for model, some in groups.items()}
    gaps = {a: {b: paired(groups[a], groups[b]) for b in groups if a != b} for a in LOOPS}
    quoted = published.published()["tinystories"]
    printed, again = quoted["validation_loss"], quoted["initial"]["control"]["final"]  # which differ
    return Space(
        {
            "badge": badge(list(groups.values())),
            "share": groups["control"][0]["history"][-1]["tokens"] / FULL,
            "seeds": max(np.ptp(some) for some in losses.values()),  # the most that two seeds of a model differ
            "more_tokens": np.mean(losses["control"]) - np.mean(losses["control-long"]),
            "gap": gaps,
            "published": {model: printed[model] - printed["control"] for model in LOOPS},
            "published_again": {model: printed[model] - again for model in LOOPS},
            "corrections": groups["relaxed"][0]["extra"]["components"]["low-rank corrections"]
            - quoted["components"]["relaxed"]["low-rank corrections"],
            "initial": initial(quoted["initial"]),
            "cost": cost(),
            "passes": {model: passes(groups[model]) for model in LOOPS},
            "exits": exits(groups),
        }
    )


def initial(quoted: dict) -> dict:
    """Initial losses of many seeds beside those of the study."""
    (measured,) = paper.measurements("initial", "tinystories")
    by_seed = np.array([measured["losses"][model] for model in STUDY])  # (models, seeds)
    printed = np.array([quoted[model]["initial"] for model in STUDY])
    order = np.argsort(-printed)[:, None]
    apart = mean_interval((by_seed[STUDY.index("frailt")] - by_seed[0]).tolist())
    return {
        "n": by_seed.shape[1],
        "spread": np.ptp(by_seed, axis=1).tolist(),
        "published": np.ptp(printed),
        "same_order": int((np.argsort(-by_seed, axis=0) == order).all(0).sum()),
        "frailt": dict(zip(("mean", "low", "high"), apart)),
    }


def cost() -> dict:
    """What `benchmarks/decoder-cpu.json` says of a training step, over the control's."""
    content = records.read_json(paths.home() / "results" / "benchmarks" / "decoder-cpu.json")
    times = content["models"]
    step = {m: times[m]["stories, bf16 products"]["ours"]["median_ms"] for m in ("control", *LOOPS)}
    memory = content["memory_mib"]
    return {
        "step": {m: step[m] / step["control"] for m in LOOPS},
        "memory": {m: memory[m] / memory["control"] for m in LOOPS},
    }


def passes(found: list) -> dict:
    """Loss after the trained number of passes, after twice as many, and after one."""
    loss = np.mean([r["extra"]["passes"]["validation"] for r in found], axis=0)
    trained = found[0]["extra"]["trained_passes"]
    return {"best": int(np.argmin(loss)) + 1, "trained": trained, "twice": loss[-1] - loss[trained - 1]}


def exits(groups: dict) -> dict:
    """At how many thresholds stopping alone beats the best fixed number of passes of no more computation."""
    points = [point for model in LOOPS for point in exit_points(groups[model])]
    return {
        "n": len(points),
        "better": sum(loss < counted for loss, counted, _ in points),
        "if_free": sum(loss < free for loss, _, free in points),
    }


def exit_points(found: list) -> list[tuple[float, float, float]]:
    """(loss, of all tokens alike at no more computation, and that were asking free) of each threshold."""
    extra, model = found[0]["extra"], found[0]["config"]["model"]
    trained, flops = extra["trained_passes"], np.array(extra["flops_per_token"])
    fixed = np.mean([r["extra"]["passes"]["validation"] for r in found], axis=0)
    a_pass, head = flops[1] - flops[0], 2 * model["vocab_size"] * model["hidden_size"]
    asking = head + (flops[0] - a_pass - head) / 2  # the head and, as large as the prelude, the coda
    points, before = [], math.nan
    for k in range(len(extra["exits"])):
        taken, loss = (
            np.mean([r["extra"]["exits"][k][f"validation_{what}"] for r in found]) for what in ("passes", "loss")
        )
        if taken == before:  # an allowance that changed nothing
            continue
        before = taken
        limits = [flops[0] + (taken - 1) * (a_pass + more) for more in (asking, 0)]
        points.append((loss, *(fixed[:trained][flops[:trained] <= limit * (1 + 1e-9)].min() for limit in limits)))
    return points


def grades(name: str) -> dict[str, dict[str, list[float]]]:
    """What is counted of the stories that models wrote: share -> model -> by seed."""
    (measured,) = paper.measurements("grades", name)
    grades = measured["grades"].items()
    return {share: {model: [seed[share] for seed in seeds] for model, seeds in grades} for share in measured["written"]}


VALUES = {
    "stories": stories,
    "story_grades": lambda: grades(NAME),
    "stories_as_written": lambda: paper.measurements("grades", NAME)[0]["written"],
    "small_story_grades": lambda: grades("tinystories-small-learningrate0.004"),
}
