"""Reproduce: the seeds of what the sources print, as circles."""

from rtx_core.experiments.run import runs
from rtx_core.reads import remember
from rtx_core.report import badge, number
from rtx_core.report.quantities import Quantities, words
from study import paper
from study.analysis.classifiers import PAIR
from study.analysis.sessions import Session, graph_runs, largest_session
from study.analysis.stories import InitialLosses
from study.plan import SMALL
from study.published import published

ON_GPU = "facts", "khop", "khop-again", "iso-depth-wide"  # experiments of small models, in part
CURVES = "sst2-10pct-plateaupatience100-stoppatience0-evalevery50"


def circles(folder: str, *models: str) -> str:
    """A circle for each seed that all of these models have, filled at the full budget."""
    return badge([run for run in paper.records(folder) if run["model"] in models]).circles


def circles_of_small(experiment: str, model: str) -> str:
    """The same at the experiment's own seeds."""
    return badge(runs(experiment, models=[model], only_recorded=True, **SMALL[experiment]).records).circles


def initial_losses() -> InitialLosses:
    return InitialLosses(*paper.measurements("initial", "tinystories"), published=published()["tinystories"])


@remember
def graph_session() -> Session:
    """When the small models were trained together on a GPU."""
    return largest_session(graph_runs([run for name in ON_GPU for run in paper.records(experiment=name)]))


def quantities() -> Quantities:
    """Of the paper's records."""
    numbers = {
        "glue_sentences": lambda: number(paper.test_part("sst2-official-128")["n"], ","),
        **{
            test: lambda folder=folder: circles(folder, *PAIR)
            for test, folder in paper.TESTS.items()
            if test != "grouped"
        },
        "curves": lambda: circles(CURVES, *PAIR),
        "kausik_full": lambda: circles("shakespeare-nanogpt", "kausik"),
        "kausik_own": lambda: circles("shakespeare-report-reduced", "kausik"),
        "kausik_small": lambda: circles_of_small("shakespeare-small", "kausik"),
        "windows": lambda: circles("shakespeare-small-learningrate0.003", "kausik-w4"),
        "stories": lambda: circles("tinystories-report-reduced", "control"),
        "stories_small": lambda: circles_of_small("tinystories-small", "frailt"),
        "loops_combined": lambda: circles("tinystories-small-learningrate0.004", "frailt-lora"),
        "initial_seeds": lambda: words(initial_losses().seeds),
        "gpu_runs": lambda: number(graph_session().runs, ","),
        "gpu_minutes": lambda: number(graph_session().minutes, ".0f"),
        "gpu_together": lambda: number(graph_session().together, ","),
    }
    return Quantities(numbers)
