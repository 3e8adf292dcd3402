"""The settings of a language experiment: which models, which recipe, how much of it.  No torch here, so pages can read it.

The runs of a recipe are named by experiment, recipe and budget, `shakespeare-report-reduced`, or `shakespeare-report` at full
size; every other setting that decides numbers is in the name too: `shakespeare-report-reduced-steps20`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType

from rtx_core.errors import unknown
from rtx_core.parameters import _parameters as plain_parameters
from rtx_core.parameters import _typed as typed
from rtx_core.parameters import _typed_items as typed_items
from rtx_core.training.protocol import Seeds
from rtx_core.training.recipes import ZERO_IS_FINE, Recipe

RECIPE_FIELDS = {f.name: f for f in fields(Recipe)}


@dataclass(frozen=True)
class Experiment:
    """What is fixed of a language experiment."""

    corpus: str  # module of `rtx_core.corpora` whose `data(source, recipe)` gives a LanguageData
    models: Mapping[str, tuple[str, dict]]  # name on pages and in records -> arguments of `build_model`
    recipes: Mapping[str, Recipe]  # the first is the published one
    budgets: Mapping[str, dict]  # name -> what it changes in every recipe; the first is the one that pages show
    seeds: tuple[int, ...]  # that pages show
    shared: tuple[str, ...]  # fields of the recipe that are fields of the models' configurations too
    measure: str  # module and function: (model, data, recipe, device) -> the record's samples, latency and, if any, extra
    files: tuple[str, ...]  # sources in rtx_core that its numbers depend on, for the fingerprint
    longer: Mapping[str, float] = field(default_factory=dict)  # models that are trained that many times the recipe's steps


LANGUAGE: dict[str, Experiment] = {
    "shakespeare": Experiment(
        corpus="characters",
        models={
            "gpt-1": ("gpt", {"num_layers": 1}),
            "gpt-2": ("gpt", {"num_layers": 2}),  # the computation of the recurrent models, which evaluate their layer twice a token
            "gpt-6": ("gpt", {"num_layers": 6}),
            "kausik-positions": ("kausik", {"positions": True}),
            "kausik": ("kausik", {}),
        },
        recipes={
            # the public configuration: a constant rate, twice the steps and twice the batch
            "report": Recipe(steps=10_000, batch_size=128, schedule="constant", warmup_steps=0, beta2=0.95),
            "nanogpt": Recipe(),  # nanoGPT's own, with which the 6-layer model does better than in the report
        },
        budgets={
            # for two cores: four fifths of a pass over the text, in smaller batches so that there are enough steps
            "reduced": {"steps": 400, "batch_size": 8, "eval_every": 50, "eval_batches": 6},
            "full": {},
        },
        seeds=(0, 1),
        shared=("block_size", "dropout"),
        measure="rtx_core.evaluation.generation:measure",
        files=(
            "models/gpt.py", "models/kausik.py", "models/fused.py", "training/language.py", "training/recipes.py", "corpora/characters.py",
            "evaluation/generation.py",
        ),
    ),
    "tinystories": Experiment(
        corpus="stories",
        models={
            "control": ("control", {}),
            "frailt": ("frailt", {}),
            "three-part": ("three-part", {}),
            "relaxed": ("relaxed", {}),
            "control-long": ("control", {}),  # the computation of FraiLT by more tokens; see `longer`
            "control-16": ("control", {"num_layers": 16}),  # the same by layers of their own
            "control-8": ("control", {"num_layers": 8}),  # twice the layers
        },
        recipes={
            # Steps, batch and tokens are the study's (25,000 · 8,192 = 204.8M); what it leaves open is llama2.c's default.
            "report": Recipe(
                steps=25_000, batch_size=32, block_size=256, learning_rate=5e-4, min_learning_rate=0.0, warmup_steps=1000, beta2=0.95,
                dropout=0.0, eval_every=1000, eval_batches=12, precision="bf16",
            ),
        },
        budgets={
            # for two cores: 0.4 of a pass over the mirror's part of the data, in smaller batches so that there are enough steps
            "reduced": {"steps": 400, "batch_size": 8, "warmup_steps": 40, "eval_every": 50, "eval_batches": 8},
            "full": {},
        },
        seeds=(0, 1),
        shared=(),
        measure="rtx_core.evaluation.stories:measure",
        files=(
            "models/control.py", "models/cache.py", "models/frailt.py", "models/three_part.py", "models/relaxed.py",
            "models/cross_entropy.py", "models/flat.py", "models/layers.py", "models/packed.py", "training/packed_graph.py",
            "training/language.py", "training/recipes.py", "corpora/stories.py", "corpora/story_stream.py", "evaluation/passes.py", "evaluation/exits.py",
            "evaluation/story_metrics.py", "evaluation/stories.py", "evaluation/generation.py",
        ),
        longer={"control-long": 3.25},  # FraiLT's computation for a token over the control's
    ),
}
# The same with attention across stories, as llama2.c has it: not among the pages' runs.
LANGUAGE["storystream"] = replace(LANGUAGE["tinystories"], corpus="story_stream")


@dataclass(frozen=True)
class LanguageSettings:
    experiment: str
    models: list
    seeds: list = field(default_factory=lambda: [0])
    source: str = "real"  # real (mirror at RTX_DATA, else hub), hub, mirror or embedded
    recipe: str = ""  # the name of a recipe of the experiment
    budget: str = ""  # the name of a budget of the experiment
    device: str = "auto"
    training: Recipe = field(default_factory=Recipe)  # that recipe, with what the caller changed

    @property
    def reduced(self) -> dict[str, object]:
        """What differs from the named recipe at full size; empty when nothing does."""
        return self._changed(LANGUAGE[self.experiment].recipes[self.recipe])

    @property
    def effort(self) -> float:
        """Orders budgets by size."""
        return self.training.tokens

    @property
    def longer(self) -> dict[str, float]:
        """Models that are trained for more steps than the others, and how many times as many."""
        return LANGUAGE[self.experiment].longer

    @property
    def variant(self) -> str:
        """The name of the runs' folder."""
        fixed = LANGUAGE[self.experiment]
        name = f"{self.experiment}-{self.recipe}" + (f"-{self.budget}" if fixed.budgets[self.budget] else "")
        changed = self._changed(replace(fixed.recipes[self.recipe], **fixed.budgets[self.budget]))
        return name + "".join(f"-{k.replace('_', '')}{v:g}" if type(v) is float else f"-{k.replace('_', '')}{v}" for k, v in changed.items())

    def _changed(self, usual: Recipe) -> dict[str, object]:
        return {k: v for k, v in vars(self.training).items() if v != getattr(usual, k)}

    def training_of(self, model: str) -> Recipe:
        """The recipe of one model: that of all, but for those which are trained for longer."""
        return replace(self.training, steps=round(self.training.steps * LANGUAGE[self.experiment].longer.get(model, 1)))

    def training_config(self, model: str, seed: int) -> dict:
        """The record's `config.training`."""
        return {"recipe": self.recipe, "budget": self.budget, **asdict(self.training_of(model)), "seeds": asdict(Seeds.of(seed))}

    def build_arguments(self, model: str, vocab_size: int) -> tuple[str, dict]:
        """(name, overrides) for `build_model`."""
        experiment = LANGUAGE[self.experiment]
        name, overrides = experiment.models[model]
        return name, {"vocab_size": vocab_size, **{f: getattr(self.training, f) for f in experiment.shared}, **overrides}


