"""Values of the page on data size: depth and width at a tenth of it, what the selected epoch decides."""

from rtx_core.report.evidence import badge
from rtx_core.report.statistics import difference
from rtx_core.report.values import Gap, Model, Space
from study import paper

DEPTHS = {
    "once": ("sst2-10pct-numpasses1", "recurrent"),
    "twice": ("sst2-10pct", "recurrent"),
    "thrice": ("sst2-10pct-numpasses3", "recurrent"),
    "six": ("sst2-10pct-numlayers6-numpasses1", "recurrent"),
    "wide": ("sst2-10pct", "recurrent-wide"),
    "baseline": ("sst2-10pct", "baseline"),
}


def depth() -> Space:
    """Each variant's Model, and paired differences of them, first minus second, in points."""
    found = {key: paper.records(name=name, model=model) for key, (name, model) in DEPTHS.items()}
    pairs = [("twice", "once"), ("thrice", "twice"), ("six", "twice"), ("wide", "twice"), ("baseline", "wide")]
    gaps = {f"{a}_{b}": Gap(difference(found[a], found[b]), badge([found[a], found[b]])) for a, b in pairs}
    return Space({key: Model(runs, key) for key, runs in found.items()} | gaps)


def selection() -> Space:
    """All runs at a tenth of the data: test accuracies by selected epoch, gain of the next (points)."""
    by_epoch, gains = {}, []
    for name, model in DEPTHS.values():
        for record in paper.records(name=name, model=model):
            place = [row["step"] for row in record["history"]].index(record["selected"]["step"])
            here, *later = record["history"][place:]
            by_epoch.setdefault(round(here["epoch"]), []).append(100 * record["test"]["accuracy"])
            if later:
                gains.append(100 * (later[0]["validation_accuracy"] - here["validation_accuracy"]))
    ends = {f"epoch_{epoch}": {"low": min(a), "high": max(a), "n": len(a)} for epoch, a in by_epoch.items()}
    return Space(
        ends
        | {
            "epochs": sorted(by_epoch),
            "n": len(gains),
            "better": sum(g > 0 for g in gains),
            "gain": sum(gains) / len(gains),
        }
    )


VALUES = {"depth": depth, "selection": selection}
