"""Names on what a pass is worth that the book's first page and *Precision* quote."""

from study import paper
from study.analysis.hops import Rounding
from study.folders import Folders

RUNS = Folders(paper.records)
VALUES = {
    "khop": lambda: RUNS.hops("khop"),
    "khop_rounded": lambda: Rounding(paper.measurements("quantized", "khop"), RUNS.hops("khop")),
    "at_own_rates": RUNS.khop_at_best_rates,
    "facts": RUNS.facts,
    "facts_best": lambda: RUNS.facts_at_best_rate,
}
