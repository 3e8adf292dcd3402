"""Records of language models: `results/language/<experiment>/<model>-seed<k>.json`, checked against `language.schema.json`.

They read as the records of classifiers do.  The losses of every test batch are inside, so the test loss can be proven.
"""

import math
from pathlib import Path

from rtx_core.errors import RtxError
from rtx_core.language import LANGUAGE
from rtx_core.paths import write_json
from rtx_core.results import store
from rtx_core.results.code import current
from rtx_core.results.record import Record, check_form, read_json


class LanguageRecord(Record):
    def note(self, data_sha256: str | None = None) -> str:
        """What a reader must know before trusting the record as today's: empty when nothing."""
        notes = []
        if not current(self["code"]["fingerprints"], experiment_of(self["experiment"]).files):
            notes.append(f"made by other code (commit {(self['code']['commit'] or 'unknown')[:9]}) than the code beside this page")
        if data_sha256 not in (None, self["data"]["sha256"]):
            notes.append(f"made on other data ({self['data']['sha256'][:12]}…) than today's ({data_sha256[:12]}…)")
        return " and ".join(notes)


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
