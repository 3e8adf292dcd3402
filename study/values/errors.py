"""Where the two models err on GLUE's 872 sentences, first seed, such as `errors.both`."""

from itertools import combinations
from statistics import mean

from rtx_core import records
from rtx_core.errors import RtxError
from rtx_core.report import statistics
from rtx_core.report.evidence import badge
from rtx_core.report.values import Space
from study import paper


def errors() -> Space:
    pair = [records.find("sst2-official", model, 0) for model in ("baseline", "recurrent")]
    if None in pair:
        raise RtxError("There is no record of both models on GLUE's split, seed 0; run them.")
    labels, *guesses = statistics.same_texts(*pair)
    wrong = [guess != labels for guess in guesses]
    (counts,) = paper.measurements("yardstick", "sst2-official")
    words = counts.predictions["logits"].argmax(1) != labels
    apart = guesses[0] != guesses[1]
    n = len(labels)
    return Space(
        {
            "n": n,
            "baseline": int(wrong[0].sum()),
            "recurrent": int(wrong[1].sum()),
            "both": int((wrong[0] & wrong[1]).sum()),
            "words_too": int((wrong[0] & wrong[1] & words).sum()),  # as many does the bag of words get wrong
            "by_chance": float(wrong[0].mean() * wrong[1].mean() * n),  # both, were the errors independent
            "apart": int(apart.sum()),
            "baseline_right": int((apart & ~wrong[0]).sum()),
            "recurrent_right": int((apart & ~wrong[1]).sum()),
            "badge": badge(pair),
        }
    )


def unlike(name: str) -> Space:
    """On what share of its texts two runs of one model answer differently, and two of different models, in the mean."""
    runs = [run for model in ("baseline", "recurrent") for run in paper.records(name=name, model=model)]
    shares = {True: [], False: []}
    for a, b in combinations(runs, 2):
        _, one, other = statistics.same_texts(a, b)
        shares[a["model"] == b["model"]].append(float((one != other).mean()))
    return Space({"one_model": mean(shares[True]), "two_models": mean(shares[False]), "badge": badge(runs)})


VALUES = {"errors": errors, "unlike": lambda: unlike("sst2-10pct")}
