"""What a run left: its record, if that is of the configuration that is asked for, and its trained weights, which
answer: `rtx.load("sst2/recurrent-seed0").classify(["a film of great charm"])`.
"""

import json
import os
import time
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from rtx_core import records
from rtx_core.data.sources import sha256_of
from rtx_core.errors import RtxError, reason
from rtx_core.experiments.configure import RunConfig, configure
from rtx_core.foreign import InvalidFile, invalid_file_errors
from rtx_core.models import registry
from rtx_core.models.configs import least_parameters
from rtx_core.paths import build, home, user_path, write_atomically
from rtx_core.records import DERIVED_FIELDS, Record, fingerprint, released
from rtx_core.study import declaration, study
from rtx_core.train.config import TrainConfig

ANSWER_COLUMNS = ("text", "passes", "label")  # columns of every table of answers
MAX_RELEASED_PARAMETERS = 1_200_000  # parameters of a model whose weights may lie beside the records


def find_record(config: RunConfig) -> Record | None:
    """The record of this very configuration; one of that name made under another configuration is an error.  One of
    generated text whose code has changed is none."""
    record = records.find(config.name, config.model, config.seed, config.source)
    if record is None:
        return None
    texts_differ = config.data.texts_differ(record)
    if record.synthetic and (texts_differ or record.stale_reason()):
        return None
    subject = f"{record} was made"
    advice = "give the model a name of its own (base, name), files one by from_files(name=), or replace=True"
    if texts_differ:
        raise RtxError(f"{subject} of other texts ({record['data']['name']}) than are asked for; {advice}.")
    refuse_changed(record)
    refuse_changed_task(config, record)
    if changes := ", ".join(differences(config, record)):
        raise RtxError(f"{subject} under other settings ({changes}); {advice}.")
    # A checkpoint older than the record is of a run that was killed before it could remove it.
    finished = datetime.fromisoformat(record["finished"]).timestamp() + 1  # which is in whole seconds
    with suppress(OSError):
        for path in local_weights(record).parent.glob("checkpoint*"):
            if path.stat().st_mtime < finished < time.time() + 60:  # a date to come, of another clock, says nothing
                path.unlink()
    return record


def differences(config: RunConfig, record: Record) -> list[str]:
    """Settings that differ between a record and what is asked for, as "epochs 1 instead of 5".

    Those that the data decides do not count; one that is younger than the record had its default.
    """
    saved, model_defaults = record["config"], registry.config_of(config.architecture)
    rows = [("architecture", config.architecture, saved["architecture"])]
    for part, settings, defaults, exclude in (
        ("data", config.data, config.data.defaults(), config.data.excluded_from_name),
        ("train", config.train, TrainConfig.defaults(), ()),
        ("model", model_defaults.replace(**config.overrides), model_defaults.model_dump(mode="json"), DERIVED_FIELDS),
    ):
        before = defaults | saved[part]
        now = settings.model_dump(mode="json")
        rows += [(name, value, before.get(name)) for name, value in now.items() if name not in exclude]
    return [f"{name} {value} instead of {expected}" for name, expected, value in rows if value != expected]


def refuse_changed(record: Record) -> None:
    """An error where a class that was registered here, or the code that trains it, has changed since the record."""
    entry = registry.MODELS.get(record["config"]["architecture"])
    if entry and not isinstance(entry.kind, str) and record.stale_reason():
        name = record["config"]["architecture"]
        cause = f"another version of {name}, of anything else in its file, or of what trains it"
        raise RtxError(f"{record} was made with {cause}; replace=True (in a terminal --replace) trains today's.")


def refuse_changed_task(config: RunConfig, record: Record) -> None:
    """An error where a task of one's own, or the code that it is trained by, has changed since the record."""
    if fingerprint.is_elsewhere(type(config.data).__module__) and record.stale_reason():
        cause = f"another version of the task {type(config.data).__name__} or of the code that it is trained by"
        raise RtxError(f"{record} was made with {cause}; replace=True (in a terminal --replace) trains today's.")


def save_run(config: RunConfig, content: dict, predictions: dict | None, folder: Path) -> Record:
    """Save the weights of a small model whose experiment keeps them, then the record: no record is without them."""
    file = folder / "model.safetensors"  # large where a small model has large buffers
    small = content["parameters"]["total"] <= MAX_RELEASED_PARAMETERS and file.stat().st_size <= released.MAX_BYTES
    if config.keep_weights and small:
        weights = file.read_bytes()
        content |= {"tensors_sha256": released.tensors_sha256(weights)}
        write_atomically(released.released_weights(records.path_for(content)), weights)
    return records.save(content, predictions)


def find_weights(record: Record) -> Path:
    """The file of its weights: those of small models are kept with their records, others lie where the run was made."""
    return path if (path := released.released_weights(record.path)).is_file() else local_weights(record)


def local_weights(record: Record) -> Path:
    return run_dir(record["name"], record["model"], record["seed"], record["key"]) / "model.safetensors"


def run_dir(name: str, model: str, seed: int, key: str) -> Path:
    """The folder of a run's checkpoint and weights."""
    return build() / "runs" / name / f"{model}-seed{seed}-{key[:8]}"


def load_weights(record: Record) -> Any:
    """The trained model of a record: from beside the records, else from where the run was made."""
    path = find_weights(record)
    refuse_changed(record)
    if not path.is_file():
        folder = os.path.relpath(local_weights(record).parent, home())
        raise RtxError(
            f"The trained weights of {record} are not here; copy them to {folder}, or {retrain_advice(record)}."
        )
    model = model_in(path)
    if released.matches_record(record, path) is False or model.about.get("run") != record["key"]:
        problem = f"{path.name} holds weights of another run than its record's, or altered ones"
        raise RtxError(f"{problem}; restore copies of both, or {retrain_advice(record)}.")
    return model


