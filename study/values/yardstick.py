"""The two models beside a bag of words: their differences on every task that has both, and where all three err on
GLUE's 872 sentences, first seed: `(errors.baseline & errors.recurrent).sum()`.
"""

from itertools import combinations
from statistics import mean

from rtx_core import records
from rtx_core.report import badge, statistics
from rtx_core.report.values import Gap, Space
from study import paper
from study.values.common import COMPARED, PAIR, computed

# bag of words of -> the models' runs beside it
RUNS = {name: name for key, name in COMPARED.items() if key != "yelp_512"}
RUNS |= {"multi-domain-imdb": "multi-domain-imdb-trainrows5000-epochs1"}


def compared(name: str, model: str) -> tuple[list, list] | None:
    """(runs, bag of words) on the seeds that both models have, or None where one is missing or the model never
    answers some class."""
    seeds = statistics.common(*(paper.records(name=RUNS[name], model=each) for each in PAIR))
    runs = [run for pair in seeds for run in pair if run["model"] == model and statistics.answers_all(run)]
    words = paper.measurements("yardstick", name)
    beside = [records.Record(each.content | {"seed": run["seed"]}, each.path) for run in runs for each in words]
    return (runs, beside) if beside else None


def against(model: str) -> Space:
    """The differences by task, p adjusted over them, the best, and on how many tasks the model is ahead or behind."""
    pairs = {name: pair for name in RUNS if (pair := compared(name, model))}
    found = [statistics.difference(*pair, same_training=False) for pair in pairs.values()]
    gaps = {name: Gap(gap, badge(pairs[name][0])) for name, gap in zip(pairs, statistics.adjusted(found))}
    full = [gap.sign for gap in gaps.values() if gap.badge.budget == "full"]
    counts = {"full": len(full), "behind_full": full.count(-1), "ahead": sum(gap.sign > 0 for gap in gaps.values())}
    return Space(gaps | counts | {"best": max(gaps.values(), default=float("nan"))})


def errors() -> Space:
    """Of each sentence whether it is positive, and whether the models and the bag of words err on it."""
    pair = [records.load(f"sst2-official/{model}-seed0") for model in PAIR]
    labels, *guesses = statistics.same_texts(*pair)
    (words,) = paper.measurements("yardstick", "sst2-official")
    wrong = [guess != labels for guess in (*guesses, words.predictions["logits"].argmax(1))]
    return Space(dict(zip((*PAIR, "words"), wrong)) | {"positive": labels == 1})


def unlike() -> Space:
    """On what share of a tenth's test texts two runs answer differently, of one model and of two, in the mean."""
    runs = [run for model in PAIR for run in paper.records(name="sst2-10pct", model=model)]
    shares = {True: [], False: []}
    for a, b in combinations(runs, 2):
        _, one, other = statistics.same_texts(a, b)
        shares[a["model"] == b["model"]].append(float((one != other).mean()))
    return Space({"one_model": mean(shares[True]), "two_models": mean(shares[False])})


VALUES = {"yardstick": lambda: Space({model: against(model) for model in PAIR})} | computed(errors, unlike)
