"""TinyStories at the study's own size."""

from collections.abc import Mapping

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from study.analysis.benchmarks import story_cost, story_memory
from study.analysis.language import Language
from study.analysis.records import seeds_in_words
from study.analysis.stories import InitialLosses, names_repeated

LOOPS = ("frailt", "three-part", "relaxed")


def quantities(
    runs: list[Record],
    small: list[Record],
    initial: list[Record],
    grades: list[Record],
    decoder: Mapping,
    published: Mapping,
) -> Quantities:
    """Of the start of the published training, of small models, of losses before training, of what is counted of the
    stories that models wrote, of the times of a step, and of what the study printed."""
    stories, narrow = Language(runs, "tinystories"), Language(small, "tinystories-small")

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

    numbers = {
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
