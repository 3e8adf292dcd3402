"""Language models of the studies' size, and those that two cores train to the end: `stories_small.loss('frailt')`."""

from rtx_core.report.evidence import by_model
from rtx_core.report.statistics import common
from rtx_core.report.values import look_up
from study import paper
from study.analysis.language import Language
from study.analysis.stories import InitialLosses
from study.experiments import ONE_SEED
from study.plan import LARGER, SMALL
from study.published import published

TRIED = 600  # steps of the runs that choose the learning rate


class Small(Language):
    """An experiment's runs to the end, at the rate that all its models share, of the seeds that all have."""

    def __init__(self, experiment: str):
        self.rates, whole = {}, []  # model -> learning rate -> loss after few steps
        for record in paper.records(experiment=experiment):
            model, size, train = record["model"], record["config"]["model"], record["config"]["train"]
            if model in ONE_SEED or size["hidden_size"] == LARGER[experiment]["hidden_size"]:
                continue
            if train["steps"] == TRIED:
                self.rates.setdefault(model, {})[train["learning_rate"]] = record["test"]["loss"]
            elif train["learning_rate"] == SMALL[experiment]["learning_rate"]:
                whole.append(record)
        super().__init__([r for of_seed in common(*by_model(whole).values()) for r in of_seed], experiment)

    def gain(self, model: str, rate: float) -> float:
        """By how many nats a rate is ahead of the best lower one after few steps; below 0, behind."""
        tried = self.rates[self.of(model)[0]["model"]]  # an error where there is none
        return min(loss for other, loss in tried.items() if other < rate) - tried[rate]


def own_rates() -> Language:
    """TinyStories models at the best rate of each after few steps: most at 8e-3, FraiLT at 4e-3."""
    frailt = paper.records(name="tinystories-small-learningrate0.004", model="frailt")
    return Language([*paper.records(name="tinystories-small-learningrate0.008"), *frailt], "TinyStories at own rates")


def gained(model: str) -> list[float]:
    """By how many nats 8e-3 is ahead of 4e-3 at the end, by seed."""
    pairs = common(look_up("stories_small").of(model), look_up("stories_own_rates").of(model))
    return [lower["test"]["loss"] - higher["test"]["loss"] for lower, higher in pairs]


def first_seed(name: str) -> Language:
    """The runs of seed 0, the one that all models of an experiment have."""
    return Language([r for r in paper.records(name=name) if r["seed"] == 0], name)


VALUES = {
    "stories": lambda: Language(paper.records(name="tinystories-report-reduced"), "tinystories"),
    "shakespeare_report": lambda: Language(paper.records(name="shakespeare-report-reduced"), "shakespeare"),
    "shakespeare_full": lambda: Language(paper.records(name="shakespeare-nanogpt"), "shakespeare-nanogpt"),
    "initial_losses": lambda: InitialLosses(*paper.measurements("initial", "tinystories"), published()["tinystories"]),
    "stories_combined": lambda: first_seed("tinystories-small-learningrate0.004"),
    "shakespeare_windows": lambda: first_seed("shakespeare-small-learningrate0.003"),
    "shakespeare_wide": lambda: first_seed("shakespeare-small-hiddensize256-intermediatesize1024-learningrate0.0015"),
    "stories_wide": lambda: first_seed("tinystories-small-hiddensize128-intermediatesize344"),
    "shakespeare_small": lambda: Small("shakespeare-small"),
    "stories_small": lambda: Small("tinystories-small"),
    "stories_own_rates": own_rates,
    "stories_gained": lambda: gained,
}