def settings(experiment: str, given: Mapping[str, object], only: Sequence[str] = (), also: Mapping[str, type] = MappingProxyType({})) -> LanguageSettings:
    """Settings from a notebook's `globals()` or any mapping; the arguments are those of `rtx_core.parameters.settings`.

    A recipe's field given as 0 stays what recipe and budget say, where 0 itself makes no sense.
    """
    fixed = LANGUAGE[experiment]
    usual = LanguageSettings(experiment, models=list(fixed.models), seeds=list(fixed.seeds), recipe=next(iter(fixed.recipes)), budget=next(iter(fixed.budgets)))
    own = {f.name: f for f in fields(LanguageSettings) if f.name not in ("experiment", "training")}
    known = [*also, *(only or [*own, *RECIPE_FIELDS])]
    changes, training = {}, {}
    for name, value in plain_parameters(given, known).items():
        if name not in known:
            raise unknown("parameter", name, known)
        if name in own:
            changes[name] = typed(name, value, own[name].type)
        elif name in RECIPE_FIELDS:
            training[name] = typed(name, value, RECIPE_FIELDS[name].type)
        else:
            typed(name, value, also[name])
    chosen = replace(usual, **changes)
    if chosen.recipe not in fixed.recipes:
        raise unknown("recipe", chosen.recipe, fixed.recipes)
    if chosen.budget not in fixed.budgets:
        raise unknown("budget", chosen.budget, fixed.budgets)
    typed_items("models", chosen.models, str)
    for model in chosen.models:
        if model not in fixed.models:
            raise unknown("model", model, fixed.models)
    typed_items("seeds", chosen.seeds, int)
    training = {k: v for k, v in training.items() if v or k in ZERO_IS_FINE}
    return replace(chosen, training=replace(fixed.recipes[chosen.recipe], **fixed.budgets[chosen.budget] | training))
