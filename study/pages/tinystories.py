"""TinyStories: small models to the end, and the study's own size."""

from collections.abc import Mapping
from statistics import mean

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import common
from study.analysis.benchmarks import story_cost, story_memory
from study.analysis.language import Language, rate_gain
from study.analysis.records import seeds_in_words, seeds_of
from study.analysis.stories import InitialLosses, names_repeated
from study.analysis.wording import seeds
from study.folders import Folders

LOOPS = ("frailt", "three-part", "relaxed")
SHORT_RUNS = ("control", "control-8", "frailt", "relaxed", "three-part")  # at several rates


def quantities(
    runs: list[Record],
    small: list[Record],
    small_higher: list[Record],
    short: list[Record],
    initial: list[Record],
    grades: list[Record],
    decoder: Mapping,
    published: Mapping,
) -> Quantities:
    """Of the start of the published training, of small models at one learning rate, at twice that and at several in
    short runs, of losses before training, of what is counted of the stories that models wrote, of the times of a step,
    and of what the study printed."""
    stories, narrow = Language(runs, "tinystories"), Language(small, "tinystories-small")

    def own_rates() -> Language:
        return Folders.among([*small, *small_higher]).stories_at_own_rates()

    def rises() -> list[float]:
        """Nats by which FraiLT ends higher at twice the learning rate, by seed."""
        pairs = common(narrow.of("frailt"), Language(small_higher, "twice the rate").of("frailt"))
        return [twice["test"]["loss"] - once["test"]["loss"] for once, twice in pairs]

    def behind() -> list[float]:
        """By how many nats each loop is behind the control, in the mean over seeds."""
        return [stories.gap(model, "control") for model in LOOPS]

    def leads(control: float) -> list[float]:
        """By how many nats the study's loops are ahead of one of the two losses that it prints for its control."""
        return [control - published["validation_loss"][model] for model in LOOPS]

    def before_training() -> InitialLosses:
        return InitialLosses(initial[0], published)

    def costs() -> list[float]:
        return [story_cost(decoder, model) for model in LOOPS]

    def memories() -> list[float]:
        return [story_memory(decoder, model) for model in LOOPS]

    def names_of_short_training() -> list[float]:
        """The shares of names that stood before, of all models but the control that reads more."""
        return [share for model, share in names_repeated(grades).items() if model not in ("control-long", "written")]

    def more_weights(model: str) -> str:
        """Than Control."""
        return number(narrow.weights(model) / narrow.weights("control") - 1, ".0%")

    def gained(model: str) -> list[float]:
        """Nats that twice the learning rate is ahead at the end, by seed."""
        pairs = common(narrow.of(model), own_rates().of(model))
        return [once["test"]["loss"] - twice["test"]["loss"] for once, twice in pairs]

    def gain_in_short_runs(model: str) -> float:
        return rate_gain(short, model, 0.008)

    def ahead(runs: Language, model: str, control: str) -> str:
        """On how many seeds."""
        return words(sum(gap < 0 for gap in runs.gaps(model, control)))

    numbers = {
        # Small models, to the end
        "times_the_text": lambda: number(narrow.tokens("control-long") / narrow.tokens("control"), ".1f"),
        "relaxed_weights": lambda: more_weights("relaxed"),
        "three_part_weights": lambda: more_weights("three-part"),
        "three_layers_weights": lambda: more_weights("control-3"),
        "three_layers_ahead": lambda: ahead(narrow, "control-3", "three-part"),  # of Three Part
        "story_seeds": lambda: words(len(narrow.gaps("control-3", "three-part"))),
        "short_seeds": lambda: seeds(len(seeds_of(short))),
        "own_rate_seeds": lambda: seeds(len(gained("control"))),
        "frailt_rises": lambda: number(mean(rises()), ".3f"),
        "frailt_lead": lambda: number(narrow.gap("control", "frailt"), ".3f"),
        "frailt_own_rate_lead": lambda: number(own_rates().gap("control", "frailt"), ".3f"),  # of Relaxed
        # The start of training
        "share": lambda: number(stories.share("control"), ".1%"),
        "least_behind": lambda: number(min(behind()), ".2f"),
        "most_behind": lambda: number(max(behind()), ".2f"),
        "seed_range": lambda: number(stories.seed_range(), ".2f"),
        "more_tokens_gain": lambda: number(stories.gap("control", "control-long"), ".2f"),
        "sixteen_layers_gap": lambda: number(abs(stories.gap("control-16", "control")), ".3f"),  # to four layers
        "models": lambda: words(len({run["model"] for run in runs})),
        "seeds": lambda: seeds_in_words(runs),
        "printed_lead_least": lambda: number(min(leads(published["validation_loss"]["control"])), ".3f"),
        "printed_lead_most": lambda: number(max(leads(published["validation_loss"]["control"])), ".3f"),
        "final_lead_least": lambda: number(min(leads(published["initial"]["control"]["final"])), ".3f"),
        "final_lead_most": lambda: number(max(leads(published["initial"]["control"]["final"])), ".3f"),
        # What a loop costs
        "cost_least": lambda: number(min(costs()), ".1f"),
        "cost_most": lambda: number(max(costs()), ".1f"),
        "memory_least": lambda: number(min(memories()), ".1f"),
        "memory_most": lambda: number(max(memories()), ".1f"),
        # Initial losses
        "initial_seeds": lambda: number(before_training().seeds, ","),
        "initial_least": lambda: number(before_training().rows.min(), ".2f"),
        "initial_most": lambda: number(before_training().rows.max(), ".2f"),
        # Names
        "names_repeated": lambda: number(names_repeated(grades)["control-long"], ".0%"),
        "graded_stories": lambda: number(grades[0]["stories"], ","),
    }
    checks = {
        "frailt_rises": lambda: [mean(rises()) > 0, sorted(rises())[1] < mean(rises())],
        "stories_at_one_rate": lambda: [
            max(narrow.gaps("frailt", "control")) < 0,
            max(max(narrow.gaps(m, "frailt")) for m in ("control-8", "control-long")) < -0.05,
            max(max(narrow.gaps(a, b)) for a in ("control-8", "control-long") for b in ("relaxed", "three-part")) < 0,
            narrow.weights("frailt") < 1.01 * narrow.weights("control"),
            narrow.loss("control-8") < narrow.loss("control-long"),
        ],
        "three_layers_ahead": lambda: [
            max(narrow.gaps("relaxed", "control") + narrow.gaps("three-part", "control")) < 0,
            max(narrow.gaps("control-3", "relaxed")) < -0.02,
            sorted(narrow.gaps("control-3", "three-part"))[1] < 0 < max(narrow.gaps("control-3", "three-part")),
            narrow.weights("relaxed") < narrow.weights("control-3") < narrow.weights("three-part"),
        ],
        "frailt_own_rate_lead": lambda: [
            gain_in_short_runs("frailt") < 0,
            min(gain_in_short_runs(model) for model in SHORT_RUNS if model != "frailt") > 0,
            min(gained("control")) > 0,
            0 < own_rates().gap("control", "frailt") < narrow.gap("control", "frailt"),
        ],
        "start": lambda: [
            min(stories.gaps("relaxed", "control") + stories.gaps("three-part", "control")) > 0.1,
            min(stories.gaps("frailt", "control")) > 0.17,
            max(max(narrow.gaps(model, "control")) for model in LOOPS) < 0,
        ],
        "more_tokens_gain": lambda: [stories.gap("control", "control-long") > 20 * stories.seed_range()],
        "printed_lead_least": lambda: [
            published["validation_loss"]["relaxed"] > published["validation_loss"]["frailt"],
            published["validation_loss"]["frailt"] > published["validation_loss"]["three-part"],
        ],
        "cost_least": lambda: [
            3 < story_cost(decoder, "frailt") < story_cost(decoder, "relaxed") < story_cost(decoder, "three-part") < 4,
            min(memories()) > 2,
        ],
        "initial_seeds": lambda: [
            before_training().printed_range < before_training().seed_range,
            before_training().same_order == 1,
        ],
        "names_repeated": lambda: [max(names_of_short_training()) < 0.5, names_repeated(grades)["written"] > 0.95],
    }
    return Quantities(numbers, checks)
