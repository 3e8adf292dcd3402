"""What a pass is worth on text: characters at equal depth."""

from collections.abc import Callable
from statistics import mean, median

from rtx_core.records import Record
from rtx_core.report import number, p_value
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.rates import learning_rate
from rtx_core.report.statistics import mean_interval, unpaired
from rtx_core.report.values import Value
from study.analysis.iso_depth import IsoDepth
from study.analysis.records import gap_closed, mean_loss, pass_share, test_loss
from study.analysis.wording import p_in_words, seeds, span
from study.folders import HIGHER, Folders

LOOPS = ("3x2-64", "2x3-64", "1x6-64")
MUON = ("3x1-64", "3x2-64", "6x1-64")
NARROW = ("6x1-24", "6x1-32", "6x1-48")
PUBLISHED = 0.46  # φ of Schwethelm et al.


def quantities(characters: list[Record], longer: list[Record], again: list[Record], wide: list[Record]) -> Quantities:
    """Of runs on characters at several learning rates, with four times the steps, on new seeds, and of width 256."""
    runs = Folders.among([*characters, *again, *wide])

    def iso() -> IsoDepth:
        return runs.iso_depth()

    def best() -> IsoDepth:
        """With the best of three rates, of three seeds at width 64."""
        return runs.iso_depth_at_best_rates(3, *HIGHER)

    def long() -> IsoDepth:
        return IsoDepth(longer)

    def layers(model: str) -> Value:
        """φ in layers."""
        return runs.worth_in_layers(model)

    def gain_of_rate(model: str) -> float:
        """Nats that the best of three rates brings over the usual one, on seeds 0 to 2."""
        return runs.text_loss(model) - runs.text_loss(model, *HIGHER)

    def muon(model: str) -> list[Record]:
        """At the better of two rates, on seeds that did not pick it."""
        return runs.with_muon("iso-depth", model)

    def muon_losses(model: str) -> list[float]:
        return list(map(test_loss, muon(model)))

    def muon_closed() -> list[float]:
        """What a second pass of three layers brings of what three more layers bring, in per cent, by seed."""
        return gap_closed([run for model in MUON for run in muon(model)], *MUON, test_loss, mean)

    def size(looped: list[Record]) -> int:
        return looped[0]["parameters"]["non_embedding"]

    def injected_gain() -> tuple[float, ...]:
        """Nats that an injected loop saves over one layer, each at its own rate: `unpaired`."""
        return compared(runs.text_again("1x1-64"), runs.injected_again())

    def compared(first: list[Record], second: list[Record]) -> tuple[float, ...]:
        """How many nats more the first have: `unpaired`."""
        return unpaired(*([test_loss(run) for run in each] for each in (first, second)))

    def new(model: str) -> list[Record]:
        return runs.text_again(f"{model}-64")

    def split_steps() -> list[Record]:
        """Two narrow layers with the parameters of one, for the steps of all models."""
        return runs.split("text", False)

    def split() -> list[Record]:
        """The same for the multiply-adds of the layer run twice."""
        return runs.split("text", True)

    def longer_single() -> list[Record]:
        """One layer for the multiply-adds of the layer run twice."""
        return runs.longer_single("text")

    def good_injected() -> list[float]:
        """Losses of injected loops on new seeds that are below those of all single layers."""
        worst = min(map(test_loss, new("1x1")))
        return [loss for loss in map(test_loss, runs.injected_again()) if loss < worst]

    def closed(of: Callable[[str], list[Record]]) -> float:
        """What a second pass of three layers saves of what three more layers save."""
        once, twice, six = (mean_loss(of(model)) for model in ("3x1", "3x2", "6x1"))
        return (once - twice) / (once - six)

    def share(of: Callable[[str], list[Record]]) -> float:
        """What a second pass of one layer saves of what a second layer saves."""
        return pass_share(lambda model: mean_loss(of(model)))

    def worth(of: Callable[[str], Value], loop: str, end: str) -> float:
        """The layers of the stack that has the loop's loss, or an end of their interval."""
        stored, passes = map(int, loop.split("x"))
        exponent = of(f"{loop}-64")
        return stored * passes ** {"": float(exponent), "_low": exponent.low, "_high": exponent.high}[end]

    def fall() -> Value:
        """φ after the usual training minus φ after the longer one, paired by seed."""
        pairs = zip(runs.iso_depth(3).by_seed(*LOOPS), long().by_seed(*LOOPS))
        return Value(*mean_interval([a - b for a, b in pairs]), form=".2f")

    def three():
        """φ of all loops on the first three seeds."""
        return runs.iso_depth(3).phi.of_all

    numbers = {
        **{
            f"{key}_{model}": lambda of=of, model=model: number(mean_loss(of(model)), ".3f")
            for key, of in (("new", new), ("wide", runs.wide_text))
            for model in ("1x1", "1x2", "1x6", "2x1", "2x3", "3x1", "3x2", "6x1")
            if (key, model) != ("new", "2x3")
        },
        **{
            f"{key}_1x2_p": lambda of=of: p_in_words(compared(of("1x1"), of("1x2"))[3])
            for key, of in (("new", new), ("wide", runs.wide_text))
        },
        "shared_six_two_p": lambda: p_value(
            compared(*(runs.hops("iso-depth").of(f"{model}-64") for model in ("1x6", "1x2")))[3]
        ),
        "six_two_p": lambda: p_value(compared(new("1x6"), new("1x2"))[3]),
        "new_share": lambda: number(100 * share(new), ".0f"),
        **{
            f"tuning_{model}": lambda model=model: number(gain_of_rate(f"{model}-64"), ".3f")
            for model in ("1x1", "1x2", "1x6")
        },
        **{
            f"three_{end}gain": lambda place=place: number(compared(new("3x1"), new("3x2"))[place], ".3f")
            for place, end in enumerate(("", "low_", "high_"))
        },
        "wide_share": lambda: number(100 * share(runs.wide_text), ".0f"),
        # What else the computation of a second pass buys
        **{
            key: lambda trained=trained: number(mean_loss(trained()), ".3f")
            for key, trained in (("split_steps", split_steps), ("split", split), ("longer", longer_single))
        },
        "split_steps_p": lambda: p_in_words(compared(split_steps(), new("1x2"))[3]),
        "more_steps": lambda: number(split()[0]["config"]["train"]["steps"], ","),
        "longer_steps": lambda: number(longer_single()[0]["config"]["train"]["steps"], ","),
        "injected_plain_p": lambda: number(compared(runs.injected_again(), new("1x6"))[3], ".2g"),
        "injected_twice_p": lambda: number(compared(runs.injected_again(), new("1x2"))[3], ".2g"),
        "injected_good": lambda: words(len(good_injected())),
        "new_closed": lambda: number(100 * closed(new), ".0f"),
        "wide_closed": lambda: number(100 * closed(runs.wide_text), ".0f"),
        "new_seeds": lambda: words(len(new("1x1"))),
        "wide_seeds": lambda: words(len(runs.wide_text("1x1"))),
        "times_the_parameters": lambda: number(size(runs.wide_text("1x1")) / size(new("1x1")), ".0f"),
        "steps": lambda: number(runs.records("iso-depth")[0]["config"]["train"]["steps"], ","),
        "three_phi": lambda: number(three().value, ".2f"),
        "three_low": lambda: number(three().low, ".2f"),
        "three_high": lambda: number(three().high, ".2f"),
        "layers_for_six_passes": lambda: number(6 ** layers("1x6-64"), ".1f"),
        "phi_64": lambda: number(iso().phi.at_64.value, ".2f"),
        "phi_128": lambda: number(iso().phi.at_128.value, ".2f"),
        # Six layer applications, shared out
        "phi": lambda: number(iso().phi.of_all.value, ".2f"),
        "phi_low": lambda: number(iso().phi.of_all.low, ".2f"),
        "phi_high": lambda: number(iso().phi.of_all.high, ".2f"),
        "seeds": lambda: words(len(iso().by_seed("3x2-64"))),
        "phi_64_low": lambda: number(iso().phi.at_64.low, ".2f"),
        "phi_64_high": lambda: number(iso().phi.at_64.high, ".2f"),
        "phi_128_low": lambda: number(iso().phi.at_128.low, ".2f"),
        "phi_128_high": lambda: number(iso().phi.at_128.high, ".2f"),
        "stack_seeds": lambda: seeds(len(runs.hops("iso-depth").of("1x1-64"))),
        **{
            f"{name}_{loop}{end}": lambda of=of, loop=loop, end=end: number(worth(of, loop, end), ".1f")
            for name, of, loops in (
                ("layers", layers, ("1x2", "1x6", "2x3", "3x2")),
                ("new_layers", runs.worth_at_best_rate, ("1x2", "1x6", "3x2")),
            )
            for loop in loops
            for end in ("", "_low", "_high")
        },
        **{
            f"{optimizer}_{key}": lambda of=of, model=model: number(of(model), ".3f")
            for optimizer, of in (
                ("muon", lambda model: mean(muon_losses(model))),
                ("adam", lambda model: runs.text_loss(model, *HIGHER)),
            )
            for key, model in zip(("once", "twice", "six"), MUON)
            if optimizer == "muon" and key != "six" or (optimizer, key) == ("adam", "six")
        },
        "muon_seeds": lambda: seeds(len(muon("3x2-64"))),
        "muon_closed": lambda: span(muon_closed(), "{:.0f}".format),
        "injected": lambda: number(mean_loss(runs.injected_loops()), ".3f"),
        "as_large": lambda: number(mean_loss(runs.layer_as_large()), ".3f"),
        "inject_more": lambda: number(
            100 * (size(runs.injected_loops()) / size(runs.hops("iso-depth").of("1x6-64")) - 1), ".0f"
        ),
        "injected_seeds": lambda: seeds(len(runs.injected_loops())),
        **{
            f"injected_{key}": lambda place=place, form=form: number(injected_gain()[place], form)
            for place, (key, form) in enumerate((("gain", ".3f"), ("low", ".3f"), ("high", ".3f")))
        },
        "muon_p": lambda: number(unpaired(muon_losses("3x2-64"), muon_losses("3x1-64"))[3], ".2f"),
        "rated_seeds": lambda: seeds(len(best().by_seed("3x2-64"))),
        "best_phi": lambda: number(best().phi.at_64.value, ".2f"),
        "best_phi_low": lambda: number(best().phi.at_64.low, ".1f"),
        "best_phi_high": lambda: number(best().phi.at_64.high, ".1f"),
        "longer_seeds": lambda: seeds(len(long().by_seed("3x2-64"))),
        "longer_phi_fall": lambda: str(fall()),
    }
    checks = {
        "wide_share": lambda: [
            0.35 < share(new) < 0.65,
            0.2 < share(runs.wide_text) < 0.4,
            median(map(test_loss, runs.injected_again())) < mean_loss(new("1x2")) - 0.01,
        ],
        "new_1x2_p": lambda: [
            max(compared(of("1x1"), of("1x2"))[3] for of in (new, runs.wide_text)) < 0.05,
            min(compared(of("3x1"), of("3x2"))[3] for of in (new, runs.wide_text)) > 0.05,
            compared(runs.wide_text("2x1"), runs.wide_text("2x3"))[3] > 0.05,
            mean_loss(new("1x2")) + 0.01 < mean_loss(new("1x6")) < mean_loss(new("1x1")),
            0 < mean_loss(runs.wide_text("1x2")) - mean_loss(runs.wide_text("1x6")) < 0.02,
        ],
        "split_steps": lambda: [
            compared(split_steps(), new("1x2"))[1] > 0,
            mean_loss(split_steps()) > mean_loss(new("1x1")) > mean_loss(longer_single()),
            max(compared(new("1x2"), trained())[3] for trained in (split, longer_single)) < 0.001,
            max(mean_loss(split()), mean_loss(longer_single())) < mean_loss(new("1x2")),
        ],
        "below_the_stacks": lambda: [
            all(runs.text_loss(f"{n}x{6 // n}-64") < runs.text_loss(f"{n}x1-64") for n in (1, 2, 3))
        ],
        "muon_once": lambda: [
            max(muon_losses("3x2-64")) < min(muon_losses("3x1-64")),
            max(muon_losses("3x1-64")) < runs.text_loss("6x1-64", *HIGHER),
            0 < min(muon_closed()) < max(muon_closed()) < 50,
            unpaired(muon_losses("3x2-64"), muon_losses("3x1-64"))[3] < 0.05,
        ],
        "injected": lambda: [
            0.5
            < (runs.text_loss("1x1-64", *HIGHER) - mean_loss(runs.injected_loops()))
            / (runs.text_loss("1x1-64", *HIGHER) - runs.text_loss("2x1-64", *HIGHER))
            < 1,
            injected_gain()[1] > 0,
            mean_loss(new("6x1")) < min(map(test_loss, runs.injected_again())) - 0.03,
            min(map(test_loss, runs.layer_as_large())) > max(map(test_loss, runs.injected_loops())),
            0.97 < size(runs.layer_as_large()) / size(runs.injected_loops()) < 1.03,
            max(learning_rate(run) for run in runs.injected_loops()) == HIGHER[1],
        ],
        "injected_good": lambda: [
            len(good_injected()) >= len(runs.injected_again()) - 2,
            max(good_injected()) < (mean_loss(new("1x1")) + mean_loss(new("2x1"))) / 2 + 0.01,
            max(map(test_loss, runs.injected_again())) > max(map(test_loss, new("1x1"))),
            compared(runs.injected_again(), new("1x6"))[3] < 0.05 < compared(runs.injected_again(), new("1x2"))[3],
        ],
        "three_phi": lambda: [
            abs(three().value - iso().phi.of_all.value) < 0.05,
            three().high - three().low > iso().phi.of_all.high - iso().phi.of_all.low,
        ],
        "tuned_for_six_passes": lambda: [
            runs.worth_at_best_rate("1x6-64").high < layers("1x6-64").low,
            runs.worth_at_best_rate("1x6-64").low < 0,
            runs.worth_at_best_rate("1x2-64").low > 0,
            runs.worth_at_best_rate("3x2-64").low < 0,
            max(abs(worth(runs.worth_at_best_rate, m, "") - worth(layers, m, "")) for m in ("1x2", "3x2")) < 0.1,
            gain_of_rate("1x1-64") > gain_of_rate("1x2-64") + 0.01 > gain_of_rate("1x6-64") + 0.02,
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
        "phi": lambda: [
            iso().phi.of_1x6.value < iso().phi.of_3x2.value,
            iso().phi.least.value > 0,
            iso().phi.in_width.low > 0,
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
        "longer_phi_fall": lambda: [
            fall().low < 0 < fall(),
            all(a < b for a, b in zip(long().by_seed(*LOOPS), iso().by_seed(*LOOPS))),
        ],
    }
    return Quantities(numbers, checks)
