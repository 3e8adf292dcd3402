"""Names of the pages on what a pass is worth: `khop.error('1x4', 4)`, `facts.gain('1x4', '1x1')`, `iso_depth.phi`."""

from rtx_core.records import Record
from rtx_core.report.statistics import mean_interval
from rtx_core.report.values import Space, Value, look_up
from study import paper
from study.analysis import iso_depth
from study.analysis.facts import Facts, most_bits
from study.analysis.hops import AtOwnRates, Hops, Rounding, compared, copying, logit, unpaired_odds, wrong
from study.analysis.iso_depth import IsoDepth, best_of
from study.analysis.phi import worth
from study.analysis.records import test_loss
from study.values.common import functions


def hops(name: str) -> Hops:
    return Hops(paper.records(name=name), name)


def at_own_rates(name: str, hops_asked: int, *rates: float) -> AtOwnRates:
    return AtOwnRates(hops_asked, hops(name), *(hops(f"{name}-learningrate{rate}") for rate in rates))


def on_logits(first: str, second: str) -> Space:
    return compared(*map(look_up("khop").of, (first, second)))


def unpaired_on_logits(first: str, second: str) -> Space:
    return unpaired_odds(*map(look_up("khop").of, (first, second)))


# -- Facts, and φ of these and of pointers


def facts_best(model: str) -> float:
    """The bits that a model stores at the best of the rates at which it was trained."""
    return most_bits(model, *map(look_up, ("facts", *FACT_RATES)))


def facts_share(model: str, of: str) -> float:
    """The bits that a model stores over those of another, each at the best of its rates."""
    return facts_best(model) / facts_best(of)


def facts_worth(model: str) -> Value:
    return Value(*worth(look_up("facts"), model, ("1x1", "2x1", "4x1"), test_loss))


def pointers_worth(model: str) -> Value:
    return Value(*worth(look_up("khop"), model, ("1x1", "2x1", "3x1", "4x1"), logit))


# -- Shakespeare at equal depth


def of_first_seeds(seeds: int) -> IsoDepth:
    return IsoDepth([record for record in paper.records(name="iso-depth") if record["seed"] < seeds], seeds=seeds)


def longer_training_lowers() -> Value:
    """φ after 800 steps minus φ after four times as many, of the loops of width 64, paired by seed."""
    loops = ("3x2-64", "2x3-64", "1x6-64")
    short, long = (look_up(name).by_seed(*loops) for name in ("iso_depth_three", "iso_depth_longer"))
    return Value(*mean_interval([a - b for a, b in zip(short, long)]), form=".2f")


def of_rates(*rates: str) -> list[list[Record]]:
    return [paper.records(name=f"iso-depth{rate}") for rate in rates]


def text_worth(model: str, *rates: str) -> Value:
    return iso_depth.text_worth(model, *of_rates("", *rates))


FACT_RATES = {"facts_lower": 0.001, "facts_higher": 0.004, "facts_highest": 0.008}  # the last one of one layer alone
HIGHER = ("-learningrate0.006", "-learningrate0.012")  # than the rate of all iso-depth models
HOPS = {
    "khop": "khop",
    "khop_hard": "khop-hard",
    "khop_hard_higher": "khop-hard-learningrate0.004",
    "khop_at_8e_3": "khop-learningrate0.008",
    "khop_at_16e_3": "khop-learningrate0.016",
    "khop_published": "khop-published-reduced",
    "khop_long": "khop-steps9000",
    "khop_longer": "khop-steps12000",
    "s3": "state-tracking",  # the parts of these are lengths, from 1, where those of hops are from 0
    "s3_long": "state-tracking-letters16-steps12000",
    "s3_scan": "state-tracking-scan",
    "s3_curriculum": "state-tracking-curriculum",
    "s3_mixed": "state-tracking-curriculum-stage1",
    "z6": "state-tracking-groupZ6",
    "a5_scan": "state-tracking-scan-groupA5-steps6000",
}
VALUES = {key: lambda name=name: hops(name) for key, name in HOPS.items()}
VALUES |= {f"{key}_reached": lambda name=HOPS[key]: hops(name).factors for key in HOPS if key.startswith(("s3", "z6"))}
VALUES |= {
    "khop_rounded": lambda: Rounding(paper.measurements("quantized", "khop"), look_up("khop")),
    "at_own_rates": lambda: at_own_rates("khop", 4, 0.001, 0.004, 0.008),
    "hard_at_own_rates": lambda: at_own_rates("khop-hard", 8, 0.004),
    "facts": lambda: Facts(paper.records(name="facts-facts49152")),
    "facts_long": lambda: Facts(paper.records(name="facts-epochs240")),
    "iso_depth": lambda: IsoDepth(paper.records(name="iso-depth")),
    "iso_depth_longer": lambda: IsoDepth(paper.records(name="iso-depth-steps3200")),
    "iso_depth_parts": lambda: IsoDepth(paper.records(name="iso-depth"), ("three-part",)),
    "iso_depth_tuned": lambda: IsoDepth(best_of(*of_rates("", "-learningrate0.0015", "-learningrate0.006"), seeds=1)),
    "iso_depth_higher": lambda: IsoDepth(best_of(*of_rates("", *HIGHER), seeds=3), seeds=3),
}
VALUES |= {f"iso_depth_{n}": lambda k=k: of_first_seeds(k) for n, k in {"first": 1, "three": 3, "eight": 8}.items()}
VALUES |= {
    name: lambda rate=rate: Facts(paper.records(name=f"facts-facts49152-learningrate{rate}"))
    for name, rate in FACT_RATES.items()
}
VALUES |= {"longer_training_lowers": longer_training_lowers}
VALUES |= {"w44_at_8e_3": lambda: [wrong(run, 4) for run in look_up("khop_at_8e_3").of("4x1-w44") if run["seed"] >= 3]}
VALUES |= functions(copying, on_logits, unpaired_on_logits, facts_best, facts_share, facts_worth, pointers_worth)
VALUES |= {"text_worth": lambda: text_worth, "text_worth_tuned": lambda: lambda model: text_worth(model, *HIGHER)}
