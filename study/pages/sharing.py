"""What sharing layers changes, and the advice of *If you build one*, which quotes these numbers."""

from collections.abc import Callable, Mapping
from statistics import mean, median

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import common
from study.analysis import cache, costs, rates, retrofit
from study.analysis.hops import Hops, Rounding, copying, wrong
from study.analysis.iso_depth import best_of, rounding_cost
from study.analysis.records import gap_closed, mean_loss, multiply_adds, test_loss
from study.analysis.wording import at_least, percent, seeds
from study.folders import HIGHER, Folders

HOPS = 4
WIDTHS = (128, 256, 512, 1024)  # of which the time of a token was measured
SEVEN_LAYER = 4 * 4096**2 + 3 * 4096 * 11_008  # parameters of a layer of Llama 7B
Models = tuple[str, str, str]  # layers run once and twice, and a stack as deep
TEXT: Models = ("3x1-64", "3x2-64", "6x1-64")


def quantities(
    trained: list[Record], measured: list[Record], decoders: Mapping, quick: Mapping[str, Mapping[str, float]]
) -> Quantities:
    """Of all runs that the page shows; of what was measured of trained models; what decoders cost (`benchmarks.loops`);
    and errors by task and model at the bench's quick budget."""
    runs = Folders.among(trained)
    khop, long = runs.hops("khop"), runs.hops("khop-steps12000")
    hard_tuned = runs.khop_hard_at_best_rates()

    def of_kind(kind: str, of: str = "") -> list[Record]:
        return [one for one in measured if one["kind"] == kind and of in ("", one["of"])]

    rounding = Rounding(of_kind("quantized", "khop"), khop)
    caches, retrofits = map(of_kind, ("cache", "retrofit"))

    def four_hops(run: Record) -> float:
        return wrong(run, HOPS)

    def closed(runs: list[Record], measure: Callable[[Record], float], models: Models = ("2x1", "2x2", "4x1")) -> float:
        """By layers that are run twice, in per cent."""
        return mean(gap_closed(runs, *models, measure, average=mean))

    def bits(model: str) -> float:
        return runs.saturated().bits(model)

    def flops(model: str) -> int:
        return multiply_adds(khop.of(model)[0])

    def fact_flops(model: str) -> int:
        """Of a fact, whose 768 possible answers make the output layer as costly as a layer."""
        return multiply_adds(runs.saturated().of(model)[0])

    def best_hops() -> list[Record]:
        return [run for model in ("2x1", "2x2", "4x1") for run in runs.again(model)]

    def text_again() -> list[Record]:
        """On ten seeds that picked no rate."""
        return [run for model in TEXT for run in runs.text_again(model)]

    def text(*rates: float) -> list[Record]:
        """On three seeds, at 3e-3 or each at the best of this and other rates."""
        return best_of(runs.iso_depth_at_rates(*rates), seeds=3)

    def losses(model: str) -> float:
        return runs.text_loss(model, *HIGHER)

    def pairs() -> list[rates.Pair]:
        return rates.pairs(trained)

    def long_pairs() -> list[rates.Pair]:
        return [pair for pair in pairs() if pair.passes > 2]

    def holds(power: float) -> int:
        return sum(pair.holds(power) for pair in pairs())

    def cut(passes: int | str) -> float:
        """With gradients through so many of the last passes."""
        return runs.hops(f"khop-backproppasses{passes}").error("1x4", HOPS)

    def cut_products(passes: int) -> float:
        name = "state-tracking" + f"-backproppasses{passes}" * (passes > 0)
        return mean(1 - run["test"]["accuracy"] for run in runs.hops(name).of("1x8"))

    def cut_text(passes: int, injection: str = "none") -> float:
        """By how many nats the loss on characters is higher than with gradients through all passes."""
        return runs.text_loop(passes, injection) - runs.text_loop(0, injection)

    def cached_last() -> list[Record]:
        """Trained with the keys and values of the last pass alone."""
        return runs.hops("khop-cachelast").of("1x4")

    def in_pairs() -> list:
        """(with the cache of the last pass, with that of all) on characters, by seed."""
        return common(*(runs.hops(name).of("1x6-64") for name in ("iso-depth-cachelast", "iso-depth")))

    def text_weights(name: str) -> int:
        return runs.hops(name).weights("1x6-64")

    def muon_text(model: str) -> list[Record]:
        return runs.with_muon("iso-depth", model)

    def text_rounding(model: str, bits: int) -> float:
        return rounding_cost(of_kind("quantized", "iso-depth"), runs.records("iso-depth"), model, bits)

    def six() -> Hops:
        """One layer always trained with six passes."""
        return runs.hops("khop-steps4000")

    def decoding(model: str, keeps: str = "all") -> float:
        return costs.token_ms(decoders, model, keeps)

    def token_ms(model: str, width: int) -> float:
        return costs.wide_token_ms(decoders, model, width)

    def injected(name: str) -> float:
        runs = Hops([run for run in khop.records if run["seed"] in (5, 6, 7, 8)], "injection")
        return runs.error(f"1x6-random{name}", HOPS)

    numbers = {
        # The table of choices
        "cache_six": lambda: number(cache.of_config(runs.narrow_six()[0]), ","),
        "cache_all": lambda: number(cache.of_config(khop.of("1x4")[0]), ","),
        "cache_last": lambda: number(cache.of_config(cached_last()[0]), ","),
        "hyper": lambda: number(quick["pointers"]["Hyper"], ".2%"),
        "quick_1x4": lambda: percent(quick["pointers"]["1x4"]),
        "many_exposures": lambda: number(runs.saturated().records[0]["config"]["train"]["epochs"], "d"),
        "in_turn_slower": lambda: number(
            median(run["seconds"] for run in cached_last()) / median(run["seconds"] for run in khop.of("1x4")), ".0f"
        ),
        "once_for_longer": lambda: percent(long.error("2x1", HOPS)),
        "wide_loop": lambda: percent(runs.wider("1x4")),
        "wide_twice": lambda: percent(runs.wider("2x2")),
        "passes_store": lambda: number(100 * (bits("1x4") / bits("1x1") - 1), ".0f"),
        "layer_stores": lambda: number(100 * (bits("2x1") / bits("1x1") - 1), ".0f"),
        "passes_cost": lambda: number(fact_flops("1x4") / fact_flops("1x1"), ".1f"),
        "layer_costs": lambda: number(fact_flops("2x1") / fact_flops("1x1"), ".1f"),
        "wide_layer_stores": lambda: number(100 * (bits("1x1-wide") / bits("1x1") - 1), ".0f"),
        # Which column is yours?  The share of what twice as many layers gain that a second pass brings, in per cent
        "closed_hops_tuned": lambda: number(closed(best_hops(), four_hops), ".0f"),
        "closed_text_tuned": lambda: number(closed(text_again(), test_loss, TEXT), ".0f"),
        "closed_facts": lambda: number(closed(runs.facts().records, test_loss), ".0f"),
        # KV cache
        "in_turn_wrong": lambda: number(max(map(four_hops, cached_last())), ".3%"),
        "in_turn_seeds": lambda: seeds(len(cached_last())),
        "in_turn_tokens": lambda: str(1 + cached_last()[0]["config"]["data"]["letters"]),
        "in_turn_text": lambda: number(mean(test_loss(a) for a, _ in in_pairs()), ".2f"),
        "in_turn_from": lambda: number(mean(test_loss(b) for _, b in in_pairs()), ".2f"),
        **{
            f"ms_{model}_{width}": lambda model=model, width=width: number(token_ms(model, width), ".1f")
            for model, widths in (
                *((each, WIDTHS[1:]) for each in ("1x1", "1x4")),
                *((each, (256,)) for each in ("1x2", "2x1", "2x2")),
                ("4x1", WIDTHS),
            )
            for width in widths
        },
        "layer_megabytes": lambda: number(costs.weight_bytes(decoders, "1x1", 512) / 1e6, ".0f"),
        "decode_loop": lambda: number(decoding("1x4") / decoding("1x1"), ".1f"),
        # A model of 7 billion parameters, by the same arithmetic: 32 layers, 16 bits, 4,096 tokens of context, in GB
        "seven_weights": lambda: number(2 * 32 * SEVEN_LAYER / 1e9, ".0f"),
        "seven_looped": lambda: number(2 * 8 * SEVEN_LAYER / 1e9, ".1f"),
        "seven_cache": lambda: number(4096 * cache.size(32, 1, 4096, 2) / 1e9, ".1f"),
        # Learning rate
        "pairs": lambda: str(len(pairs())),
        "rate_same": lambda: str(holds(0)),
        "rate_root": lambda: str(holds(0.5)),
        "rate_divided": lambda: str(holds(1)),
        "long_pairs": lambda: words(len(long_pairs())),
        "long_same": lambda: str(sum(pair.holds(0) for pair in long_pairs())),
        "long_root": lambda: str(sum(pair.holds(0.5) for pair in long_pairs())),
        "long_divided": lambda: str(sum(pair.holds(1) for pair in long_pairs())),
        "narrow_six": lambda: number(mean(map(four_hops, runs.narrow_six())), ".2%"),
        "six_steps": lambda: number(six().of("1x6")[0]["config"]["train"]["steps"], ","),
        "always_wrong": lambda: number(six().error("1x6", HOPS, 6), ".3%"),
        # Rounding
        "round_loop": lambda: number(100 * rounding.cost("1x4", 4), ".0f"),
        "round_noise": lambda: number(100 * rounding.cost("1x4-noise", 4), ".1f"),
        # Muon
        "muon_once_least": lambda: at_least(min(map(four_hops, runs.with_muon("khop", "2x1")))),
        "round_text_stack": lambda: number(text_rounding("6x1-64", 4), ".3f"),
        "round_text_loop": lambda: number(text_rounding("1x6-64", 4), ".3f"),
        # A stack turned into a loop
        "retrofit_seeds": lambda: seeds(len(retrofits)),
        "retrofit_rise": lambda: number(
            retrofit.best(retrofits, tenth=False) - retrofit.loss(retrofits, "stack", tenth=False), ".2f"
        ),
        "retrofit_behind": lambda: number(retrofit.best(retrofits) - retrofit.loss(retrofits, "stack"), ".2f"),
        "three_layers": lambda: number(losses("3x1-64"), ".2f"),
        "retrofit_one": lambda: number(retrofit.loss(retrofits, "third layer"), ".2f"),
        "retrofit_anew": lambda: number(retrofit.best(retrofits) - retrofit.anew(retrofits), ".2f"),
        # Back-propagation through fewer passes
        "inject_text": lambda: number(runs.text_loop() - runs.text_loop(injection="linear"), ".2f"),
        "inject_more": lambda: number(
            100 * (text_weights("iso-depth-injectionlinear") / text_weights("iso-depth") - 1), ".0f"
        ),
        "cut_text_one": lambda: number(cut_text(1), ".1f"),
        "cut_injected_two": lambda: number(cut_text(2, "linear"), ".2f"),
        "cut_injected_one": lambda: number(cut_text(1, "linear"), ".2f"),
        # What training costs
        "flops_loop": lambda: number(flops("1x4") / flops("1x1"), ".2f"),
        "kept_loop": lambda: number(costs.kept_kib(decoders, "1x4"), ".0f"),
        "recomputed_loop": lambda: number(costs.kept_kib(decoders, "1x4", "recomputed"), ".0f"),
        "recompute_time": lambda: number(costs.recompute_time(decoders, "1x4"), ".2f"),
    }
    checks = {
        "s3_1x4": lambda: [
            quick["s3"]["1x4"] < 0.8 * quick["s3"]["4x1-w32"],
            quick["s3"]["2x2"] < 0.8 * quick["s3"]["4x1-w44"],
        ],
        "hyper": lambda: [
            quick["pointers"]["Hyper"] < 0.5 * quick["pointers"]["1x4"],
            quick["s3"]["LSTM"] < 0.001 and quick["pointers"]["LSTM"] > 0.4,
        ],
        "wide_loop": lambda: [
            max(runs.wider("1x4"), runs.wider("4x1", 128)) < 0.01,
            runs.wider("2x1") > 0.1,
            runs.wider("1x4") < runs.wider("4x1") < 0.05,
        ],
        "passes_store": lambda: [
            1.15 < bits("1x4") / bits("1x1") < 1.4,
            bits("1x4") < bits("1x1-wide") < bits("2x1"),
            1.05 < runs.facts().gain("1x4", "1x1") < 1.25,
        ],
        "once_for_longer": lambda: [
            long.error("2x1", HOPS) > 0.05,
            long.error("2x2", HOPS) < 0.001,
            max(khop.errors("2x2", HOPS)) < max(long.errors("4x1-w44", HOPS)),
        ],
        "closed_facts": lambda: [
            closed(best_hops(), four_hops) > 90,
            closed(text_again(), test_loss, TEXT) < 25,
            closed(runs.facts().records, test_loss) < 15,
        ],
        "cache_loop": lambda: [
            cache.bytes_per_token(caches, "1x4", "all") == 4 * cache.bytes_per_token(caches, "1x4", "last"),
            all(
                cache.bytes_per_token(caches, model, "all") == cache.of_config(khop.of(model)[0])
                for model in ("1x4", "2x2")
            ),
        ],
        "last_least": lambda: [
            min(cache.hop_errors(caches, "1x4", "last", HOPS)) > 0.6,
            min(cache.loss_rise(caches, model) for model in ("2x3-64", "1x6-64")) > 0.5,
        ],
        "in_turn_wrong": lambda: [max(map(four_hops, cached_last())) < min(khop.errors("1x4", HOPS))],
        "rate_same": lambda: [holds(0) > 0.7 * len(pairs()), holds(0) > holds(0.5), holds(0.5) >= holds(1)],
        "narrow_six": lambda: [
            max(six().errors("1x6", HOPS, 6)) < min(map(four_hops, runs.narrow_six())),
            max(map(four_hops, runs.narrow_six())) < 0.01,
        ],
        "always_wrong": lambda: [six().error("1x6", HOPS, 6) < 0.001, mean(hard_tuned.errors("1x6")) > 0.1],
        "injection": lambda: [
            injected("-linear") < min(injected(name) for name in ("", "-norm", "-add", "-add-norm", "-linear-norm")),
            injected("-add") > injected("") > injected("-norm") > injected("-add-norm"),
        ],
        "round_loop": lambda: [
            max(abs(rounding.cost(model, 8)) for model in ("1x4", "2x2", "4x1")) < 0.001,
            rounding.cost("1x4", 4) > 0.05,
            max(rounding.cost("2x2", 4), rounding.cost("4x1", 4)) < 0.01,
            rounding.cost("1x4-noise", 4) < rounding.cost("1x4", 4) / 2,
        ],
        "round_text_loop": lambda: [
            max(text_rounding(model, 8) for model in ("1x6-64", "6x1-64")) < 0.003,
            2.7 < text_rounding("1x6-64", 4) / text_rounding("6x1-64", 4) < 3.3,
        ],
        "muon_once_least": lambda: [
            mean_loss(muon_text("6x1-64")) < mean_loss(muon_text("3x2-64")) < mean_loss(muon_text("3x1-64")),
            mean_loss(muon_text("3x1-64")) < losses("6x1-64"),
        ],
        "retrofit_rise": lambda: [
            retrofit.best(retrofits, tenth=False) > 2.5,
            retrofit.loss(retrofits, "stack") < retrofit.anew(retrofits) < retrofit.best(retrofits) < 2.1,
            retrofit.best(retrofits) < retrofit.loss(retrofits, "anew") - 0.3,
            losses("3x1-64") < retrofit.best(retrofits) - 0.05,
        ],
        "decode_stack": lambda: [
            decoding("1x4") > 2 * decoding("1x1"),
            0.7 < decoding("1x4") / decoding("4x1") < 1.15,
            all(token_ms("1x4", width) < 1.15 * token_ms("4x1", width) for width in WIDTHS),
            all(token_ms("1x4", width) < 0.8 * token_ms("4x1", width) for width in (256, 512)),
            token_ms("1x4", 1024) > 0.9 * token_ms("4x1", 1024),
            token_ms("2x1", 256) < 1.15 * token_ms("1x2", 256),
            token_ms("4x1", 128) < token_ms("1x4", 256),
            all(token_ms("4x1", width // 2) < 0.85 * token_ms("1x4", width) for width in WIDTHS[1:]),
        ],
        "kept_loop": lambda: [
            costs.kept_kib(decoders, "1x4") == costs.kept_kib(decoders, "4x1"),
            costs.kept_kib(decoders, "1x4", "recomputed") < costs.kept_kib(decoders, "1x4") / 5,
            1.1 < costs.recompute_time(decoders, "1x4") < 1.6,
        ],
        "cut_text_one": lambda: [
            cut(1) > copying(HOPS, HOPS - 2),
            cut_products(1) > 0.8 > cut_products(0),
            cut_text(1) > 0.5,
        ],
        "cut_injected_two": lambda: [cut_text(2, "linear") < cut_text(1, "linear") < 0.5 * cut_text(2)],
        "shapes": lambda: [
            mean(map(four_hops, runs.again("2x2"))) < mean(map(four_hops, runs.again("1x4"))),
            runs.wider("1x4") < runs.wider("2x2"),
            mean(hard_tuned.errors("2x3")) < mean(hard_tuned.errors("1x6")),
            losses("3x2-64") < losses("2x3-64") < losses("1x6-64"),
        ],
    }
    return Quantities(numbers, checks)
