"""Every run of the paper, in the order of their value: what is recorded, what is stale or missing,
and about what it costs."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rtx_core import records
from rtx_core.errors import RtxError
from rtx_core.experiments.configure import RunConfig, configure
from study.experiments import COMBINED, EXPERIMENTS, GROWTH, ONE_SEED, WINDOWS


@dataclass(frozen=True)
class Study:
    """One line of the plan: an experiment under some settings, with these seeds."""

    experiment: str
    settings: dict = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    models: tuple[str, ...] = ()  # the experiment's own, unless given
    reduced: tuple[dict, ...] = ({},)  # the budgets on two CPU cores, where {} is the full one


EPOCH = {"epochs": 1}
LONG_TEXTS = {"epochs": 1, "train_rows": 10_000}  # reviews, of which one has the words of ten SST-2 phrases
THREE_DOMAINS = {"epochs": 1, "train_rows": 5_000}
TENTH = {"fraction": 0.1}
# as the slides evaluate; the rule that cuts the rate and ends a run counts evaluations, and is put out of reach
CURVE = TENTH | {"eval_every": 50, "plateau_patience": 100, "stop_patience": 0}
RATES = {  # tried for a few steps each; models train at the best of them
    "shakespeare-small": ((1e-3, 3e-3), ("gpt-1", "gpt-2", "gpt-4", "gpt-6", "kausik", "kausik-positions")),
    "tinystories-small": ((1e-3, 2e-3, 4e-3), ("control", "frailt", "three-part", "relaxed", "control-8")),
}
SMALL = {"shakespeare-small": {"learning_rate": 3e-3}, "tinystories-small": {"learning_rate": 4e-3}}
LARGER = {  # of twice the width, at half the rate (Yang et al. 2022, 2203.03466)
    "shakespeare-small": {"hidden_size": 256, "intermediate_size": 1024, "learning_rate": 1.5e-3},
    "tinystories-small": {"hidden_size": 128, "intermediate_size": 344, "learning_rate": 2e-3},
}
LARGER_MODELS = {
    "shakespeare-small": ("gpt-1", "gpt-2", "gpt-4", "kausik"),
    "tinystories-small": ("control", "frailt", "three-part", "control-8"),
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
# of iso-depth: loops of width 64 and the standard models among which their equals lie
NARROW = ("6x1-32", "6x1-48", "6x1-64", "3x2-64", "2x3-64", "1x6-64")

PLAN = (
    Study("sst2", reduced=({}, EPOCH, THREE_DOMAINS)),
    Study("sst2", seeds=(1,), reduced=({}, EPOCH)),
    *(
        Study(name, {"steps": 600, "learning_rate": rate}, models=models)
        for name, (rates, models) in RATES.items()
        for rate in rates
    ),
    *(
        Study(name, settings, (seed,), tuple(model for model in EXPERIMENTS[name].models if model not in ONE_SEED))
        for seed in range(5)
        for name, settings in SMALL.items()
        if seed in EXPERIMENTS[name].seeds
    ),
    Study("sst2", {"split": "official"}, reduced=({}, EPOCH)),
    Study("sst2", TENTH, seeds=(0, 1, 2)),
    Study("sst2", TENTH, reduced=(EPOCH,)),
    Study("sst2", {"length": "short"}, reduced=({}, EPOCH)),
    Study("sst2", {"fraction": 0.5}, reduced=(EPOCH,)),
    Study("sst2", {"length": "long"}, reduced=(EPOCH,)),
    Study("sst2", {"split": "grouped"}, reduced=(EPOCH,)),
    Study("sst2", TENTH, models=("recurrent-wide",)),
    Study("sst2", TENTH | {"num_passes": 1}, (0, 1, 2), ("recurrent",)),
    Study("sst2", TENTH | {"num_passes": 3}, (0, 1, 2), ("recurrent",)),
    Study("sst2", TENTH | {"num_layers": 6, "num_passes": 1}, (0, 1, 2), ("recurrent",)),
    *(Study("khop", seeds=(seed,)) for seed in EXPERIMENTS["khop"].seeds),
    Study("khop", seeds=(5, 6, 7), models=("1x1", "2x1", "3x1", "4x1", "2x2", "1x4")),
    Study("khop", seeds=range(5), models=("4x1-w32", "4x1-w44")),  # as heavy as 1x4 and 2x2, and as deep
    *(Study("facts", settings, (seed,)) for seed in (0, 1, 2) for settings in ({}, {"facts": 49_152})),
    Study("khop", seeds=(0, 1, 2), models=("1x4-noise", "4x1-noise")),
    Study("khop", {"steps": 9000}, range(5), ("1x6-random",)),  # which takes a third more; it learns late
    *(Study("khop", seeds=(seed,), models=("1x6-random", *GROWTH)) for seed in (5, 6, 7, 8)),
    Study("khop", seeds=(0, 1, 2), models=("frailt", "relaxed", "1x4-gated", "three-part")),
    *(
        Study("sst2", TENTH | LADDER[rung] | {"learning_rate": rate}, models=("recurrent",))
        for rate in TUNING
        for rung in TUNED
    ),
    *(
        Study("sst2", TENTH | LADDER[rung] | {"learning_rate": rate}, (seed,), ("recurrent",))
        for seed in range(5)
        for rung, rate in TUNED.items()
    ),
    *(Study("sst2", TENTH | rung, (seed,), ("recurrent",)) for seed in range(5) for rung in LADDER.values()),
    Study("sst2", TENTH, range(5), ("baseline", "recurrent-wide")),
    *(Study("sst2", TENTH | {"precision": "bf16"}, (seed,), ("baseline", "recurrent")) for seed in range(5)),
    Study("sst2", CURVE),
    *(Study("state-tracking", {"group": group}, (seed,)) for seed in (0, 1, 2) for group in ("S3", "Z6")),
    Study("state-tracking", {"letters": 16}, (0, 1, 2), ("1x1", "1x4", "1x8")),
    Study("state-tracking", {"letters": 16, "steps": 12_000}, (0, 1, 2), ("1x8", "8x1")),
    *(Study("state-tracking-scan", seeds=(seed,)) for seed in (0, 1, 2)),
    *(Study("state-tracking-curriculum", seeds=(seed,)) for seed in (0, 1, 2)),
    *(Study("state-tracking-scan", {"group": "A5", "steps": 6000}, (seed,)) for seed in (0, 1, 2)),
    Study("facts", {"epochs": 240}, (0, 1)),
    Study("tinystories-small", SMALL["tinystories-small"], models=COMBINED),
    Study("shakespeare-small", SMALL["shakespeare-small"], models=WINDOWS),
    Study("tinystories-small", SMALL["tinystories-small"], (3,), ("frailt",)),  # whose weights are kept
    *(Study("khop-hard", seeds=(seed,)) for seed in EXPERIMENTS["khop-hard"].seeds),
    *(Study("iso-depth", seeds=(seed,)) for seed in EXPERIMENTS["iso-depth"].seeds),
    *(Study("iso-depth", {"learning_rate": rate}) for rate in (1.5e-3, 6e-3)),
    *(Study("iso-depth", seeds=(seed,), models=("three-part-64", "three-part-128")) for seed in range(8)),
    *(Study("iso-depth", {"steps": 3200}, (seed,), NARROW) for seed in (0, 1, 2)),
    *(Study(name, settings, models=LARGER_MODELS[name]) for name, settings in LARGER.items()),
    Study("khop-hard", seeds=(0, 1, 2), models=("6x1-w36",)),
    Study("khop-hard", seeds=(3,), models=("2x3", "1x6", "6x1")),  # the first one's weights are kept
    *(
        Study("khop", {"learning_rate": rate}, (0, 1, 2), (model,))
        for model in ("1x4", "4x1-w32", "2x2", "4x1-w44", "4x1")
        for rate in (1e-3, 4e-3, 8e-3)
    ),
    Study("khop-published", {"budget": "full"}, reduced=({"budget": "reduced"},)),
    Study("sst2", {"length": "short"}, (1, 2)),
    Study("multi-domain", reduced=(THREE_DOMAINS,)),
    Study("yelp", reduced=(LONG_TEXTS,)),
    Study("multi-domain-imdb", reduced=(THREE_DOMAINS,)),
    Study("yelp", {"max_length": 512}, reduced=(LONG_TEXTS,)),
    *(
        Study(name, {"recipe": recipe, "budget": "full"}, (seed,), reduced=({"budget": "reduced"},))
        for name in ("shakespeare", "tinystories")
        for seed in EXPERIMENTS[name].seeds
        for recipe in EXPERIMENTS[name].recipes  # inside seeds, so that pairs come early
    ),
)


def why(config: RunConfig) -> str:
    """Why a run is to be made: missing, or what is wrong with its record today; empty when nothing is."""
    try:
        found = records.find(config.name, config.model, config.seed, config.source)
    except RtxError as error:
        return str(error)
    return "missing" if found is None else found.stale_reason()


def planned(reduced: bool = False, **extra: object) -> Iterator[RunConfig]:
    """Every run of the plan, each once; `extra` settings are put on all of them."""
    seen = set()
    for study in PLAN:
        for budget in study.reduced if reduced else ({},):
            for seed in study.seeds:
                for model in study.models or EXPERIMENTS[study.experiment].shown:
                    settings = study.settings | budget | extra
                    config = configure(study.experiment, model, seed, **settings)
                    if (key := (config.name, config.model, config.seed)) not in seen:
                        seen.add(key)
                        yield config


def minutes(config: RunConfig, known: list[records.Record]) -> float | None:
    """About what a run takes on one quiet thread: the nearest and fastest recorded run of its model,
    by what it reads."""
    same = [r for r in known if r["experiment"] == config.experiment and r["model"] == config.model]
    same = [r for r in same if bool(r["config"]["train"]["steps"]) == bool(config.train.steps)]
    if not same:
        return None

    def likeness(record: records.Record) -> tuple:
        theirs, mine = record["config"]["data"], config.data.model_dump()
        texts = [theirs.get(name) == mine.get(name) for name in ("length", "max_length")]
        return record["name"] == config.name, sum(texts), -abs(1 - _work(config, record)), -record["seconds"]

    near = max(same, key=likeness)
    return near["seconds"] / 60 * _work(config, near)


def _work(config: RunConfig, record: records.Record) -> float:
    """How many times what the recorded run read this one reads."""
    train = record["config"]["train"]
    if config.train.steps:
        return config.train.steps * config.train.batch_size / (train["steps"] * train["batch_size"])
    mine, theirs = config.data.model_dump(), record["config"]["data"]
    if "facts" in mine:
        return mine["facts"] * config.train.epochs / (theirs["facts"] * train["epochs"])
    share = mine["fraction"] / theirs["fraction"]
    if mine.get("train_rows") or theirs.get("train_rows"):
        share = (mine["train_rows"] or 54_576 * mine["fraction"]) / record["data"]["n_train"]
    return share * config.train.epochs / train["epochs"] * mine["max_length"] / theirs["max_length"]


# -- what is measured beside the runs ----------------------------------------------------------------------------------

_LENGTHS, _SPLITS = ({"length": "short"}, {"length": "long"}), ({"split": "official"}, {"split": "grouped"})
TASKS = [
    *({"experiment": "sst2"} | part for part in ({}, *_SPLITS, TENTH, {"fraction": 0.5}, *_LENGTHS)),
    *({"experiment": name} for name in ("yelp", "multi-domain", "multi-domain-imdb")),
]
CLASSIFIERS = ["baseline", "recurrent", "recurrent-wide"]
STORIES = ["control", "frailt", "three-part", "relaxed", "control-3", "control-8", "control-long"]
S3_LONG = {"experiment": "state-tracking", "models": ["1x8"], "seeds": [0, 1, 2], "letters": 16, "steps": 12_000}
MEASURES = (  # (kind, settings, what is added for runs at reduced budgets)
    *(("yardstick", settings, {}) for settings in TASKS),
    ("ngrams", {"experiment": "shakespeare"}, {}),
    ("transfer", {"experiment": "sst2", "to": "yelp"}, TENTH | {"seeds": [0, 1, 2]}),
    ("transfer", {"experiment": "yelp", "to": "sst2"}, LONG_TEXTS),
    ("rounding", {"experiment": "sst2", "models": CLASSIFIERS}, TENTH),
    ("quantized", {"experiment": "khop", "models": ["4x1", "2x2", "1x4"]}, {}),
    ("attention", {"experiment": "sst2"}, TENTH),
    ("growth", {"experiment": "khop", "models": ["1x4"], "seeds": [5, 6, 7]}, {}),
    ("growth", {"experiment": "khop", "models": ["1x6-random"], "seeds": [3, 4], "steps": 9000}, {}),
    ("growth", {"experiment": "khop", "models": ["1x6-random", *GROWTH], "seeds": [5, 6, 7, 8]}, {}),
    ("spans", S3_LONG, {}),
    ("lens", {"experiment": "iso-depth", "models": ["1x6-64", "2x3-64", "6x1-64"], "seeds": [3]}, {}),
    ("lens", {"experiment": "tinystories-small", "models": ["frailt"], "seeds": [3]} | SMALL["tinystories-small"], {}),
    ("demo", {"experiment": "sst2", "models": ["recurrent"], "seeds": [0]}, {}),
    ("initial", {"experiment": "tinystories"}, {}),
    ("grades", {"experiment": "tinystories"}, {"budget": "reduced"}),
    ("grades", {"experiment": "tinystories-small", "models": STORIES} | SMALL["tinystories-small"], {}),
    # last, as its times want a quiet machine
    ("precision", {"experiment": "sst2", "models": CLASSIFIERS}, TENTH),
)


def measure(reduced: bool = False) -> None:
    """Make the measurements that are missing or stale; what one of them lacks is said, and the others are made."""
    from rtx_core.experiments.measure import measure as one

    for kind, settings, smaller in MEASURES:
        try:
            one(kind, **settings | (smaller if reduced else {}))
        except RtxError as error:
            print(f"left out: {kind} of {settings['experiment']}: {error}", flush=True)
