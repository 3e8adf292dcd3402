"""If you build one: what practitioners ask, answered from the records."""

from collections.abc import Callable, Mapping
from statistics import mean, median

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import common
from rtx_core.report.values import Runs, Value
from study.analysis import cache, costs, rates, retrofit, stopping
from study.analysis.facts import Facts
from study.analysis.hops import AtOwnRates, Hops, Rounding, copying, wrong
from study.analysis.iso_depth import IsoDepth, best_of, rounding_cost, text_worth
from study.analysis.records import at_rate, gap_closed, multiply_adds, picked_on, test_loss
from study.analysis.wording import at_least, percent, seeds, span

HOPS, HARD_HOPS = 4, 8
RATE, RATES, HARD_RATES, TEXT_RATES = 0.002, (0.001, 0.002, 0.004, 0.008), (0.002, 0.004), (0.003, 0.006, 0.012)
SEVEN_LAYER = 4 * 4096**2 + 3 * 4096 * 11_008  # parameters of a layer of Llama 7B
GATE, ALIKE = 0.1, 10  # bonuses for the entropy of a gate's passes: some, and so much that all passes have the same
PICKING = 3  # the seed that picks the learning rates of wider models and of facts, and is reported nowhere


def quantities(
    hops: list[Record],
    longer: list[Record],
    hard: list[Record],
    wider: list[Record],
    facts: list[Record],
    saturated: list[Record],
    text: list[Record],
    reviews: list[Record],
    rounded: list[Record],
    rounded_text: list[Record],
    caches: list[Record],
    stops: list[Record],
    truncated: list[Record],
    in_turn: list[Record],
    muon: list[Record],
    retrofits: list[Record],
    gates: list[Record],
    narrow_six: list[Record],
    decoders: Mapping,
    quick: Mapping[str, Mapping[str, float]],
) -> Quantities:
    """Of runs on four hops, for longer, on eight hops and at width 256; on facts after 60 and 240 exposures; on
    characters and reviews; of what was measured of trained loops; of loops with truncated gradients, with the cache of
    the last pass and trained by Muon; of stacks turned into loops, loops with a halting gate and a stack of six narrow
    layers; what decoders cost (`benchmarks.loops`); and errors by task and model at the bench's quick budget."""
    khop = Hops(at_rate(hops, RATE), "k-hop")
    tuned = AtOwnRates(HOPS, *(Hops(at_rate(hops, rate), f"k-hop at {rate}") for rate in RATES))
    long = Hops(longer, "k-hop for longer")
    hard_tuned = AtOwnRates(HARD_HOPS, *(Hops(at_rate(hard, rate), f"eight hops at {rate}") for rate in HARD_RATES))
    once = Facts(at_rate(facts, RATE))
    rounding = Rounding(rounded, Runs(khop.records, "k-hop"))
    texts = [at_rate(text, rate) for rate in TEXT_RATES]

    def closed(runs: list[Record], once: str, twice: str, deep: str, measure: Callable[[Record], float]) -> float:
        return median(gap_closed(runs, once, twice, deep, measure))

    def wide(model: str, width: int = 256) -> list[float]:
        """Errors at four hops, without the seed that picked the rate."""
        runs = [run for run in wider if run["model"] == model and run["config"]["model"]["hidden_size"] == width]
        return Hops(picked_on(PICKING, runs), model).errors(model, HOPS)

    def stored(model: str) -> list[Record]:
        return picked_on(PICKING, [run for run in saturated if run["model"] == model])

    def bits(model: str) -> float:
        return Facts(stored(model)).bits(model)

    def flops(model: str) -> int:
        return multiply_adds(khop.of(model)[0])

    def fact_flops(model: str) -> int:
        """Of a fact, whose 768 possible answers make the output layer as costly as a layer."""
        return multiply_adds(stored(model)[0])

    def text_layers() -> Value:
        return text_worth("1x6-64", *texts)

    def phi():
        """In parameters, of one layer run six times, with the best of three rates for each model."""
        return IsoDepth(best_of(*texts, seeds=3), seeds=3).phi.of_1x6

    def best_hops() -> list[Record]:
        return [run for model in ("2x1", "2x2", "4x1") for run in tuned.runs(model)]

    def losses(model: str) -> float:
        return mean(run["test"]["loss"] for run in best_of(*texts, seeds=3) if run["model"] == model)

    def pairs() -> list[rates.Pair]:
        return rates.pairs(hops, hard, wider, facts, saturated, text, reviews)

    def long_pairs() -> list[rates.Pair]:
        return [pair for pair in pairs() if pair.passes > 2]

    def holds(power: float) -> int:
        return sum(pair.holds(power) for pair in pairs())

    def through(model: str, passes: int | str, injection: str = "none") -> list[Record]:
        """Trained with gradients through so many of the last passes; 0: through all."""
        switches = ((run, run["config"]["model"]) for run in truncated if run["model"] == model)
        return [
            run
            for run, model_config in switches
            if model_config.get("backprop_passes", 0) == passes and model_config.get("injection", "none") == injection
        ]

    def cut(passes: int | str) -> float:
        return mean(wrong(run, HOPS) for run in through("1x4", passes))

    def cut_products(passes: int) -> float:
        return mean(1 - run["test"]["accuracy"] for run in through("1x8", passes))

    def cut_text(passes: int | str, injection: str = "none") -> float:
        """By how many nats the loss on characters is higher than with gradients through all passes."""
        cut, every = (mean(map(test_loss, through("1x6-64", n, injection))) for n in (passes, 0))
        return cut - every

    def cached_last(model: str) -> list[Record]:
        """Trained with the keys and values of the last pass alone."""
        return [run for run in in_turn if run["model"] == model]

    def seconds(runs: list[Record]) -> float:
        return median(run["seconds"] for run in runs)

    def weights(runs: list[Record]) -> int:
        return runs[0]["parameters"]["non_embedding"]

    def in_pairs() -> list:
        """(with the cache of the last pass, with that of all) on characters, by seed."""
        return common(cached_last("1x6-64"), through("1x6-64", 0))

    def muon_text(model: str) -> float:
        return mean(map(test_loss, with_muon(model)))

    def with_muon(model: str) -> list[Record]:
        return picked_on(PICKING, [run for run in muon if run["model"] == model])

    def text_rounding(model: str, bits: int) -> float:
        measured = [one for one in rounded_text if "bits" in one.content]
        return rounding_cost(measured, [run for run in rounded_text if "bits" not in run.content], model, bits)

    def rule(training: str, name: str, hops: int) -> tuple[float, float]:
        """(passes, error), on average over seeds."""
        return stopping.mean_of(stops, training, name, hops)

    def six(bonus: float = 0) -> Hops:
        """One layer always trained with six passes, or with a gate and this bonus for the entropy of its passes."""
        return Hops([run for run in gates if run["config"]["model"].get("halting", 0) == bonus], "six passes")

    def random_short() -> Hops:
        """One layer trained with random passes for as many steps."""
        runs = [run for run in khop.records if run["model"] == "1x6-random" and run["seed"] in (5, 6, 7)]
        return Hops(runs, "random passes")

    def decoding(model: str, keeps: str = "all") -> float:
        return costs.token_ms(decoders, model, keeps)

    def injected(name: str) -> float:
        runs = Hops([run for run in khop.records if run["seed"] in (5, 6, 7, 8)], "injection")
        return runs.error(f"1x6-random{name}", HOPS)

    numbers = {
        # The table of choices
        "narrow_twice": lambda: percent(mean(tuned.errors("4x1-w44", new=True))),
        "cache_w44": lambda: number(cache.of_config(khop.of("4x1-w44")[0]), ","),
        "cache_2x2": lambda: number(cache.of_config(khop.of("2x2")[0]), ","),
        "hyper": lambda: number(quick["pointers"]["Hyper"], ".2%"),
        "quick_1x4": lambda: percent(quick["pointers"]["1x4"]),
        "many_exposures": lambda: number(saturated[0]["config"]["train"]["epochs"], "d"),
        "phi_times": lambda: number(6 ** phi().value, ".1f"),
        "phi_least": lambda: number(6 ** phi().low, ".1f"),
        "phi_most": lambda: number(6 ** phi().high, ".1f"),
        "text_layers": lambda: number(6 ** text_layers(), ".1f"),
        "twice": lambda: percent(mean(tuned.errors("2x2", new=True))),
        "in_turn_slower": lambda: number(
            median(run["seconds"] for run in cached_last("1x4")) / median(run["seconds"] for run in khop.of("1x4")),
            ".0f",
        ),
        "flops_w44": lambda: number(flops("4x1-w44") / flops("2x2"), ".2f"),
        "longer_w44": lambda: percent(max(long.errors("4x1-w44", HOPS))),
        "once_for_longer": lambda: percent(long.error("2x1", HOPS)),
        "wide_loop": lambda: percent(mean(wide("1x4"))),
        "wide_twice": lambda: percent(mean(wide("2x2"))),
        "passes_store": lambda: number(100 * (bits("1x4") / bits("1x1") - 1), ".0f"),
        "layer_stores": lambda: number(100 * (bits("2x1") / bits("1x1") - 1), ".0f"),
        "passes_cost": lambda: number(fact_flops("1x4") / fact_flops("1x1"), ".1f"),
        "layer_costs": lambda: number(fact_flops("2x1") / fact_flops("1x1"), ".1f"),
        "wide_layer_stores": lambda: number(100 * (bits("1x1-wide") / bits("1x1") - 1), ".0f"),
        "largest": lambda: number(max(run["parameters"]["total"] for run in (*wider, *hops, *text)) / 1e6, ".1f"),
        # Which column is yours?  The share of what twice as many layers gain that a second pass brings, in per cent
        "closed_hops": lambda: number(closed(khop.records, "2x1", "2x2", "4x1", lambda run: wrong(run, HOPS)), ".0f"),
        "closed_hops_tuned": lambda: number(
            closed(best_hops(), "2x1", "2x2", "4x1", lambda run: wrong(run, HOPS)), ".0f"
        ),
        "closed_text_tuned": lambda: number(
            closed(best_of(*texts, seeds=3), "3x1-64", "3x2-64", "6x1-64", test_loss), ".0f"
        ),
        "closed_facts": lambda: number(closed(once.records, "2x1", "2x2", "4x1", test_loss), ".0f"),
        "closed_text": lambda: number(closed(texts[0], "3x1-64", "3x2-64", "6x1-64", test_loss), ".0f"),
        # KV cache
        "in_turn_wrong": lambda: number(max(wrong(run, HOPS) for run in cached_last("1x4")), ".3%"),
        "in_turn_seeds": lambda: seeds(len(cached_last("1x4"))),
        "in_turn_tokens": lambda: str(1 + cached_last("1x4")[0]["config"]["data"]["letters"]),
        "in_turn_text": lambda: number(mean(test_loss(a) for a, _ in in_pairs()), ".2f"),
        "in_turn_from": lambda: number(mean(test_loss(b) for _, b in in_pairs()), ".2f"),
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
        # Passes at test time, and stopping
        "gate_three_most": lambda: percent(max(six(GATE).errors("1x6", 3, 6))),
        "alike_least": lambda: percent(min(six(ALIKE).errors("1x6", HOPS, 6))),
        "alike_most": lambda: percent(max(six(ALIKE).errors("1x6", HOPS, 6))),
        "narrow_six": lambda: number(mean(wrong(run, HOPS) for run in picked_on(PICKING, narrow_six)), ".2%"),
        "always_wrong": lambda: number(six().error("1x6", HOPS, 6), ".3%"),
        # Rounding
        "round_loop": lambda: number(100 * rounding.cost("1x4", 4), ".0f"),
        "round_noise": lambda: number(100 * rounding.cost("1x4-noise", 4), ".1f"),
        # Muon
        "muon_once_least": lambda: at_least(min(wrong(run, HOPS) for run in with_muon("2x1"))),
        "muon_closed": lambda: span(
            gap_closed(
                [run for model in ("3x1-64", "3x2-64", "6x1-64") for run in with_muon(model)],
                *("3x1-64", "3x2-64", "6x1-64"),
                test_loss,
            ),
            "{:.0f}".format,
        ),
        "round_text_stack": lambda: number(text_rounding("6x1-64", 4), ".3f"),
        "round_text_loop": lambda: number(text_rounding("1x6-64", 4), ".3f"),
        # A stack turned into a loop
        "retrofit_seeds": lambda: seeds(len(retrofits)),
        "retrofit_rise": lambda: number(
            retrofit.best(retrofits, tenth=False) - retrofit.loss(retrofits, "stack", tenth=False), ".1f"
        ),
        "retrofit_behind": lambda: number(retrofit.best(retrofits) - retrofit.loss(retrofits, "stack"), ".2f"),
        "three_layers": lambda: number(losses("3x1-64"), ".2f"),
        "retrofit_one": lambda: number(retrofit.loss(retrofits, "third layer"), ".2f"),
        "retrofit_anew": lambda: number(retrofit.best(retrofits) - retrofit.anew(retrofits), ".2f"),
        # Back-propagation through fewer passes
        "inject_text": lambda: number(
            mean(map(test_loss, through("1x6-64", 0))) - mean(map(test_loss, through("1x6-64", 0, "linear"))), ".2f"
        ),
        "inject_more": lambda: number(
            100 * (weights(through("1x6-64", 0, "linear")) / weights(through("1x6-64", 0)) - 1), ".0f"
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
        "twice": lambda: [
            mean(tuned.errors("2x2", new=True)) < 0.01,
            mean(tuned.errors("2x2", new=True)) < mean(tuned.errors("4x1-w44", new=True)) < 0.05,
            tuned.unpaired("2x2", "4x1-w44").odds[2] > 1,
        ],
        "s3_1x4": lambda: [
            quick["s3"]["1x4"] < 0.8 * quick["s3"]["4x1-w32"],
            quick["s3"]["2x2"] < 0.8 * quick["s3"]["4x1-w44"],
        ],
        "hyper": lambda: [
            quick["pointers"]["Hyper"] < 0.5 * quick["pointers"]["1x4"],
            quick["s3"]["LSTM"] < 0.001 and quick["pointers"]["LSTM"] > 0.4,
        ],
        "wide_loop": lambda: [
            max(mean(wide("1x4")), mean(wide("4x1", 128))) < 0.01,
            mean(wide("2x1")) > 0.1,
            mean(wide("1x4")) < mean(wide("4x1")) < 0.05,
        ],
        "passes_store": lambda: [
            1.15 < bits("1x4") / bits("1x1") < 1.4,
            bits("1x4") < bits("1x1-wide") < bits("2x1"),
            1.05 < once.gain("1x4", "1x1") < 1.25,
        ],
        "text_layers": lambda: [text_layers().low < 0 < text_layers() < 0.3, phi().low < 0 < phi().value < 0.4],
        "once_for_longer": lambda: [
            long.error("2x1", HOPS) > 0.05,
            long.error("2x2", HOPS) < 0.001,
            max(khop.errors("2x2", HOPS)) < max(long.errors("4x1-w44", HOPS)),
        ],
        "closed_hops": lambda: [
            closed(khop.records, "2x1", "2x2", "4x1", lambda run: wrong(run, HOPS)) > 90,
            closed(texts[0], "3x1-64", "3x2-64", "6x1-64", test_loss) < 40,
            closed(once.records, "2x1", "2x2", "4x1", test_loss) < 15,
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
        "in_turn_wrong": lambda: [max(wrong(run, HOPS) for run in cached_last("1x4")) < min(khop.errors("1x4", HOPS))],
        "rate_same": lambda: [holds(0) > 0.7 * len(pairs()), holds(0) > holds(0.5), holds(0.5) >= holds(1)],
        "narrow_six": lambda: [
            max(six().errors("1x6", HOPS, 6)) < min(wrong(run, HOPS) for run in picked_on(PICKING, narrow_six)),
            max(wrong(run, HOPS) for run in picked_on(PICKING, narrow_six)) < 0.01,
        ],
        "always_wrong": lambda: [six().error("1x6", HOPS, 6) < 0.001, mean(hard_tuned.errors("1x6")) > 0.1],
        "fixed_run_on": lambda: [
            mean(long.errors("1x4", HOPS, 8)) > 0.05,
            mean(long.errors("1x6-random", HOPS, 12)) < 0.02,
        ],
        "confident_passes": lambda: [
            rule("random", "confident 0.99", HOPS)[1] < rule("random", "fixed 6", HOPS)[1] + 0.002,
            rule("random", "confident 0.99", 1)[0] < 2 < rule("random", "confident 0.99", HOPS)[0] < 5,
            rule("random", "agree", HOPS)[1] > 0.1,
        ],
        "fixed_confident_wrong": lambda: [
            rule("always four", "confident 0.99", HOPS)[1] > 1.5 * rule("always four", "fixed 4", HOPS)[1]
        ],
        "gate_wrong": lambda: [
            six(GATE).error("1x6", HOPS, 6) < 0.01 < random_short().error("1x6-random", HOPS, 6),
            six(GATE).error("1x6", HOPS, 12) < 0.01 < six().error("1x6", HOPS, 12),
            six().error("1x6", HOPS, 6) < six(GATE).error("1x6", HOPS, 6),
            rule("gate", "gate 0.3", HOPS)[1] < rule("gate", "fixed 6", HOPS)[1] + 0.003,
            rule("gate", "gate 0.3", 1)[0] < 3.5 < rule("gate", "gate 0.3", HOPS)[0] < 5.5,
            rule("gate", "confident 0.99", HOPS)[1] > 0.1,
            min(six().errors("1x6", HOPS, 4)) > 0.1,
        ],
        "alike_least": lambda: [
            max(six(GATE).errors("1x6", HOPS, 6)) < min(six(ALIKE).errors("1x6", HOPS, 6)),
            max(six(ALIKE).errors("1x6", HOPS, 6)) < min(random_short().errors("1x6-random", HOPS, 6)),
        ],
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
        "muon_once_least": lambda: [muon_text("6x1-64") < muon_text("3x2-64") < muon_text("3x1-64") < losses("6x1-64")],
        "retrofit_rise": lambda: [
            retrofit.best(retrofits, tenth=False) > 2.5,
            retrofit.loss(retrofits, "stack") < retrofit.anew(retrofits) < retrofit.best(retrofits) < 2.1,
            retrofit.best(retrofits) < retrofit.loss(retrofits, "anew") - 0.3,
            losses("3x1-64") < retrofit.best(retrofits) - 0.05,
        ],
        "decode_stack": lambda: [decoding("1x4") > 2 * decoding("1x1"), 0.7 < decoding("1x4") / decoding("4x1") < 1.15],
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
            mean(tuned.errors("2x2")) < mean(tuned.errors("1x4")),
            mean(wide("1x4")) < mean(wide("2x2")),
            mean(hard_tuned.errors("2x3")) < mean(hard_tuned.errors("1x6")),
            losses("3x2-64") < losses("2x3-64") < losses("1x6-64"),
        ],
    }
    return Quantities(numbers, checks)
