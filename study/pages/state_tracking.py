"""State tracking: how many factors of a product a loop keeps, by how it was trained."""

from collections.abc import Iterable

from rtx_core.records import Record
from rtx_core.report.quantities import Quantities, words
from study.analysis.hops import SOLVED, Hops, factors
from study.analysis.inside import factors_read, parities_read, span_read
from study.analysis.wording import listing, span

PASSES = range(1, 9)  # that 1x8 runs in training


def in_group(records: Iterable[Record], group: str) -> Hops:
    return Hops([record for record in records if record["config"]["data"]["group"] == group], f"products in {group}")


def quantities(
    products: list[Record],
    rated: list[Record],
    curriculum: list[Record],
    mixed: list[Record],
    scan: list[Record],
    spans: list[Record],
    parity: list[Record],
) -> Quantities:
    """Of runs left to themselves, in several groups; at half and twice the learning rate; taught with short products
    first, or with as many passes alone; with a target at every pass; and probes of the states of loops that were
    trained longer, for products and for their parity."""
    untaught, clock = in_group(products, "S3"), in_group(products, "Z6")
    taught = Hops(curriculum, "short products first")
    all_lengths = Hops(mixed, "all lengths mixed")
    stepwise = Hops(scan, "told what to hold")

    def lengths(runs: Hops, model: str, passes: int | None = None, below: float = SOLVED) -> list[int]:
        """Factors that each seed solves."""
        return [factors(record, passes, below) for record in runs.records_for(model)]

    def least(*selection) -> str:
        return str(min(lengths(*selection)))

    def most(*selection) -> str:
        return str(max(lengths(*selection)))

    numbers = {
        "left_alone": lambda: span(lengths(untaught, "1x8"), words, " or "),
        "all_factors": lambda: str(len(taught.of("1x64")[0]["test"]["parts"])),
        # The task
        "twelve_passes_most": lambda: most(untaught, "1x8", 12),
        "rated_least": lambda: words(min(lengths(Hops(rated, "other rates"), "1x8"))),
        "rated_most": lambda: words(max(lengths(Hops(rated, "other rates"), "1x8"))),
        "stack_least": lambda: words(min(lengths(Hops(rated, "all rates"), "8x1"))),
        "stack_most": lambda: words(max(lengths(Hops(rated, "all rates"), "8x1"))),
        "one_pass": lambda: words(max(lengths(untaught, "1x1"))),
        "four_passes": lambda: words(max(lengths(untaught, "1x4"))),
        "clock_one_pass": lambda: words(max(lengths(clock, "1x1"))),
        "clock_two_least": lambda: least(clock, "1x2"),
        "clock_two_most": lambda: most(clock, "1x2"),
        "clock_eight_least": lambda: least(clock, "1x8"),
        "clock_eight_most": lambda: most(clock, "1x8"),
        # Taught with short products, it walks to the end
        "mixed_each": lambda: listing(map(str, lengths(all_lengths, "1x64"))),
        "few_passes": lambda: span(lengths(taught, "1x8"), words),
        "taught_layers": lambda: words(max(lengths(taught, "8x1"))),
        # Told what to hold, it learns to double
        "doubling_loop_least": lambda: least(stepwise, "1x6-numbered"),
        "doubling_loop_most": lambda: most(stepwise, "1x6-numbered"),
        "doubling_layers_least": lambda: least(stepwise, "6x1"),
        "doubling_layers_most": lambda: most(stepwise, "6x1"),
        # What was predicted
        "seeds": lambda: words(len(untaught.of("1x8"))),
    }
    checks = {
        "left_alone": lambda: [
            min(lengths(taught, "1x64")) == 64,
            min(lengths(untaught, "1x8")) >= 8,
            max(lengths(untaught, "1x8")) <= 9,
            max(lengths(Hops(rated, "all rates"), "8x1")) <= max(lengths(untaught, "1x8")),
            taught.weights("1x64") == untaught.weights("1x8"),
        ],
        "twelve_passes_most": lambda: [
            untaught.solved("1x8", 12)
            > untaught.solved("1x8", 10)
            > untaught.solved("1x8", 8)
            > untaught.solved("1x8", 6),
            untaught.solved("1x8", 6) > untaught.solved("1x8", 4),
            untaught.solved("1x8", 16) <= untaught.solved("1x8", 12),
            all(min(factors_read(spans, passes)) >= passes for passes in PASSES),
            max(max(span_read(spans, passes, 4)) for passes in PASSES) < 0.25,
        ],
        "parity": lambda: [
            sorted(a - b for a, b in zip(parities_read(parity, 8), factors_read(spans, 8)))[1] >= 3,
            min(a - b for a, b in zip(parities_read(parity, 8), factors_read(spans, 8))) <= 0,
        ],
        "one_pass": lambda: [
            max(lengths(untaught, "1x1")) < max(lengths(untaught, "1x4")) < min(lengths(untaught, "1x8")),
            max(lengths(untaught, "1x8")) < 2.5 * min(lengths(untaught, "1x1")),
        ],
        "clock_one_pass": lambda: [
            min(lengths(clock, "1x1")) == max(lengths(clock, "1x1")) < min(lengths(clock, "1x2"))
        ],
        "mixed_most": lambda: [
            min(lengths(all_lengths, "1x64")) < 16,
            32 < max(lengths(all_lengths, "1x64")) < min(lengths(taught, "1x64")),
            min(lengths(taught, "1x64")) == 64,
            max(taught.errors("1x64", 15, 16)) < 0.1 < min(taught.errors("1x64", 15, 12)),
            min(lengths(taught, "1x64", 128)) == 64,
        ],
        "few_passes": lambda: [max(lengths(taught, "1x8")) <= 16],
        "taught_layers": lambda: [min(lengths(taught, "8x1")) == max(lengths(taught, "8x1")) < 9],
        "doubling_loop_least": lambda: [min(lengths(stepwise, "1x6-numbered")) >= 2 * max(lengths(untaught, "1x8"))],
        "doubling_layers_most": lambda: [max(lengths(stepwise, "6x1")) < min(lengths(stepwise, "1x6-numbered"))],
    }
    return Quantities(numbers, checks)
