"""Train and record language models: `python -m rtx_core.run_language shakespeare --run [name=value …]`.

Without `--run` it says which runs are recorded and which are missing.  It goes through seeds, recipes and models in turn, skips
what is recorded, and resumes what was interrupted, so the same line goes on after a kill.
"""

import sys
from dataclasses import asdict
from importlib import import_module

import yaml

from rtx_core.corpora.sources import resolve
from rtx_core.errors import RtxError
from rtx_core.language import LANGUAGE, LanguageSettings
from rtx_core.language import settings as language_settings
from rtx_core.models import build_model, save_model
from rtx_core.results import language as store
from rtx_core.results.code import code
from rtx_core.results.record import run_key
from rtx_core.run import claimed, command_line, described, make_all, place, plainly, progress_line, silent, work
from rtx_core.training import checkpoint, packed_graph
from rtx_core.training.language import losses_of, mean_and_error, train
from rtx_core.training.protocol import Seeds
from rtx_core.training.step import autocast_of
from rtx_core.training.team import team, together


@plainly()
def run(settings: LanguageSettings, name: str, seed: int, wait: bool = True) -> store.LanguageRecord:
    """Train, evaluate and record one model with one seed, as `rtx_core.run.run` does."""
    made_by = code()  # now: the files may change while a long run goes on
    experiment, recipe = LANGUAGE[settings.experiment], settings.training_of(name)
    where = place(settings.device)
    seeds, autocast = Seeds.of(seed), autocast_of(recipe.precision, where)
    data = import_module(f"rtx_core.corpora.{experiment.corpus}").data(resolve(settings.source), recipe)
    architecture, overrides = settings.build_arguments(name, data.vocab_size)
    model = build_model(architecture, seed=seeds.initialization, **overrides)
    config = {"model": {"architecture": architecture, **asdict(model.config)}, "training": settings.training_config(name, seed)}
    key = run_key(config, data.facts["sha256"], seed)
    folder = work(settings, key)
    mine = team()
    say = progress_line(settings.variant, name, seed) if mine.first else silent

    def recorded() -> store.LanguageRecord:
        losses, sizes = losses_of(model, data.test(), where, autocast)
        last_loss, _ = mean_and_error(losses, sizes)
        save_model(model, architecture, folder / "last.safetensors")
        if progress.best_step < recipe.steps:  # other weights than the last
            model.load_state_dict(best)
            losses, sizes = losses_of(model, data.test(), where, autocast)
        save_model(model, architecture, folder / "model.safetensors")
        loss, error = mean_and_error(losses, sizes)
        module, _, function = experiment.measure.partition(":")
        measured = getattr(import_module(module), function)(model, data, recipe, where)
        content = described(settings, name, seed, config, data.facts, model, progress, where, made_by) | {
            "key": key,
            "protocol": "reduced" if settings.reduced else settings.recipe,
            "test": {"n": int(sizes.sum()), "loss": loss, "error": error, "last_loss": last_loss,
                     "batch_losses": losses.tolist(), "batch_sizes": [int(size) for size in sizes]},
            **measured,
        }  # fmt: skip
        record = store.save(content)
        checkpoint.discard(folder / "checkpoint.safetensors")
        say(f"test loss {loss:.4f} ± {error:.4f} in {progress.seconds / 60:.1f} min")
        return record

    address = (data.facts["source"], settings.variant, name, seed)
    about = f"{folder.name}\n{command_of(settings, name, seed)}\n"
    with claimed(store, address, key, about, wait, say) as found:
        if found is not None:
            say(f"recorded, test loss {found['test']['loss']:.4f}")
            return found
        if where.type == "cuda" and not data.one_shape and recipe.micro_batches == mine.size == 1:
            packed_graph.install(model, recipe.block_size)
        best, progress = train(model, data, recipe, seeds, where, folder / "checkpoint.safetensors", experiment.files, say)
        return mine.told(recorded)


def command_of(settings: LanguageSettings, name: str, seed: int) -> str:
    """The line that makes this run, or goes on with it."""
    fixed = LANGUAGE[settings.experiment]
    named = {"recipe": settings.recipe, "budget": settings.budget}
    asked = {"source": settings.source, "device": settings.device, **vars(settings.training)}
    usual = {"source": "real", "device": "auto", **vars(fixed.recipes[settings.recipe]), **fixed.budgets[settings.budget]}
    changed = {k: v for k, v in asked.items() if v != usual[k]}
    return command_line("rtx_core.run_language", settings.experiment, models=[name], seeds=[seed], **named, **changed) + " --run"


def every(experiment: str, given: dict[str, object]) -> list[tuple[LanguageSettings, str, int]]:
    """The runs that an experiment's pages show, or those that `given` names: recipes inside seeds, so that pairs come early."""
    if experiment not in LANGUAGE:
        raise RtxError(f"{experiment!r} is no language experiment; the choices are {', '.join(LANGUAGE)}.")
    fixed = LANGUAGE[experiment]
    recipes = [given["recipe"]] if "recipe" in given else list(fixed.recipes)
    chosen = [language_settings(experiment, given | {"recipe": recipe}) for recipe in recipes]
    return [(settings, model, seed) for seed in chosen[0].seeds for settings in chosen for model in settings.models]


def main(arguments: list[str]) -> None:
    """The command line."""
    names = [a for a in arguments if a != "--run"]
    if not names:
        sys.exit("usage: python -m rtx_core.run_language EXPERIMENT [--run] [name=value …]")
    given = {name: yaml.safe_load(value) for name, _, value in (pair.partition("=") for pair in names[1:])}
    mine, missing = team(), []
    for settings, model, seed in every(names[0], given):
        found = mine.told(lambda: store.find(resolve(settings.source), settings.variant, model, seed))
        if found is None or found.note():  # what is recorded of other code is made anew
            missing.append((settings, model, seed))
        said = "not measured yet" if found is None else f"test loss {found['test']['loss']:.4f}" + (f", {found.note()}" if found.note() else "")
        if mine.first:
            print(f"{settings.variant} · {model} · seed {seed} · {said}", flush=True)
    if "--run" in arguments:
        make_all(missing, run)


if __name__ == "__main__":
    try:
        with together():
            main(sys.argv[1:])
    except RtxError as error:
        sys.exit(str(error))
