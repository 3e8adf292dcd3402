"""What the performance page quotes: `fast_step.baseline.plain` is the plain way's time over ours."""

from rtx_core import paths, records
from rtx_core.report.values import Space

WAYS = {"ours": "this project", "plain": "plain, padded to 128", "longest": "plain, padded to the longest"}


def benchmark(name: str) -> dict:
    return records.read_json(paths.REPOSITORY / "results" / "benchmarks" / f"{name}-cpu.json")


def step() -> Space:
    """A training step: `ms` of each way, and how many times longer than ours each takes."""
    found = benchmark("training-step")
    times = {}
    for model, limit in found["floor"].items():
        each = {short: found["steps"].get(f"{model}, {way}") for short, way in WAYS.items()}
        ms = {short: t["median_ms"] for short, t in each.items() if t} | {"limit": limit["ms"]}
        times[model] = {short: t / ms["ours"] for short, t in ms.items()} | {"ms": ms}
        times[model]["over_limit"] = ms["ours"] / ms["limit"]
    compiled = {way.split(", ")[1].split(".")[-1]: t["median_ms"] for way, t in found["compiled"].items() if "," in way}
    return Space(times | {name: found[name] for name in ("rows", "rows_trained")} | {"compiled": compiled})


def sentence() -> Space:
    """One sentence: ms prepared for serving."""
    models = benchmark("latency")["models"].items()
    return Space({model: {"served": ways["packed, prepared for serving"]["median_ms"]} for model, ways in models})


def decoders() -> Space:
    """How many times as fast as the plain way stories of unequal length are read, at 32 bits."""
    timed = [ways["stories, 32 bits"] for ways in benchmark("decoder")["models"].values()]
    ratios = [t["plain"]["median_ms"] / t["ours"]["median_ms"] for t in timed]
    return Space({"stories": {"low": min(ratios), "high": max(ratios)}})


def least_by_size() -> float:
    """The plain baseline over ours where nobody pads: the least of all lengths and batch sizes."""
    took = {
        (t["swept"], t["length"], t["batch"], t["who"]): t["median_ms"] for t in benchmark("training-step")["by_size"]
    }
    return min(ms / took[*size, "baseline"] for (*size, who), ms in took.items() if who == "baseline, plain")


VALUES = {"fast_least_by_size": least_by_size, "fast_step": step, "fast_sentence": sentence, "fast_decoders": decoders}
