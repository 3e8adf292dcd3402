"""Claims about what can be counted: parameters, configurations, data, and the errors of rounded weights."""

from collections.abc import Iterator

import numpy as np

from rtx_core.pages.display import show
from rtx_core.pages.runs import architectures
from rtx_core.pages.table import title
from rtx_core.pages.verdicts import Missing, Part, Verdict, by_bounds, profile, together
from rtx_core.results import measurement
from rtx_core.results.statistics import mean_interval


# -- size --------------------------------------------------------------------------------------------------------------


def totals(**millions: float) -> Verdict:
    """The stated numbers of parameters, in millions, are those of the models."""
    known = architectures()
    counted = {model: known[model]["parameters"]["total"] for model in millions}
    said = "; ".join(f"{title(model)} {n:,} counted, {millions[model]:g}M stated" for model, n in counted.items())
    return Verdict(by_bounds(same := all(abs(n / 1e6 - millions[m]) < 0.05 for m, n in counted.items()), not same), f"{said}.")


def saves(at: float, within: float = 0.01) -> Verdict:
    """The recurrent model is smaller than the baseline by this share."""
    base, small = (architectures()[model]["parameters"]["total"] for model in ("baseline", "recurrent"))
    saving = 1 - small / base
    said = f"{small:,} against {base:,} parameters: smaller by {saving:.1%}."
    return Verdict(by_bounds(same := abs(saving - at) <= within, not same), said)


def same_setting(names: list[str]) -> Verdict:
    """Baseline and recurrent agree in these entries of their configuration."""
    base, other = (architectures()[model] for model in ("baseline", "recurrent"))
    pairs = {name: tuple(m["config"].get(name, m.get(name)) for m in (base, other)) for name in names}
    said = "; ".join(f"{name.replace('_', ' ')} {show(x)} and {show(y)}" for name, (x, y) in pairs.items())
    return Verdict(by_bounds(same := all(x == y for x, y in pairs.values()), not same), f"Baseline and Recurrent: {said}.")


# -- data --------------------------------------------------------------------------------------------------------------


def _shares(data: str, part: str) -> list[float]:
    facts = profile(data)[part]
    return [100 * n / facts["n"] for n in facts["labels"]]


def label_shares(data: str, within: float, like: str = "", **percent: list[float]) -> Verdict:
    """The parts have these shares of each label, in per cent; or the training part has those of another profile."""
    percent = {"train": _shares(like, "train")} if like else percent
    found, parts = {part: _shares(data, part) for part in percent}, profile(data)
    kept = all(abs(x - y) <= within for part, stated in percent.items() for x, y in zip(found[part], stated, strict=True))
    said = "; ".join(f"{part} {' / '.join(f'{x:.2f}' for x in shares)} % of {parts[part]['n']:,}" for part, shares in found.items())
    said += f", against {' / '.join(f'{x:.2f}' for x in percent['train'])} % of the whole" if like else ""
    return Verdict(by_bounds(kept, not kept), f"{said}.")


def part_size(data: str, part: str, n: int) -> Verdict:
    ours = profile(data)[part]["n"]
    return Verdict(by_bounds(ours == n, ours != n), f"The {part} part has {ours:,} texts, {n:,} are stated.")


def mostly(data: str, unit: str, low: int, high: int, longest: float = 1.0, beside: str = "") -> Verdict:
    """Most test texts, or of the longest share of them, have between low and high words or tokens; what it is in other data is told beside."""
    share = _between(profile(data)["test"][unit], low, high, longest)
    which = "the test texts" if longest == 1 else f"the longest {longest:.0%} of the test texts"
    said = f"{share:.1%} of {which} have {low} to {high} {unit}"
    if beside:
        said += f"; of {beside} it is {_between(profile(beside)['test'][unit], low, high):.1%}"
    return Verdict(by_bounds(share > 0.5, share <= 0.5), f"{said}.")


def _between(histogram: dict[str, int], low: int, high: int, longest: float = 1.0) -> float:
    """The share of the longest texts that have between low and high words or tokens."""
    lengths = np.repeat([int(length) for length in histogram], list(histogram.values()))
    chosen = np.sort(lengths)[len(lengths) - round(longest * len(lengths)) :]
    return float(((low <= chosen) & (chosen <= high)).mean())


# -- rounding ----------------------------------------------------------------------------------------------------------


def error_ratio(curves: list[dict], comparison: str, bits: int, model: str | None = None) -> tuple[float, float, float, int]:
    """(ratio, low, high, seeds): error after the last layer, shared over unshared, geometric mean with Student's interval."""
    ends = {arm: {c["seed"]: c["errors"][-1] for c in curves
                  if (c["comparison"], c["arm"], c["bits"], c.get("model")) == (comparison, arm, bits, model)}
            for arm in ("shared", "unshared")}  # fmt: skip
    logs = [float(np.log(ends["shared"][seed] / ends["unshared"][seed])) for seed in ends["shared"]]
    return (*(float(np.exp(x)) for x in mean_interval(logs)), len(logs))


def sharings(found: list[measurement.Measurement]) -> Iterator[tuple[measurement.Measurement, str, str | None]]:
    """(measurement, comparison, model) of all that tells shared weights from unshared ones: fresh pairs, those that several measurements
    repeat once, and every trained looped model."""
    seen = []
    for one in found:
        fresh = [c for c in one["curves"] if c["comparison"] == "random"]
        if fresh and fresh not in seen:
            seen.append(fresh)
            yield one, "random", None
        for model in sorted({c["model"] for c in one["curves"] if c["comparison"] == "draws"}):
            yield one, "draws", model


def amplifies(bits: list[int]) -> Verdict:
    """After the last layer the error of shared weights exceeds that of unshared ones, at each of these bit widths."""
    found = measurement.every("hub", "rounding")
    if not found:
        raise Missing("rounded weights")
    parts = []
    for one, comparison, model in sharings(found):
        name = "fresh pairs of models" if model is None else f"{title(model)} trained on {one['of']}, rounded at random"
        for b in bits:
            ratio, low, high, n = error_ratio(one["curves"], comparison, b, model)
            said = f"{name}, {b} bits: {ratio:.2f} ({low:.2f} to {high:.2f}, {n} {'seeds' if model is None else 'draws'})"
            parts.append(Part(by_bounds(low > 1, high < 1), said, n if model is None else 1, reduced=model is not None and one["protocol"] == "reduced"))
    return together(parts, "Relative error after the last layer, shared over unshared weights, with 95 % interval: ")
