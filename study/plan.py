"""Every run of the paper, in the order of their value: what is recorded, stale or missing, and about what it costs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rtx_core import records
from rtx_core.errors import RtxError
from rtx_core.experiments.configure import RunConfig, configure
from study import bench_plan
from study.experiments import COMBINED, EXPERIMENTS, GROWTH, ONE_SEED, WINDOWS


@dataclass(frozen=True)
class Study:
    """One line of the plan: an experiment under some settings; its own seeds and models, unless given."""

    experiment: str
    settings: dict = field(default_factory=dict)
    seeds: Sequence[int] = ()
    models: Sequence[str] = ()
    reduced: tuple[dict, ...] = ({},)  # the budgets on two CPU cores, where {} is the full one

    def runs(self, reduced: bool, extra: dict) -> Iterator[RunConfig]:
        experiment = EXPERIMENTS[self.experiment]
        models = self.models or experiment.default_models
        for budget in self.reduced if reduced else ({},):
            configs = [configure(self.experiment, model, **self.settings | budget | extra) for model in models]
            for seed in self.seeds or experiment.seeds:
                yield from (replace(config, seed=seed) for config in configs)


EPOCH = {"epochs": 1}
LONG_TEXTS = {"epochs": 1, "train_rows": 10_000}  # reviews, of which one has the words of ten SST-2 phrases
SHORT_WORDS = {"letters": 16, "steps": 12_000}  # over a group
THREE_DOMAINS = {"epochs": 1, "train_rows": 5_000}
TENTH: dict[str, Any] = {"fraction": 0.1}
FACTS = {"facts": 49_152}
SATURATED = FACTS | {"epochs": 240}
SATURATING = ("1x1", "1x4", "2x1", "1x1-wide", "2x2")
SATURATED_RATES = dict.fromkeys(SATURATING, 2e-3)  # the best on seed 3, by validation loss
CURVE = TENTH | {"eval_every": 50, "plateau_patience": 100, "stop_patience": 0}  # as the slides; nothing cuts or ends
RATES = (  # tried for a few steps each; models train at the best of them
    *(("shakespeare-small", rate, EXPERIMENTS["shakespeare-small"].default_models) for rate in (1e-3, 3e-3)),
    *(
        ("tinystories-small", rate, EXPERIMENTS["tinystories-small"].default_models[:-1])
        for rate in (1e-3, 2e-3, 4e-3, 8e-3)
    ),
)
SMALL: dict[str, dict[str, Any]] = {
    "shakespeare-small": {"learning_rate": 3e-3},
    "tinystories-small": {"learning_rate": 4e-3},
}
LARGER = {  # of twice the width, at half the rate (Yang et al. 2022, 2203.03466)
    "shakespeare-small": {"hidden_size": 256, "intermediate_size": 1024, "learning_rate": 1.5e-3},
    "tinystories-small": {"hidden_size": 128, "intermediate_size": 344, "learning_rate": 2e-3},
}
LADDER = {  # layers x passes at width 256, as settings of `recurrent`
    "1x1": {"num_layers": 1, "num_passes": 1},
    "3x1": {"num_passes": 1},
    "3x2": {},
    "6x1": {"num_layers": 6, "num_passes": 1},
    "1x6": {"num_layers": 1, "num_passes": 6},  # as ALBERT
    "3x3": {"num_passes": 3},
}
TUNING = (1e-4, 3e-4, 1e-3)  # rates that are tried beside the study's 3e-5, with one seed
TUNED = {"1x1": 1e-4, "3x1": 3e-4, "3x2": 3e-4, "6x1": 1e-3, "1x6": 3e-4}  # the best, by validation loss
NARROW = ("6x1-24", "6x1-32", "6x1-48", "6x1-64", "3x2-64", "2x3-64", "1x6-64")  # iso-depth: loops and their equals
STORIES_HIGHER = ("control", "control-3", "frailt", "relaxed", "three-part")  # also at twice the usual rate
STACKS = ("1x1-64", "2x1-64", "3x1-64", "4x1-64")  # iso-depth: fewer layers of the loops' width
# k-hop: loops, their equals, their layers run once
EQUALS = ("1x4", "4x1-w32", "2x2", "4x1-w44", "4x1", "1x1", "2x1", "3x1")
AGAIN = ((8e-3, ("4x1-w32",)), (4e-3, ("4x1-w44", "1x4", "4x1", "1x1", "3x1", "1x2")))
LOOPED = ("recurrent",)
WIDE_POINTERS = tuple(  # for a GPU: more parameters, two rates, the same seeds for all
    Study("khop-published", {"budget": "reduced", "learning_rate": rate}, range(5), models)
    for models in (("1x4", "4x1", "4x1-w64"), ("1x4-w256", "4x1-w256"))
    for rate in (5e-4, 1e-3)
)
WIDE_TEXT = tuple(Study("iso-depth-wide", {"learning_rate": rate}) for rate in (7.5e-4, 1.5e-3, 3e-3))
STATE_RATES = (  # of the group's product
    Study("state-tracking", {}, (0, 1, 2), ("8x1",)),
    *(Study("state-tracking", {"learning_rate": rate}, (0, 1, 2), ("1x8", "8x1")) for rate in (1e-3, 4e-3)),
)
SECOND_PASS = (  # of one layer, where two layers are recorded
    Study("khop", {}, range(8), ("1x2",)),
    *(Study("khop", {"learning_rate": rate}, (0, 1, 2), ("1x2",)) for rate in (1e-3, 2e-3, 4e-3, 8e-3)),
    *(Study("facts", FACTS | {"learning_rate": rate}, (0, 1, 2), ("1x2",)) for rate in (1e-3, 2e-3, 4e-3)),
    *(Study("iso-depth", {"learning_rate": rate}, (0, 1, 2), ("1x2-64",)) for rate in (3e-3, 6e-3, 1.2e-2)),
)
INJECTED = {"injection": "linear", "learning_rate": 1.2e-2}
TEN = (  # new seeds of text, each model at its best rate on seeds 0 to 2
    Study("iso-depth-again", {"learning_rate": 6e-3}),
    Study("iso-depth-again", INJECTED, models=("1x6-64",)),
    Study("iso-depth-again", {"steps": 3200, "learning_rate": 6e-3}, range(10, 15), ("1x1-64", "1x2-64", "2x1-64")),
)
AS_HEAVY = {"hidden_size": 128, "intermediate_size": 344}  # four of these layers have as many as one of those
WIDE_FACTS = tuple(  # four times as many facts, for layers with four times the parameters
    Study("facts", {"keys": 512, "facts": 196_608, "learning_rate": rate, **AS_HEAVY}, (0, 1), models)
    for models in (("1x1", "2x1", "1x2"), ("1x4", "2x2"))
    for rate in (1e-3, 2e-3)
)
FACTS_RATES = tuple(Study("facts", SATURATED | {"learning_rate": r}, (3,), SATURATING) for r in (1e-3, 2e-3, 4e-3))
FACTS_SEEDS = tuple(
    Study("facts", SATURATED | {"learning_rate": rate}, (0, 1, 2), (model,)) for model, rate in SATURATED_RATES.items()
)
LONGER = (Study("khop", {"steps": 12_000}, range(5), ("1x1", "1x2", "2x1", "3x1", "4x1", "4x1-w44", "2x2")),)
LONG_PASS = (Study("facts", SATURATED, (0, 1, 2), ("1x2",)),)
EQUAL_WORK = tuple(  # 4x1-w44 for as many multiply-adds as 3,000 steps of 2x2; seeds 0 to 2 pick the rate
    Study("khop", {"steps": 6400, "learning_rate": rate}, range(8), ("4x1-w44",)) for rate in (2e-3, 4e-3)
)
WIDER = {"hidden_size": 256, "intermediate_size": 688}  # k-hop: a layer has 16 times the parameters
NARROW_SIX = {"steps": 4000, "hidden_size": 24, "intermediate_size": 84}  # 6x1 with the parameters of 1x6
MUON = {"optimizer": "muon"}
MUON_HOPS, MUON_TEXT = ("2x1", "2x2", "4x1-w44"), ("6x1-64", "3x2-64", "3x1-64")
WIDER_HOPS = tuple(  # seed 3 picks a rate for each model
    Study("khop", {"learning_rate": rate, **width}, range(4), models)
    for rate in (5e-4, 1e-3)
    for width, models in ((WIDER, ("1x4", "2x1", "2x2", "4x1")), (AS_HEAVY, ("4x1",)))
)
WIDER_RATES = (2.5e-4, 5e-4, 1e-3)
WIDER_PASSES = (  # of one layer and of two; the same seed picks
    *(
        Study("khop", {"learning_rate": rate, **WIDER}, range(4), ("1x1", "1x2", "2x1", "2x2", "4x1", "1x4"))
        for rate in WIDER_RATES
    ),
    # new seeds at the rate of both, and a rate below those tried on the seed that picks
    Study("khop", {"learning_rate": min(WIDER_RATES), **WIDER}, range(4, 8), ("1x2", "2x1")),
    Study("khop", {"learning_rate": max(WIDER_RATES), **WIDER}, range(4, 8), ("1x1",)),
    Study("khop", {"learning_rate": min(WIDER_RATES) / 2, **WIDER}, (3,), ("1x2", "2x1")),
    Study("khop", {"steps": 12_000, "learning_rate": min(WIDER_RATES), **WIDER}, (0, 1), ("1x2", "2x1")),
)
AGAIN_RATES = {
    "1x1": 4e-3,
    "1x2": 4e-3,
    "2x1-w44": 4e-3,
    "2x1": 2e-3,
    "3x1": 4e-3,
    "2x2": 2e-3,
    "4x1-w44": 4e-3,
    "4x1": 4e-3,
    "1x4": 4e-3,
    "4x1-w32": 8e-3,
}  # the best on khop, seeds 0 to 2
FACTS_AGAIN_RATES = {"1x1": 4e-3, "1x2": 2e-3, "2x1": 2e-3}  # at which each stores most bits, seeds 0 to 2
FACTS_AGAIN = tuple(
    Study("facts-again", {"learning_rate": rate}, models=(model,)) for model, rate in FACTS_AGAIN_RATES.items()
)
TWENTY = (  # new seeds of each; the narrow stack once more, for as many multiply-adds as 2x2
    Study("khop-again", {"steps": 6400}, models=("4x1-w44",)),
    *(Study("khop-again", {"learning_rate": rate}, models=(model,)) for model, rate in AGAIN_RATES.items()),
)

# Twenty more seeds of each, for as many multiply-adds
SLOW = Study("khop-slow", models=("2x2",)), Study("khop-slow", {"steps": 6400}, models=("4x1-w44",))
ONE_LAYER = (  # two narrow layers with the parameters of one, for equal steps and for as many multiply-adds as 1x2
    *(Study("khop", {"learning_rate": rate}, range(3), ("2x1-w44",)) for rate in (1e-3, 2e-3, 4e-3, 8e-3)),
    *(Study("khop", {"steps": 6400, "learning_rate": rate}, range(3), ("2x1-w44",)) for rate in (2e-3, 4e-3)),
    Study("khop-again", {"steps": 6400, "learning_rate": 4e-3}, models=("2x1-w44",)),
)
SPLIT_WIDE = {"hidden_size": 184, "intermediate_size": 472}  # two layers with the parameters of one of width 256
SPLIT_WIDE_RATE = 5e-4  # the best on seed 3
ONE_WIDE_LAYER = (  # the same comparison there, for as many multiply-adds
    *(Study("khop", SPLIT_WIDE | {"learning_rate": rate}, (3,), ("2x1",)) for rate in WIDER_RATES),
    Study("khop", SPLIT_WIDE | {"learning_rate": SPLIT_WIDE_RATE, "steps": 6000}, (0, 1, 2, 4, 5, 6, 7), ("2x1",)),
)
SPLIT_TEXT_RATE, SPLIT_FACTS_RATE = 1.2e-2, 2e-3  # the best on seeds 0 to 2
ELSEWHERE = (  # the same on text and on facts
    *(Study("iso-depth", {"learning_rate": rate}, (0, 1, 2), ("2x1-44",)) for rate in (3e-3, 6e-3, 1.2e-2, 2.4e-2)),
    *(Study("facts", FACTS | {"learning_rate": rate}, (0, 1, 2), ("2x1-w44",)) for rate in (1e-3, 2e-3, 4e-3)),
    *(
        Study("iso-depth-again", {"learning_rate": SPLIT_TEXT_RATE} | steps, models=("2x1-44",))
        for steps in ({}, {"steps": 1680})  # as many multiply-adds as 800 steps of 1x2-64
    ),
    # one layer for about as many multiply-adds as well
    Study("iso-depth-again", {"learning_rate": 6e-3, "steps": 1600}, models=("1x1-64",)),
    Study("khop-again", {"learning_rate": 4e-3, "steps": 6000}, range(10, 15), ("1x1",)),
    Study("facts-again", {"learning_rate": 4e-3, "epochs": 120}, models=("1x1",)),
    *(
        Study("facts-again", {"learning_rate": SPLIT_FACTS_RATE} | exposures, models=("2x1-w44",))
        for exposures in ({"epochs": 111}, {})  # the first are as many multiply-adds as 60 epochs of 1x2
    ),
)

SET_RATES = (2e-3, 4e-3, 8e-3)
FEW_SEQUENCES = (  # seeds 30 to 32 pick each model's rate
    *(Study("khop-set", {"learning_rate": rate}, range(30, 33)) for rate in SET_RATES),
    Study("khop-set", {"learning_rate": 4e-3}),
)

PLAN = (
    Study("sst2", reduced=({}, EPOCH, THREE_DOMAINS)),
    Study("sst2", seeds=(1,), reduced=({}, EPOCH)),
    *(Study(name, {"steps": 600, "learning_rate": rate}, (0,), models) for name, rate, models in RATES),
    *(Study(name, SMALL[name], models=[m for m in EXPERIMENTS[name].models if m not in ONE_SEED]) for name in SMALL),
    Study("sst2", {"split": "official"}, reduced=({}, EPOCH)),
    Study("sst2", TENTH, (0, 1, 2)),
    Study("sst2", TENTH, reduced=(EPOCH,)),
    *(Study("sst2", part, reduced=({}, EPOCH)) for part in ({"length": "short"}, {"fraction": 0.5})),
    *(Study("sst2", part, reduced=(EPOCH,)) for part in ({"length": "long"}, {"split": "grouped"})),
    *(Study("sst2", TENTH | LADDER[r], (0, 1, 2), LOOPED) for r in ("3x1", "3x3", "6x1")),
    Study("khop"),
    Study("khop", {}, (5, 6, 7), ("1x1", "2x1", "3x1", "4x1", "2x2", "1x4")),
    Study("khop", {}, range(8), ("4x1-w32", "4x1-w44")),  # as heavy as 1x4 and 2x2, and as deep
    *(Study("facts", settings) for settings in ({}, FACTS)),
    Study("khop", {}, (0, 1, 2), ("1x4-noise", "4x1-noise", "frailt", "relaxed", "1x4-gated", "three-part")),
    Study("khop", {"steps": 9000}, range(5), ("1x6-random",)),  # which takes a third more; it learns late
    Study("khop", {}, (5, 6, 7, 8), ("1x6-random", *GROWTH)),
    Study("khop", {"steps": 12_000}, (5, 6, 7), ("1x4",)),
    Study("khop", {"steps": 12_000}, (0, 1, 2), ("1x6",)),
    *(Study("sst2", TENTH | LADDER[r] | {"learning_rate": rate}, (0,), LOOPED) for rate in TUNING for r in TUNED),
    *(Study("sst2", TENTH | LADDER[r] | {"learning_rate": TUNED[r]}, range(5), LOOPED) for r in TUNED),
    *(Study("sst2", TENTH | rung, range(5), LOOPED) for rung in LADDER.values()),
    Study("sst2", TENTH, range(5), ("baseline", "recurrent-wide")),
    Study("sst2", TENTH | {"precision": "bf16"}, range(5)),
    Study("sst2", {"split": "grouped"}, range(3)),
    Study("sst2", CURVE),
    *(Study("state-tracking", {"group": group}, (0, 1, 2)) for group in ("S3", "Z6")),
    *STATE_RATES,
    Study("state-tracking", {"letters": 16}, (0, 1, 2), ("1x1", "1x4", "1x8")),
    Study("state-tracking", SHORT_WORDS, (0, 1, 2), ("1x8", "8x1")),
    *(Study(name) for name in ("state-tracking-scan", "state-tracking-curriculum", "khop-hard", "iso-depth")),
    Study("state-tracking-scan", {"group": "A5", "steps": 6000}),
    Study("facts", {"epochs": 240}, (0, 1)),
    *LONG_PASS,
    Study("khop", {"learning_rate": 8e-3}, range(3, 8), ("4x1-w44",)),  # narrow stacks, bracketed
    Study("khop", {"learning_rate": 1.6e-2}, range(8), ("4x1-w32",)),
    *(Study("facts", FACTS | {"learning_rate": rate}, models=("1x1-wide",)) for rate in (2e-3, 4e-3)),
    Study("facts", FACTS, models=("1x1-w88",)),
    *FACTS_RATES,
    *FACTS_SEEDS,
    *LONGER,
    *EQUAL_WORK,
    *WIDER_HOPS,
    *WIDER_PASSES,
    *TWENTY,
    *SLOW,
    *ONE_LAYER,
    *ONE_WIDE_LAYER,
    *ELSEWHERE,
    *FEW_SEQUENCES,
    *TEN,
    *(Study("khop", {"backprop_passes": passes}, (0, 1, 2), ("1x4",)) for passes in (1, 2, "random")),
    *(Study("iso-depth", {"backprop_passes": passes}, (0, 1, 2), ("1x6-64",)) for passes in (1, 2)),
    *(
        Study("iso-depth", {"injection": "linear", "backprop_passes": passes}, (0, 1, 2), ("1x6-64",))
        for passes in (0, 1, 2)
    ),
    *(
        Study("iso-depth", {"injection": "linear", "learning_rate": rate}, (0, 1, 2), ("1x6-64",))
        for rate in (6e-3, 1.2e-2)
    ),
    *(  # one layer with the parameters of the injected loop
        Study("iso-depth", {"intermediate_size": 219, "learning_rate": rate}, (0, 1, 2), ("1x1-64",))
        for rate in (3e-3, 6e-3, 1.2e-2)
    ),
    *(Study("state-tracking", {"backprop_passes": passes}, (0, 1, 2), ("1x8",)) for passes in (1, 2)),
    *(Study("khop", {"steps": 4000, "halting": bonus}, (5, 6, 7), ("1x6",)) for bonus in (0.1, 10.0)),
    Study("khop", {"steps": 4000}, (5, 6, 7), ("1x6",)),
    *(Study("khop", NARROW_SIX | {"learning_rate": rate}, (3, 5, 6, 7), ("6x1",)) for rate in (2e-3, 4e-3, 8e-3)),
    Study("iso-depth", {}, (8, 9), ("6x1-64", "1x6-64")),  # whose weights are kept
    Study("khop", {"cache": "last"}, (0, 1), ("1x4",)),
    Study("iso-depth", {"cache": "last"}, (0,), ("1x6-64",)),
    # Muon: seed 3 picks the higher rate for every model
    *(
        Study("khop", MUON | {"learning_rate": rate}, seeds, MUON_HOPS)
        for rate, seeds in ((1e-3, (3,)), (4e-3, range(4)))
    ),
    *(
        Study("iso-depth", MUON | {"learning_rate": rate}, seeds, MUON_TEXT)
        for rate, seeds in ((3e-3, (3,)), (1.2e-2, range(4)))
    ),
    Study("tinystories-small", SMALL["tinystories-small"], (0,), COMBINED),
    Study("shakespeare-small", SMALL["shakespeare-small"], (0,), WINDOWS),
    Study("tinystories-small", {"learning_rate": 8e-3}, (0, 1, 2), STORIES_HIGHER),
    Study("tinystories-small", SMALL["tinystories-small"], (3,), ("frailt",)),  # whose weights are kept
    Study("khop-published", {"budget": "reduced"}, (1,), ("1x4",)),  # whose weights are kept
    *(Study("iso-depth", {"learning_rate": rate}, (0,)) for rate in (1.5e-3, 6e-3)),
    *(Study("iso-depth", {"learning_rate": rate}, (0, 1, 2), (*NARROW, "6x1-96")) for rate in (6e-3, 1.2e-2)),
    Study("iso-depth", {}, range(8), ("three-part-64", "three-part-128")),
    Study("iso-depth", {"steps": 3200}, (0, 1, 2), NARROW),
    *(Study("iso-depth", rate, (0, 1, 2), STACKS) for rate in ({}, {"learning_rate": 6e-3}, {"learning_rate": 1.2e-2})),
    Study("shakespeare-small", LARGER["shakespeare-small"], (0,), ("gpt-1", "gpt-2", "gpt-4", "kausik")),
    Study("tinystories-small", LARGER["tinystories-small"], (0,), ("control", "frailt", "three-part", "control-8")),
    Study("khop-hard", {}, (0, 1, 2), ("6x1-w36",)),
    Study("khop-hard", {"learning_rate": 4e-3}, models=("2x1", "6x1", "2x3", "1x6", "6x1-w36")),
    *(Study("facts", FACTS | {"learning_rate": rate}, models=("1x1", "1x4", "2x1", "2x2")) for rate in (4e-3, 1e-3)),
    Study("facts", FACTS | {"learning_rate": 8e-3}, models=("1x1",)),  # which alone trains well at 4e-3
    Study("state-tracking-curriculum", {}, models=("1x8",)),  # stopped after fewer passes than in training
    Study("state-tracking-fixed-passes"),
    Study("state-tracking-curriculum", {"stage": 1}, models=("1x64",)),  # all lengths from the beginning
    Study("khop-hard", {}, (3,), ("2x3", "1x6", "6x1")),  # the first one's weights are kept
    *(Study("khop", {"learning_rate": rate}, (0, 1, 2), EQUALS) for rate in (1e-3, 4e-3, 8e-3)),
    # new seeds at the best rate of each, picked on the first three
    *(Study("khop", {"learning_rate": rate}, range(3, 8), models) for rate, models in AGAIN),
    Study("khop-hard", {"learning_rate": 4e-3}, range(3, 8), ("2x3", "6x1-w36")),
    *SECOND_PASS,
    *WIDE_POINTERS,
    *WIDE_TEXT,
    *WIDE_FACTS,
    *FACTS_AGAIN,
    Study("khop-published", {"budget": "full"}, reduced=({"budget": "reduced"},)),
    *(
        Study("sst2", part, extra_seeds)
        for part, extra_seeds in (({"length": "short"}, (1, 2)), ({"split": "official"}, (1,)))
    ),
    Study("multi-domain", reduced=(THREE_DOMAINS | {"train_rows": 20_000}, THREE_DOMAINS)),
    Study("multi-domain-imdb", reduced=(THREE_DOMAINS,)),
    *(Study("yelp", {"max_length": tokens}, reduced=(LONG_TEXTS,)) for tokens in (128, 512)),
    *(
        Study(name, {"recipe": recipe, "budget": "full"}, reduced=({"budget": "reduced"},))
        for name in ("shakespeare", "tinystories")
        for recipe in EXPERIMENTS[name].recipes
    ),
)


def why(config: RunConfig) -> str:
    """Why a run is to be made: missing, or what is wrong with its record today; empty when nothing is."""
    try:
        record = records.find(config.name, config.model, config.seed, config.source)
    except RtxError as error:
        return str(error)
    return "missing" if record is None else record.stale_reason()


def planned(reduced: bool = False, **extra: object) -> Iterator[RunConfig]:
    """Every run of the plan, each once; `extra` settings are put on all of them."""
    every = (config for study in PLAN for config in study.runs(reduced, extra))
    yield from {(config.name, config.model, config.seed): config for config in every}.values()


def everything(reduced: bool = False, **extra: Any) -> Iterator[RunConfig]:
    """What `make paper` trains."""
    yield from planned(reduced, **extra)
    yield from bench_plan.bench(**extra)
