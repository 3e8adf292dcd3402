"""Where the two models and a bag of words err on GLUE's 872 sentences, first seed, such as `errors.both`."""

from itertools import combinations
from statistics import mean

from rtx_core import records
from rtx_core.errors import RtxError
from rtx_core.report import statistics
from rtx_core.report.values import Space
from study import paper


def errors() -> Space:
    pair = [records.find("sst2-official", model, 0) for model in ("baseline", "recurrent")]
    if None in pair:
        raise RtxError("There is no record of both models on GLUE's split, seed 0; run them.")
    labels, *guesses = statistics.same_texts(*pair)
    (counts,) = paper.measurements("yardstick", "sst2-official")
    baseline, recurrent, words = (guess != labels for guess in (*guesses, counts.predictions["logits"].argmax(1)))
    both, neither = baseline & recurrent, ~baseline & ~recurrent
    chosen = {
        "baseline": baseline,
        "recurrent": recurrent,
        "both": both,
        "all_miss": both & words,
        "only_models": neither & words,
        "only_words": both & ~words,
    }
    found = {name: int(each.sum()) for name, each in chosen.items()}
    found |= {f"{name}_positive": float(labels[each].mean()) for name, each in chosen.items()}
    by_chance = float(baseline.mean() * recurrent.mean() * len(labels))  # both, were the errors independent
    return Space(found | {"n": len(labels), "by_chance": by_chance})


def unlike(name: str) -> Space:
    """On what share of its texts two runs of one model answer differently, and two of different models, in the mean."""
    runs = [run for model in ("baseline", "recurrent") for run in paper.records(name=name, model=model)]
    shares = {True: [], False: []}
    for a, b in combinations(runs, 2):
        _, one, other = statistics.same_texts(a, b)
        shares[a["model"] == b["model"]].append(float((one != other).mean()))
    return Space({"one_model": mean(shares[True]), "two_models": mean(shares[False])})


VALUES = {"errors": errors, "unlike": lambda: unlike("sst2-10pct")}
