"""Every experiment of the paper, one entry each: its data, how it trains, its models.  No torch here."""

from functools import partial

from pydantic import Field

from rtx_core.data.config import ClassificationData, FactData, GroupData, HopData, LanguageData, ScanData
from rtx_core.experiments import Experiment, ModelVariant
from rtx_core.settings import AtLeastTwo, PositiveInt
from rtx_core.train.config import TrainConfig

# nanoGPT's own recipe for characters, from which those of all language models differ a little
_NANOGPT = TrainConfig(epochs=0, steps=5000, batch_size=64, learning_rate=1e-3, min_learning_rate=1e-4, eval_every=250)
_NANOGPT = _NANOGPT.replace(schedule="cosine", beta2=0.99, weight_decay=0.1, decay="matrices")
_NANOGPT = _NANOGPT.replace(stop_patience=0, stop_min_delta=0.0)
_SMALLER = _NANOGPT.replace(steps=3000, batch_size=32)
_HOPS = _SMALLER.replace(learning_rate=2e-3, warmup_steps=200, beta2=0.98, weight_decay=0.01)
_FACTS = _HOPS.replace(steps=0, epochs=60, batch_size=1024, weight_decay=0.0, eval_every=0)
# Steps, batch and tokens are the study's (204.8 M); what it leaves open is llama2.c's default.
_STORIES = _NANOGPT.replace(steps=25_000, batch_size=32, learning_rate=5e-4, min_learning_rate=0.0, warmup_steps=1000)
_STORIES = _STORIES.replace(beta2=0.95, eval_every=1000, precision="bf16")
_SMALL_STORIES = _NANOGPT.replace(steps=2400, batch_size=16, learning_rate=2e-3, min_learning_rate=2e-4)
_SMALL_STORIES = _SMALL_STORIES.replace(beta2=0.95, eval_every=200)
_PUBLISHED = _HOPS.replace(steps=100_000, learning_rate=1e-4, min_learning_rate=0.0, schedule="linear")
_PUBLISHED = _PUBLISHED.replace(warmup_steps=1000, eval_every=1000, beta2=0.999, decay="all")
_STORY = {"hidden_size": 64, "num_layers": 2, "num_heads": 2, "intermediate_size": 176}
_THREE_PARTS = _STORY | {"num_layers": 3, "num_core_layers": 1, "num_passes": 6}

# Shakespeare by models of width 128, at equal tokens and, as `…-time`, with steps that fit into the time of `kausik`:
# a step takes 41, 78, 152 and 226 ms on one quiet thread, and one of `kausik` 84 (python -m benchmarks.small)
_WIDTH = {"hidden_size": 128, "num_heads": 4, "intermediate_size": 512, "dropout": 0.0}
_STEPS = {1: 2.06, 2: 1.08, 4: 0.55, 6: 0.37}
_SHAKESPEARE_SMALL = {f"gpt-{n}": ModelVariant("gpt", _WIDTH | {"num_layers": n}) for n in _STEPS}
_SHAKESPEARE_SMALL |= {
    "kausik": ModelVariant("kausik", _WIDTH),
    "kausik-2": ModelVariant("kausik", _WIDTH | {"num_layers": 2}),
}
_SHAKESPEARE_SMALL |= {f"kausik-w{n}": ModelVariant("kausik", _WIDTH | {"window": n}) for n in (4, 8)}
_SHAKESPEARE_SMALL["kausik-positions"] = ModelVariant("kausik", _WIDTH | {"positions": True})
_SHAKESPEARE_SMALL |= {
    f"gpt-{n}-time": ModelVariant("gpt", _WIDTH | {"num_layers": n}, more) for n, more in _STEPS.items()
}
WINDOWS = ("kausik-w4", "kausik-w8", "kausik-2")  # wider ones, and two layers
COMBINED = ("frailt-lora", "three-part-encoded")  # of TinyStories
ONE_SEED = COMBINED + WINDOWS
_SMALL = dict(hidden_size=64, num_heads=4, intermediate_size=176, rope_base=100.0)

