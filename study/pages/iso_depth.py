"""What a pass is worth on text: characters at equal depth, and other tasks on the same scale."""

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import mean_interval
from rtx_core.report.values import Value
from study.analysis import phi
from study.analysis.facts import Facts
from study.analysis.hops import Hops, logit
from study.analysis.iso_depth import IsoDepth
from study.analysis.records import test_loss
from study.analysis.wording import seeds
from study.folders import HIGHER, Folders

LOOPS = ("3x2-64", "2x3-64", "1x6-64")
NARROW = ("6x1-24", "6x1-32", "6x1-48")
LOWER = 0.0015  # than the usual learning rate
FACT_STACKS, HOP_STACKS = ("1x1", "2x1", "4x1"), ("1x1", "2x1", "3x1", "4x1")
PUBLISHED = 0.46  # φ of Schwethelm et al.


def quantities(
    characters: list[Record], longer: list[Record], facts: list[Record], pointers: list[Record]
) -> Quantities:
    """Of runs on characters at several learning rates, and with four times the text; and of runs on facts and pointers
    at one learning rate, for the same scale."""
    runs, memorized, khop = Folders.among(characters), Facts(facts), Hops(pointers, "k-hop")

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

    def facts_phi(model: str) -> tuple[float, float, float]:
        return phi.worth(memorized, model, FACT_STACKS, test_loss)

    def hops_phi(model: str) -> tuple[float, float, float]:
        return phi.worth(khop, model, HOP_STACKS, logit)

    def three_seeds() -> tuple[float, float, float]:
        """φ on pointers of one layer run four times, on seeds 5 to 7 alone."""
        runs = Hops([run for run in khop.records if run["seed"] in (5, 6, 7)], "k-hop")
        return phi.worth(runs, "1x4", HOP_STACKS, logit)

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
        # One scale for three tasks
        "phi_facts": lambda: number(facts_phi("1x4")[0], ".2f"),
        "phi_hops": lambda: number(hops_phi("1x4")[0], ".2f"),
        "phi_hops_low": lambda: number(hops_phi("1x4")[1], ".2f"),
        "phi_hops_high": lambda: number(hops_phi("1x4")[2], ".2f"),
        "three_seeds_low": lambda: number(three_seeds()[1], ".1f"),
        "three_seeds_high": lambda: number(three_seeds()[2], ".1f"),
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
        "phi_hops": lambda: [
            facts_phi("1x4")[2] < 0.15,
            facts_phi("2x2")[2] < 0.15,
            hops_phi("1x4")[1] > 0.5,
            0.9 < hops_phi("1x4")[2] < 1,
            2.7 < 4 ** hops_phi("1x4")[0] < 3.3,
            khop.error("2x2", 4) < khop.error("4x1", 4),
            facts_phi("1x4")[0] < layers("1x6-64").low,
            layers("1x6-64").high < hops_phi("1x4")[1],
        ],
        "three_seeds_low": lambda: [three_seeds()[1] < 0.6 and three_seeds()[2] > 1],
    }
    return Quantities(numbers, checks)
