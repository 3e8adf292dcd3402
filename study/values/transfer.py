"""Models trained on one corpus and tested on another."""

from rtx_core.report import statistics
from rtx_core.report.evidence import Badge
from rtx_core.report.values import Gap, Space
from study import paper


def direction(of: str) -> Space:
    """Baseline minus Recurrent on the seeds of both, and what accuracy alone does not tell."""
    measured = paper.measurements("transfer", of)
    both = {name: [m for m in measured if m["model"] == name] for name in ("baseline", "recurrent")}
    pairs = statistics.common(*both.values())
    full = sum(all(m["budget"] == "full" for m in pair) for pair in pairs)
    evidence = Badge(full, len(pairs) - full)
    areas = {name: [statistics.auc(m) for m in found] for name, found in both.items()}
    right = [m["test"]["accuracy"] for m in measured]
    positive = [float(statistics.shares(m)[1][1]) for m in measured]
    space = {
        "difference": Gap(statistics.difference(*both.values()), evidence),
        "lowest": min(right),
        "highest": max(right),
        "positive_lowest": min(positive),
        "positive_highest": max(positive),
        "positive_true": float(statistics.shares(measured[0])[0][1]),
        "auc_lowest": min(min(found) for found in areas.values()),
        "auc_highest": max(max(found) for found in areas.values()),
        **{name: {"auc": sum(found) / len(found)} for name, found in areas.items()},
    }
    if len(pairs) > 1:
        value, low, high, p = statistics.over_seeds(*areas.values())
        space["auc_difference"] = {"value": value, "low": low, "high": high, "p": p}
    return Space(space)


def transfer() -> Space:
    directions = {"to_yelp": "sst2-10pct-to-yelp", "to_sst2": "yelp-trainrows10000-epochs1-to-sst2"}
    return Space({name: direction(of) for name, of in directions.items()})


VALUES = {"transfer": transfer}
