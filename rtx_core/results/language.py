"""Records of language models: `results/language/<experiment>/<model>-seed<k>.json`, checked against `language.schema.json`.

They read as the records of classifiers do.  The losses of every test batch are inside, so the test loss can be proven.
"""

import math
from pathlib import Path

from rtx_core.errors import RtxError
from rtx_core.language import LANGUAGE
from rtx_core.paths import write_json
from rtx_core.results import store
from rtx_core.results.record import Record, check_form, read_json


class LanguageRecord(Record):
    @property
    def files(self) -> tuple[str, ...]:
        return experiment_of(self["experiment"]).files


def experiment_of(variant: str):
    """What is fixed of the experiment that a variant such as `shakespeare-report-reduced` belongs to."""
    return LANGUAGE[variant.partition("-")[0]]


def check(content: object, name: str) -> dict:
    """The content if it is a record of a language model, else an error that names the first thing wrong with it."""
    check_form(content, name, "language.schema.json")
    best = min(content["history"], key=lambda row: row["validation_loss"])
    if content["selected"] != {"step": best["step"], "validation_loss": best["validation_loss"]}:
        raise RtxError(f"{name} selects step {content['selected']['step']}, which is not the best of its history; restore it from git.")
    test = content["test"]
    mean = sum(loss * size for loss, size in zip(test["batch_losses"], test["batch_sizes"])) / test["n"]
    if sum(test["batch_sizes"]) != test["n"] or not math.isclose(mean, test["loss"], rel_tol=1e-9):
        raise RtxError(f"{name} has a test loss that its test batches do not give; restore it from git.")
    return content


def path_of(source: str, variant: str, model: str, seed: int) -> Path:
    return store.folder(source) / "language" / variant / f"{model}-seed{seed}.json"


def read(path: Path) -> LanguageRecord:
    return LanguageRecord(check(read_json(path), f"{path.parent.name}/{path.name}"), path)


def find(source: str, variant: str, model: str, seed: int) -> LanguageRecord | None:
    """The record of this name, if there is one; a file that was put under another run's name is an error."""
    path = path_of(source, variant, model, seed)
    if not path.exists():
        return None
    found = read(path)
    if (found["experiment"], found["model"], found["seed"]) != (variant, model, seed):
        raise RtxError(
            f"{path.parent.name}/{path.name} holds the record of {found['experiment']}, {found['model']}, seed {found['seed']}; "
            f"move it to where it belongs."
        )
    return found


def save(content: dict) -> LanguageRecord:
    path = path_of(content["data"]["source"], content["experiment"], content["model"], content["seed"])
    write_json(path, check(content, f"{path.parent.name}/{path.name}"))
    return LanguageRecord(content, path)
