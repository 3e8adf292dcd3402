"""Inside the loop: the errors of the loops whose heads and states the notebook opens."""

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from study.analysis.hops import Hops, copying
from study.analysis.wording import seeds

HOPS, FAST = 4, 5  # hops, and what `factors` gives where all of them are solved


def quantities(opened: list[Record], random_passes: list[Record], wide: list[Record]) -> Quantities:
    """Of the models that the notebook opens, of all loops trained with random passes, and of wide ones."""
    models, long, published = Hops(opened, "k-hop"), Hops(random_passes, "k-hop, longer"), Hops(wide, "wide loops")

    def one_layer(model: str) -> list[Record]:
        return [record for record in opened if record["model"] == model]

    numbers = {
        "loops_of_one_layer": lambda: words(len(one_layer("1x4") + one_layer("1x6-random"))),
        "seeds": lambda: seeds(len(one_layer("1x4"))),
        "error_least": lambda: number(min(models.errors("1x4", HOPS)), ".0%"),
        "error_most": lambda: number(max(models.errors("1x4", HOPS)), ".0%"),
        "long_seeds": lambda: seeds(len(one_layer("1x6-random"))),
        "copying": lambda: number(copying(HOPS, 2), ".0%"),
        "wide_solves": lambda: str(published.solved("1x4")),  # hops
        "fast_loops": lambda: words(sum(n == FAST for n in long.factors("1x6-random", 3))),
        "long_loops": lambda: words(len(long.factors("1x6-random", 3))),
    }
    checks = {
        "answer_after_three_passes": lambda: [long.error("1x6-random", HOPS, 3) < 0.2],
        "one_hop_after_one_pass": lambda: [max(long.errors("1x6-random", 1, 1)) < 0.12],
        "wide_solves": lambda: [
            published.solved("1x4") >= 10,
            published.solved("1x4", 2) == 1,
            max(published.factors("1x4", 3)) <= 4,
        ],
        "fast_loops": lambda: [min(models.errors("1x6-random", HOPS, 3)) > 0.1],
    }
    return Quantities(numbers, checks)