def retrain_advice(record: Record) -> str:
    """How to make a run again: by its command, as far as a record says that."""
    from rtx_core.experiments.run import command_of

    if (request := record.get("asked")) and record["experiment"] in declaration("EXPERIMENTS"):
        with suppress(InvalidFile), invalid_file_errors():  # of settings that are not known here
            config = configure(record["experiment"], request["model"], record["seed"], **request["settings"])
            return f"train it again: {command_of(config, replace=True)}"
    return "train it again with replace=True (on the command line: run … --replace)"


def load(address: object, source: str = "") -> "Predictor":
    """The trained model of a run, of its record or the record's address ("sst2/recurrent-seed0"), or of a folder; a
    `source`, "embedded" or "hub", tells records of generated texts from those of real ones."""
    study()  # whose models are registered where it is imported
    record = getattr(address, "record", address)  # of a run
    if isinstance(record, Record):
        return Predictor(load_weights(record), local_weights(record).parent)
    folder = user_path(address)
    if not os.path.isdir(folder):
        return load(records.load(str(address), source))
    return Predictor(model_in(folder / "model.safetensors"), folder)


def model_in(path: Path) -> Any:
    """The model in a file of weights; no memory is taken for one that its header claims and its tensors cannot fill."""
    from safetensors import safe_open

    from rtx_core.models import load_model

    oversized = False
    if not path.is_file():  # a pipe would be waited for
        raise RtxError(f"There is no file {path}; give the folder of a trained model.")
    with (
        suppress(InvalidFile),
        invalid_file_errors(),
        safe_open(path, framework="np") as file,
    ):  # what else is wrong, `load_model` says
        header = file.metadata()
        config = registry.config_of(header["model"], **json.loads(header["config"]))
        if isinstance(registry.find(header["model"]).kind, str) and least_parameters(config) > 2**26:
            oversized = least_parameters(config) > path.stat().st_size
    if oversized:
        raise RtxError(f"{path} claims a larger model than it holds; train or export it anew.")
    return load_model(path)


@dataclass
class Predictor:
    """A trained classifier; the tokenizer that it was trained with lies in `folder`."""

    model: Any  # as `load_model` gives it, with `about`
    folder: Path

    @cached_property
    def tokenizer(self):
        """The one that the model was trained with, by its hash where the weights name that."""
        from tokenizers import Tokenizer

        path, expected = self.folder / "tokenizer.json", self.model.about.get("tokenizer")
        try:
            content = path.read_bytes() if path.is_file() else b""
            if expected not in (None, sha256_of([content])):
                raise ValueError("it is not the one that the model was trained with")
            return Tokenizer.from_buffer(content)
        except Exception as error:  # of no narrower kind are those of tokenizers
            problem = f"{path} is not usable ({reason(error)})"
            raise RtxError(f"{problem}; copy it from where the model was trained.") from error

    def classify(self, texts: Iterable[str], passes: bool = False) -> pd.DataFrame:
        """A row a text, with `passes` one for each pass: text, label, and each class's probability under its name, or
        under "p(name)" if a class has the name of another column."""
        import torch

        from rtx_core.data.tasks import logits_of
        from rtx_core.data.tokens import tokenize

        if not (classes := self.model.about.get("classes")):
            raise RtxError(f"The model of {self.folder.name} has no classes: it continues texts; load a classifier.")
        length, types = self.model.about.get("max_length"), isinstance(classes, list) and set(map(type, classes))
        if types != {str} or type(length) is not int or not 3 <= length < 2**31:
            problem = f"classes {classes!r:.60} and max_length {length!r:.20}"
            raise RtxError(f"The weights of {self.folder.name} have {problem}; expected names and a number above 2.")
        rows = [texts] if isinstance(texts, (str, pd.DataFrame)) else list(texts)
        if not rows or not all(isinstance(text, str) for text in rows):
            raise RtxError(f"The texts are {rows!r:.60}; expected strings.")
        frame = pd.DataFrame({"text": rows, "passes": None, "label": 0})
        try:
            tokens, size = tokenize(frame, self.tokenizer, length), getattr(self.model.config, "vocab_size", 2**31)
            if tokens.lengths.min() < 1 or tokens.ids.max() >= size:
                raise ValueError(f"its tokens are not the {size:,} of the model")
        except RtxError:
            raise
        except Exception as error:  # of no narrower kind are those of tokenizers
            problem = f"The tokenizer in {self.folder} does not fit ({reason(error)})"
            raise RtxError(f"{problem}; copy it from where the model was trained.") from error
        columns, tables = [f"p({name})" for name in classes] if {*ANSWER_COLUMNS} & {*classes} else [*classes], []
        config = self.model.config
        for n in range(1, getattr(config, "num_passes", 1) + 1) if passes else [None]:
            try:
                self.model.config = config.replace(num_passes=n) if n and hasattr(config, "num_passes") else config
                logits = torch.from_numpy(logits_of(self.model, tokens, torch.device("cpu"), nullcontext()))
            finally:
                self.model.config = config
            if logits.shape[1] != len(classes):
                problem = f"{logits.shape[1]} classes, and its weights name {classes!r:.80}"
                raise RtxError(f"The model of {self.folder.name} has {problem}; train or export it anew.")
            table = frame.assign(passes=n, label=[classes[i] for i in logits.argmax(1)])
            tables.append(table.join(pd.DataFrame(logits.softmax(-1).numpy(), columns=columns)))
        return pd.concat(tables, ignore_index=True).drop(columns=[] if passes else "passes")
