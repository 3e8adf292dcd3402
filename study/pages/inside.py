"""Inside the loop: the errors of the loops whose heads and states the notebook opens."""

from statistics import mean

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from study.analysis.hops import Hops, copying, solved_by_pass, wrong
from study.analysis.wording import at_least, listing, percent, seeds

WIDE = 256  # the width of the widest loops
HOPS, FAST = 4, 5  # hops, and what `factors` gives where all of them are solved


def attention_ahead(look: Record, step: int, hops: int) -> float:
    """The most attention that a head of a loop of one layer gives to the letter so many hops ahead, in a pass."""
    return max(head[hops] for head in look["attention"][step - 1][0])


def quantities(
    opened: list[Record],
    random_passes: list[Record],
    wide: list[Record],
    wider: list[Record],
    hard: list[Record],
    looks: list[Record],
) -> Quantities:
    """Of the models that the notebook opens, of all loops trained with random passes, of wide ones on the published
    task, of `wider` and small ones on the task of the small ones, and of loops on eight hops; `looks` says where heads
    look."""
    models, long, published = Hops(opened, "k-hop"), Hops(random_passes, "k-hop, longer"), Hops(wide, "wide loops")

    wider_loops = [run for run in wider if run["config"]["model"]["hidden_size"] == WIDE]
    of_width = {64: [look for look in looks if look["of"] == "khop"]}
    of_width[WIDE] = [look for look in looks if f"hiddensize{WIDE}" in look["of"]]

    def ahead(width: int, step: int, hops: int) -> list[float]:
        """What `attention_ahead` gives for each loop of this width."""
        return sorted(attention_ahead(look, step, hops) for look in of_width[width])

    def small_loops() -> list[Record]:
        return [run for run in wider if run["model"] == "1x4" and run["config"]["model"]["hidden_size"] == 64]

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
        "wider_loops": lambda: words(len(wider_loops)),
        "small_loops": lambda: words(len(of_width[64])),
        "wide_two_ahead": lambda: at_least(min(ahead(WIDE, 3, 2) + ahead(WIDE, 4, 2))),
        "small_two_ahead": lambda: percent(max(two for step in (2, 3, 4) for two in ahead(64, step, 2))),
        "wide_steps": lambda: listing(map(str, solved_by_pass(wider_loops[0]))),
        "fast_loops": lambda: words(sum(n == FAST for n in long.factors("1x6-random", 3))),
        # Exercises
        "best_seed": lambda: str(min(one_layer("1x4"), key=lambda run: wrong(run, HOPS))["seed"]),
        "long_after_three": lambda: number(min(models.errors("1x6-random", HOPS, 3)), ".0%"),
    }
    checks = {
        "answer_after_three_passes": lambda: [long.error("1x6-random", HOPS, 3) < 0.2],
        "one_hop_after_one_pass": lambda: [max(long.errors("1x6-random", 1, 1)) < 0.12],
        "wide_solves": lambda: [
            published.solved("1x4") >= 10,
            published.solved("1x4", 2) == 1,
            max(published.factors("1x4", 3)) <= 4,
        ],
        "wider_loops": lambda: [
            all(min(ahead(WIDE, step, 2)) > 0.7 for step in (3, 4)),
            max(ahead(WIDE, 2, 2)) < 0.5,
            all(max(ahead(64, step, 2)) < 0.3 for step in (2, 3, 4)),
        ],
        "wide_steps": lambda: [
            all(solved_by_pass(run) == [0, 1, 2, 4] for run in wider_loops),
            all(solved_by_pass(run)[0] == 0 for run in small_loops()),
            mean(solved_by_pass(run)[3] for run in small_loops()) > 3.3,
            mean(sum(solved_by_pass(run)) for run in small_loops()) < 7,
            all(run[4] <= 4 < run[5] for run in map(solved_by_pass, hard)),
            all(solved_by_pass(run)[1] == 2 for run in random_passes),
        ],
        "fast_loops": lambda: [min(models.errors("1x6-random", HOPS, 3)) > 0.1],
    }
    return Quantities(numbers, checks)