_STACK = dict(num_layers=4, num_passes=1)
_PUBLISHED_WIDTH = dict(hidden_size=128, num_heads=4, intermediate_size=344)


def _looped(layers: int, passes: int, steps_factor: float = 1.0, **switches: object) -> ModelVariant:
    return ModelVariant("looped", _SMALL | {"num_layers": layers, "num_passes": passes} | switches, steps_factor)


_SHAPES = ((1, 1), (2, 1), (3, 1), (4, 1), (6, 1), (1, 2), (2, 2), (1, 4), (2, 3), (1, 6))
_LAYERS_PASSES = {f"{layers}x{passes}": _looped(layers, passes) for layers, passes in _SHAPES}
_LAYERS_PASSES["1x6-random"] = _looped(1, 6, 4 / 3, random_passes=True)
GROWTH = {  # the long loop, with the text put in again before each pass and with the state normed after it
    "1x6-random-norm": _looped(1, 6, 4 / 3, random_passes=True, loop_norm=True),
    "1x6-random-add": _looped(1, 6, 4 / 3, random_passes=True, injection="add"),
    "1x6-random-add-norm": _looped(1, 6, 4 / 3, random_passes=True, injection="add", loop_norm=True),
    "1x6-random-linear": _looped(1, 6, 4 / 3, random_passes=True, injection="linear"),
    "1x6-random-linear-norm": _looped(1, 6, 4 / 3, random_passes=True, injection="linear", loop_norm=True),
}
_LAYERS_PASSES["4x1-noise"] = _looped(4, 1, weight_noise=4)  # as rounding to four bits would move them
_LAYERS_PASSES["1x4-noise"] = _looped(1, 4, weight_noise=4)
# As deep and as heavy as a loop (1x2, 1x4, 2x2, and on the hard task 2x3), and therefore narrow; the MLP is sized for
# that.
_NARROW = {
    "2x1-w44": _looped(2, 1, hidden_size=44, num_heads=2, intermediate_size=120),
    "4x1-w32": _looped(4, 1, hidden_size=32, num_heads=2, intermediate_size=88),
    "4x1-w44": _looped(4, 1, hidden_size=44, num_heads=2, intermediate_size=120),
    "6x1-w36": _looped(6, 1, hidden_size=36, num_heads=2, intermediate_size=104),
}
_WIDE = {  # one layer with as many parameters as the two of 2x1: in its MLP alone, or throughout
    "1x1-wide": _looped(1, 1, intermediate_size=438),
    "1x1-w88": _looped(1, 1, hidden_size=88, intermediate_size=264),
}
_STUDIED = {  # the recurrences of this book as they loop one layer four times, or three layers of which one is looped
    "frailt": _looped(1, 4, encoding="pass"),
    "relaxed": _looped(1, 4, lora_rank=1),
    "1x4-gated": _looped(1, 4, injection="add", gate=True),
    "three-part": _looped(3, 2, num_core_layers=1, injection="linear", state_std=0.02, state_norm=True),
}


class CurriculumData(GroupData):
    """The texts of state tracking, short ones first (`curriculum.GroupCurriculum`)."""

    task_class = "study.curriculum:GroupCurriculum"
    stage: PositiveInt = Field(default=500, description="steps after which the longest sequence is twice as long")


class FixedPassesData(CurriculumData):
    """The same texts, every model being run as often as it is tested (`fixed_passes.FixedPasses`)."""

    task_class = "study.fixed_passes:FixedPasses"


class HopSetData(HopData):
    """k-hop induction from so many training sequences (`small_set.HopSet`)."""

    task_class = "study.small_set:HopSet"
    sequences: AtLeastTwo = Field(default=1000, description="training sequences, drawn once for each seed")


