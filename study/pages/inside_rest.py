"""Rest or growth: loops over pointers that run on after their answer."""

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from study.analysis.hops import Hops
from study.analysis.inside import errors_after
from study.analysis.wording import seeds

HOPS = 4


def quantities(growth: list[Record], variants: list[Record], random_passes: list[Record]) -> Quantities:
    """Of measurements of loops that run on, the two that the page opens and variants of the long one; and of runs of
    the random-pass loop."""
    long = Hops(random_passes, "k-hop, longer")

    def loops(measurements: list[Record], model: str) -> list[Record]:
        return [one for one in measurements if one["model"] == model]

    def long_loop(passes: int, way: str = "free") -> list[float]:
        """Errors at four hops."""
        return errors_after(loops(growth, "1x6-random"), passes, HOPS, way)

    def variant(name: str, passes: int, hops: int) -> list[float]:
        return errors_after(loops(variants, f"1x6-random{name}"), passes, hops)

    def steps(runs: Hops, model: str) -> int:
        return runs.records_for(model)[0]["config"]["train"]["steps"]

    def short_loop(way: str = "free") -> float:
        """The error at four hops after 64 passes of the first seed of 1x4."""
        return errors_after(loops(growth, "1x4"), 64, HOPS, way)[0]

    numbers = {
        "seeds": lambda: seeds(len(loops(growth, "1x4"))),
        "long_seeds": lambda: seeds(len(loops(growth, "1x6-random"))),
        "loops": lambda: words(len(growth)),
        # Exercises
        "long_64_least": lambda: number(min(long_loop(64)), ".0%"),
        "long_64_most": lambda: number(max(long_loop(64)), ".0%"),
        "short_64": lambda: number(short_loop(), ".0%"),
        "short_64_held": lambda: number(short_loop("held"), ".0%"),
    }
    checks = {
        "short_64_held": lambda: [short_loop("held") > short_loop()],
        "growth_delays_the_loss": lambda: [
            min(long_loop(64, "held")) > max(long_loop(64)),
            min(variant("-norm", 256, 2)) > max(variant("", 256, 2)),
            min(variant("-add-norm", 256, 2)) > max(variant("-add", 256, 2)),
            min(variant("-linear", 256, 2) + variant("-linear-norm", 256, 2)) > 0.15,
        ],
        "four_hops_with_a_matrix": lambda: [
            max(variant("-linear", 6, HOPS)) < 0.04 < min(variant("-add-norm", 6, HOPS) + variant("-norm", 6, HOPS))
        ],
        "random_passes_last": lambda: [long.error("1x6-random", HOPS, 12) - long.error("1x6-random", HOPS, 6) < 0.01],
    }
    return Quantities(numbers, checks)
