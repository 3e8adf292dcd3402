"""What a pass is worth on text: characters at equal depth, stories, and the recurrence along the text."""

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import common, mean_interval
from rtx_core.report.values import Value
from study.analysis.iso_depth import IsoDepth
from study.analysis.language import Language, rate_gain, short_run_losses
from study.analysis.records import seeds_of
from study.analysis.wording import seeds
from study.folders import HIGHER, Folders

LOOPS = ("3x2-64", "2x3-64", "1x6-64")
NARROW = ("6x1-24", "6x1-32", "6x1-48")
LOWER = 0.0015  # than the usual learning rate
STANDARD = ("gpt-1", "gpt-2", "gpt-4", "gpt-6")
SHORT_RUNS = ("control", "control-8", "frailt", "relaxed", "three-part")  # of stories, at several rates
PUBLISHED = 0.46  # φ of Schwethelm et al.


def quantities(
    characters: list[Record],
    longer: list[Record],
    stories: list[Record],
    stories_higher: list[Record],
    stories_short: list[Record],
    along: list[Record],
    along_short: list[Record],
    along_wide: list[Record],
    along_full: list[Record],
) -> Quantities:
    """Of runs on characters at several learning rates, and with four times the text; on stories at one rate, at twice
    that, and at several in short runs; of the recurrence along the text and standard models to the
    end, at two rates in short runs, of twice the width, and of its author's size."""
    runs = Folders.among([*characters, *stories, *stories_higher])
    one_rate, own_rates = Language(stories, "stories"), runs.stories_at_own_rates()
    recurrence, recurrence_wide = Language(along, "characters"), Language(along_wide, "wide models of characters")
    recurrence_full = Language(along_full, "the study's models of characters")

    def iso() -> IsoDepth:
        return runs.iso_depth()

    def tuned() -> IsoDepth:
        """With the best of three rates, of one seed."""
        return runs.iso_depth_at_best_rates(1, LOWER, HIGHER[0])

    def best() -> IsoDepth:
        """With the best of three rates, of three seeds at width 64."""
        return runs.iso_depth_at_best_rates(3, *HIGHER)

    def long() -> IsoDepth:
        return IsoDepth(longer)

    def three_part(model: str) -> float:
        return IsoDepth(runs.records("iso-depth"), ("three-part",)).worth(model)[0]

    def layers(model: str) -> Value:
        """φ in layers."""
        return runs.worth_in_layers(model)

    def tuned_layers(model: str) -> Value:
        """φ in layers with the best of three rates for each model."""
        return runs.worth_in_layers(model, *HIGHER)

    def gain_of_rate(model: str) -> float:
        """Nats that the best of three rates brings over the usual one, on seeds 0 to 2."""
        return runs.text_loss(model) - runs.text_loss(model, *HIGHER)

    def bound(value: Value, end: str) -> float:
        return {"": float(value), "_low": value.low, "_high": value.high}[end]

    def fall() -> Value:
        """φ after the usual training minus φ after the longer one, paired by seed."""
        pairs = zip(runs.iso_depth(3).by_seed(*LOOPS), long().by_seed(*LOOPS))
        return Value(*mean_interval([a - b for a, b in pairs]), form=".2f")

    def more_weights(model: str) -> str:
        """Than Control."""
        return number(one_rate.weights(model) / one_rate.weights("control") - 1, ".0%")

    def gained(model: str) -> list[float]:
        """Nats that twice the learning rate is ahead at the end, by seed."""
        pairs = common(one_rate.of(model), own_rates.of(model))
        return [once["test"]["loss"] - twice["test"]["loss"] for once, twice in pairs]

    def gain_in_short_runs(model: str) -> float:
        return rate_gain(stories_short, model, 0.008)

    def ahead(runs: Language, model: str, control: str) -> str:
        """On how many seeds."""
        return words(sum(gap < 0 for gap in runs.gaps(model, control)))

    def early_lead(rate: float) -> float:
        """Nats by which the recurrence leads the best standard model in short runs."""
        losses = short_run_losses(along_short)
        return min(losses[model][rate] for model in STANDARD) - losses["kausik"][rate]

    def gain_of_recurrence_runs(model: str) -> float:
        return rate_gain(along_short, model, 0.003)

    numbers = {
        "layers_for_six_passes": lambda: number(6 ** layers("1x6-64"), ".1f"),
        "phi_64": lambda: number(iso().phi.at_64.value, ".2f"),
        "phi_128": lambda: number(iso().phi.at_128.value, ".2f"),
        # Six layer applications, shared out
        "weights_for_six_passes": lambda: number(6 ** iso().phi.of_1x6.value, ".1f"),
        "phi": lambda: number(iso().phi.of_all.value, ".2f"),
        "phi_low": lambda: number(iso().phi.of_all.low, ".2f"),
        "phi_high": lambda: number(iso().phi.of_all.high, ".2f"),
        "seeds": lambda: words(len(iso().by_seed("3x2-64"))),
        "phi_64_low": lambda: number(iso().phi.at_64.low, ".2f"),
        "phi_64_high": lambda: number(iso().phi.at_64.high, ".2f"),
        "phi_128_low": lambda: number(iso().phi.at_128.low, ".2f"),
        "phi_128_high": lambda: number(iso().phi.at_128.high, ".2f"),
        "tuned_seeds": lambda: seeds(len(tuned().by_seed("3x2-64"))),
        "tuned_phi_64": lambda: number(tuned().phi.at_64.value, ".2f"),
        "tuned_phi_128": lambda: number(tuned().phi.at_128.value, ".2f"),
        "stack_seeds": lambda: seeds(len(runs.hops("iso-depth").of("1x1-64"))),
        **{
            f"{name}_{loop}{end}": lambda of=of, loop=loop, end=end: number(bound(of(f"{loop}-64"), end), ".2f")
            for name, of in (("layers", layers), ("tuned_layers", tuned_layers))
            for loop in ("1x6", "2x3", "3x2")
            for end in ("", "_low", "_high")
        },
        "tuned_for_six_passes": lambda: number(6 ** tuned_layers("1x6-64"), ".1f"),
        "tuned_for_six_low": lambda: number(6 ** tuned_layers("1x6-64").low, ".1f"),
        "tuned_for_six_high": lambda: number(6 ** tuned_layers("1x6-64").high, ".1f"),
        "rated_seeds": lambda: seeds(len(best().by_seed("3x2-64"))),
        "best_phi": lambda: number(best().phi.at_64.value, ".2f"),
        "best_phi_low": lambda: number(best().phi.at_64.low, ".1f"),
        "best_phi_high": lambda: number(best().phi.at_64.high, ".1f"),
        "longer_seeds": lambda: seeds(len(long().by_seed("3x2-64"))),
        "longer_phi": lambda: number(long().phi.of_all.value, ".2f"),
        "longer_phi_fall": lambda: str(fall()),
        # Stories
        "times_the_text": lambda: number(one_rate.tokens("control-long") / one_rate.tokens("control"), ".1f"),
        "relaxed_weights": lambda: more_weights("relaxed"),
        "three_part_weights": lambda: more_weights("three-part"),
        "three_layers_weights": lambda: more_weights("control-3"),
        "three_layers_ahead": lambda: ahead(one_rate, "control-3", "three-part"),  # of Three Part
        "story_seeds": lambda: words(len(one_rate.gaps("control-3", "three-part"))),
        "short_seeds": lambda: seeds(len(seeds_of(stories_short))),
        "own_rate_seeds": lambda: seeds(len(gained("control"))),
        "frailt_lead": lambda: number(one_rate.gap("control", "frailt"), ".3f"),
        "frailt_own_rate_lead": lambda: number(own_rates.gap("control", "frailt"), ".3f"),  # of Relaxed
        "frailt_share": lambda: number(one_rate.gap("control", "frailt") / one_rate.gap("control", "control-8"), ".0%"),
        # Along the text
        "recurrence_seeds": lambda: words(len(recurrence.gaps("gpt-2", "kausik"))),
        "wide_recurrence": lambda: seeds(len(seeds_of(along_wide))),
    }
    checks = {
        "tuned_for_six_passes": lambda: [
            tuned_layers("1x6-64") < layers("1x6-64"),
            all(tuned_layers(f"{loop}-64").low < 0 for loop in ("1x6", "2x3", "3x2")),
            max(tuned_layers(f"{loop}-64") for loop in ("1x6", "2x3", "3x2")) < 0.2,
            min(gain_of_rate(f"{n}x1-64") for n in (1, 2, 3))
            > max(gain_of_rate(f"{loop}-64") for loop in ("1x6", "2x3", "3x2")),
        ],
        "layers_for_six_passes": lambda: [
            layers("1x6-64").low > 0,
            0 < layers("1x6-64") < runs.iso_depth(3).phi.at_64.value,
            iso().phi.of_all.low > 0,
            0.29 < iso().phi.of_all.value < 0.41,
            iso().phi.of_all.high < 1,
            best().phi.at_64.low < 0,
            iso().phi.in_width.low > 0,
        ],
        "more_sharing_is_worse": lambda: [iso().in_order],
        "phi": lambda: [
            iso().phi.of_1x6.value < iso().phi.of_3x2.value,
            iso().phi.least.value > 0,
            iso().phi.in_width.low > 0,
            tuned().phi.at_64.value < tuned().phi.at_128.value,
            iso().phi.falls.low < 0,
        ],
        "layers_1x6": lambda: [
            min(layers("1x6-64").low, layers("2x3-64").low) > 0,
            6 ** layers("1x6-64").high < 2,
            max(map(layers, LOOPS)) < runs.iso_depth(3).phi.at_64.value - 0.1,
        ],
        "best_phi": lambda: [
            best().phi.at_64.low < 0 < PUBLISHED < best().phi.at_64.high,
            all(a < b for a, b in zip(best().by_seed(*LOOPS), runs.iso_depth(3).by_seed(*LOOPS))),
            runs.iso_depth(3).phi.at_64.value - best().phi.at_64.value > 0.05,
            all(best().rate(model) == HIGHER[0] for model in LOOPS),
            all(best().rate(model) == HIGHER[1] for model in NARROW),
        ],
        "longer_seeds": lambda: [len(long().by_seed(*LOOPS)) == 3],
        "longer_phi": lambda: [
            fall().low < 0 < fall(),
            all(a < b for a, b in zip(long().by_seed(*LOOPS), iso().by_seed(*LOOPS))),
        ],
        "three_part_beside_one_layer": lambda: [
            three_part("three-part-64") > iso().worth("1x6-64")[0],
            three_part("three-part-128") < iso().worth("1x6-128")[0],
        ],
        "stories_at_one_rate": lambda: [
            max(one_rate.gaps("frailt", "control")) < 0,
            max(max(one_rate.gaps(m, "frailt")) for m in ("control-8", "control-long")) < -0.05,
            max(max(one_rate.gaps(a, b)) for a in ("control-8", "control-long") for b in ("relaxed", "three-part")) < 0,
            one_rate.weights("frailt") < 1.01 * one_rate.weights("control"),
            one_rate.loss("control-8") < one_rate.loss("control-long"),
        ],
        "three_layers_ahead": lambda: [
            max(one_rate.gaps("relaxed", "control") + one_rate.gaps("three-part", "control")) < 0,
            max(one_rate.gaps("control-3", "relaxed")) < -0.02,
            sorted(one_rate.gaps("control-3", "three-part"))[1] < 0 < max(one_rate.gaps("control-3", "three-part")),
            one_rate.weights("relaxed") < one_rate.weights("control-3") < one_rate.weights("three-part"),
        ],
        "frailt_own_rate_lead": lambda: [
            gain_in_short_runs("frailt") < 0,
            min(gain_in_short_runs(model) for model in SHORT_RUNS if model != "frailt") > 0,
            min(gained("control")) > 0,
            0 < own_rates.gap("control", "frailt") < one_rate.gap("control", "frailt"),
        ],
        "recurrence_seeds": lambda: [
            max(recurrence.gaps("gpt-2", "kausik")) < 0 < min(recurrence.gaps("gpt-1", "kausik")),
            recurrence_full.gap("gpt-2", "kausik") < 0 < recurrence_full.gap("gpt-1", "kausik"),
            0 < early_lead(0.003) < early_lead(0.001),
            all(gain_of_recurrence_runs(model) > 0 for model in (*STANDARD, "kausik")),
        ],
        "wide_recurrence": lambda: [
            recurrence_wide.loss("gpt-2") < recurrence_wide.loss("kausik") < recurrence_wide.loss("gpt-1"),
            recurrence.gap("kausik-2", "gpt-2") < 0,
            min(recurrence.gap("kausik-w4", "kausik"), recurrence.gap("kausik-w8", "kausik-w4")) > 0,
        ],
    }
    return Quantities(numbers, checks)