def _iso_depth(layers: int, passes: int, width: int, **switches: object) -> ModelVariant:
    """Six layer applications; the MLP as llama2.c sizes it, 8/3 of the width in eights."""
    depth = {"num_layers": layers, "num_passes": passes, "num_heads": width // 16} | switches
    return ModelVariant("looped", depth | {"hidden_size": width, "intermediate_size": -(-width // 3) * 8})


_WIDTHS, _SIX = (24, 32, 48, 64, 96, 128), ((6, 1), (3, 2), (2, 3), (1, 6))
_ISO_DEPTH = {f"{n}x{r}-{width}": _iso_depth(n, r, width) for n, r in _SIX for width in _WIDTHS}
_ISO_DEPTH |= {f"{n}x1-64": _iso_depth(n, 1, 64) for n in (1, 2, 3, 4)}  # stacks of fewer layers
_ISO_DEPTH |= {"1x2-64": _iso_depth(1, 2, 64), "2x1-44": _iso_depth(2, 1, 44)}  # and its narrow stack
_ISO_DEPTH |= {f"three-part-{w}": _iso_depth(3, 4, w, num_core_layers=1, injection="linear") for w in (64, 128)}
_CORPORA = ("sst2", "yelp", "multi-domain", "multi-domain-imdb")  # the last one: film reviews as long as the others
_light = partial(Experiment, keep_weights=True)  # beside the records

EXPERIMENTS: dict[str, Experiment] = {
    **{name: Experiment(ClassificationData(corpus=name)) for name in _CORPORA},
    "quickstart": Experiment(
        ClassificationData(corpus="sst2", source="embedded", train_rows=1600),
        TrainConfig(epochs=1, learning_rate=6e-4, warmup_steps=20, eval_every=30),
    ),
    "shakespeare": Experiment(
        LanguageData(corpus="shakespeare"),
        _NANOGPT,
        models={
            # two layers compute as much as the recurrence, whose layer runs twice a token
            **{f"gpt-{n}": ModelVariant("gpt", {"num_layers": n}) for n in (1, 2, 6)},
            "kausik-positions": ModelVariant("kausik", {"positions": True}),
        },
        default_models=("gpt-1", "gpt-2", "gpt-6", "kausik-positions", "kausik"),
        seeds=(0, 1),
        recipes={
            # the public configuration: a constant rate, twice the steps and twice the batch
            "report": {"steps": 10_000, "batch_size": 128, "schedule": "constant", "warmup_steps": 0, "beta2": 0.95},
            "nanogpt": {},  # with which the 6-layer model does better than in the report
        },
        # for two cores: four fifths of a pass over the text, in smaller batches so that there are enough steps
        budgets={"reduced": {"steps": 400, "batch_size": 8, "eval_every": 50, "eval_batches": 6}, "full": {}},
    ),
    "shakespeare-small": _light(  # that two cores train to the end: every model sees 6.1 M characters
        LanguageData(corpus="shakespeare", block_size=64, eval_batches=20),
        _SMALLER,
        models=_SHAKESPEARE_SMALL,
        default_models=("gpt-1", "gpt-2", "gpt-4", "gpt-6", "kausik", "kausik-positions"),
        seeds=(0, 1, 2, 3, 4),
    ),
    "tinystories": Experiment(
        LanguageData(corpus="tinystories", eval_batches=12),
        _STORIES,
        models={
            # FraiLT's computation for a token over the control's
            "control-long": ModelVariant("control", steps_factor=3.25),
            "control-16": ModelVariant("control", {"num_layers": 16}),  # the same by layers of their own
            "control-8": ModelVariant("control", {"num_layers": 8}),  # twice the layers
        },
        default_models=("control", "frailt", "three-part", "relaxed", "control-long", "control-16", "control-8"),
        seeds=(0, 1),
        recipes={"report": {}},
        budgets={
            # for two cores: 0.4 of a pass over the mirror's part of the data
            "reduced": {"steps": 400, "batch_size": 8, "warmup_steps": 40, "eval_every": 50, "eval_batches": 8},
            "full": {},
        },
    ),
    "tinystories-small": _light(  # 5 M tokens; what is looped applies eight layers
        LanguageData(corpus="tinystories", block_size=128, eval_batches=20),
        _SMALL_STORIES,
        models={
            "control": ModelVariant("control", _STORY),
            "frailt": ModelVariant("frailt", _STORY | {"num_passes": 4}),
            "three-part": ModelVariant("three-part", _THREE_PARTS),
            "relaxed": ModelVariant("relaxed", _STORY | {"num_passes": 4, "lora_rank": 4}),
            "control-3": ModelVariant("control", _STORY | {"num_layers": 3}),  # the size of Relaxed and Three Part
            "control-8": ModelVariant("control", _STORY | {"num_layers": 8}),  # computes as much as the looped ones
            # the study's future work: two of its ways of looping at once
            "frailt-lora": ModelVariant("frailt", _STORY | {"num_passes": 4, "lora_rank": 4}),
            "three-part-encoded": ModelVariant("three-part", _THREE_PARTS | {"encoding": "pass"}),
            "control-long": ModelVariant("control", _STORY, steps_factor=1.8),  # so does this one, over all its steps
        },
        default_models=("control", "frailt", "three-part", "relaxed", "control-8", "control-long"),
        seeds=(0, 1, 2),
    ),
    "khop": _light(
        HopData(),
        _HOPS,
        models=_LAYERS_PASSES | _NARROW | _STUDIED | GROWTH,
        default_models=("1x1", "2x1", "3x1", "4x1", "2x2", "1x4", "1x6-random"),
        seeds=(0, 1, 2, 3, 4),
    ),
    "khop-again": _light(  # four hops on seeds that nothing was chosen by
        HopData(),
        _HOPS,
        models=_LAYERS_PASSES | _NARROW,
        default_models=("2x2", "4x1", "4x1-w44"),
        seeds=tuple(range(10, 30)),
    ),
    "khop-slow": _light(  # four hops again, to count the seeds that learn slowly
        HopData(), _HOPS, models=_LAYERS_PASSES | _NARROW, default_models=("2x2", "4x1-w44"), seeds=tuple(range(40, 60))
    ),
    "khop-set": _light(  # four hops from few training sequences
        HopSetData(),
        _HOPS,
        models=_LAYERS_PASSES | _NARROW,
        default_models=("2x2", "4x1", "4x1-w44", "1x4"),
        seeds=tuple(range(33, 38)),
    ),
    "khop-hard": _light(
        HopData(letters=48, hops=8, eval_texts=720, test_texts=18_432),
        _HOPS.replace(steps=4000),
        models=_LAYERS_PASSES | _NARROW,
        default_models=("2x1", "4x1", "6x1", "2x3", "1x6"),
        seeds=(0, 1, 2),
    ),
    "khop-published": _light(  # Sanford et al. 2024, with rotary positions and SwiGLU in the place of GPT-2's
        HopData(letters=98, hops=16, scored="all", eval_texts=680, test_texts=8_704),
        _PUBLISHED,
        models={
            f"{layers}x{passes}": ModelVariant(
                "looped", _PUBLISHED_WIDTH | {"num_layers": layers, "num_passes": passes}
            )
            for layers, passes in ((2, 1), (3, 1), (4, 1), (6, 1), (1, 4), (1, 6), (2, 3))
        }
        # as many parameters in the layers as 1x4, and its depth; then twice the width, where 4x1 is that narrow stack
        | {"4x1-w64": ModelVariant("looped", dict(hidden_size=64, num_heads=4, intermediate_size=172, **_STACK))}
        | {
            f"{name}-w256": ModelVariant("looped", dict(hidden_size=256, intermediate_size=688, **shape))
            for name, shape in (("1x4", dict(num_layers=1, num_passes=4)), ("4x1", _STACK))
        },
        default_models=("4x1", "1x4"),
        budgets={"reduced": {"steps": 10_000, "learning_rate": 5e-4, "eval_every": 500}, "full": {}},
    ),
    "facts": _light(  # to be memorized: 60 exposures of each
        FactData(),
        _FACTS,
        models=_LAYERS_PASSES | _NARROW | _WIDE,
        default_models=("1x1", "1x4", "2x1", "2x2", "4x1", "4x1-w32"),
        seeds=(0, 1, 2),
    ),
    "facts-again": _light(  # on seeds that nothing was chosen by
        FactData(facts=49_152),
        _FACTS,
        models=_LAYERS_PASSES | _NARROW,
        default_models=("1x1", "1x2", "2x1"),
        seeds=tuple(range(10, 15)),
    ),
    "state-tracking": _light(
        GroupData(group="S3"),
        _HOPS.replace(batch_size=16),
        models={f"1x{passes}": _looped(1, passes) for passes in (1, 2, 4, 8)} | {"8x1": _looped(8, 1)},
        default_models=("1x1", "1x2", "1x4", "1x8"),
    ),
    "state-tracking-scan": _light(  # told what to hold after each pass; log2(64) of them are enough
        ScanData(group="S3"),
        _HOPS.replace(batch_size=16),
        models={"1x6-numbered": _looped(1, 6, encoding="pass"), "6x1": _looped(6, 1)},
        default_models=("1x6-numbered", "6x1"),
        seeds=(0, 1, 2),
    ),
    "state-tracking-curriculum": _light(  # short products first, as many passes as factors
        CurriculumData(group="S3"),
        _HOPS.replace(batch_size=16),
        models={"1x8": _looped(1, 8), "1x64": _looped(1, 64), "8x1": _looped(8, 1)},
        default_models=("1x64", "8x1"),
        seeds=(0, 1, 2),
    ),
    "state-tracking-fixed-passes": _light(  # short products first, but no more passes than in the test
        FixedPassesData(group="S3"),
        _HOPS.replace(batch_size=16),
        models={"1x8": _looped(1, 8)},
        default_models=("1x8",),
        seeds=(0, 1, 2),
    ),
    "iso-depth": _light(
        LanguageData(corpus="shakespeare", block_size=64, eval_batches=20),
        _NANOGPT.replace(steps=800, batch_size=32, learning_rate=3e-3, min_learning_rate=3e-4, eval_every=200),
        models=_ISO_DEPTH,
        default_models=tuple(f"{shape}-{width}" for shape in ("6x1", "3x2", "2x3", "1x6") for width in (64, 128))
        + ("6x1-24", "6x1-32", "6x1-48", "6x1-96"),
        seeds=tuple(range(8)),
    ),
    "iso-depth-again": _light(  # the same on seeds that nothing was chosen by
        LanguageData(corpus="shakespeare", block_size=64, eval_batches=20),
        _NANOGPT.replace(steps=800, batch_size=32, learning_rate=3e-3, min_learning_rate=3e-4, eval_every=200),
        models=_ISO_DEPTH,
        default_models=("1x1-64", "1x2-64", "2x1-64", "3x1-64", "3x2-64", "6x1-64", "1x6-64"),
        seeds=tuple(range(10, 20)),
    ),
    "iso-depth-wide": _light(  # the same text at four times the width of its narrow models, as many tokens
        LanguageData(corpus="shakespeare", block_size=64, eval_batches=20),
        _NANOGPT.replace(steps=800, batch_size=32, learning_rate=1.5e-3, min_learning_rate=1e-4, eval_every=200),
        models={f"{n}x{r}": _iso_depth(n, r, 256) for n, r in (*_SIX, (1, 1), (1, 2), (2, 1), (3, 1))},
        default_models=("1x1", "1x2", "2x1", "3x1", "6x1", "3x2", "2x3", "1x6"),
        seeds=(0, 1, 2),
    ),
}
