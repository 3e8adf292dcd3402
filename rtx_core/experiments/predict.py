"""Ask a trained classifier: `rtx.load("sst2/recurrent-seed0").classify(["a film of great charm"])`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from rtx_core import records
from rtx_core.errors import RtxError, is_unicode

if TYPE_CHECKING:
    from rtx_core.experiments.run import Run
    from rtx_core.records import Record

HEAD = ("text", "passes", "label")  # columns of every table of answers


def load(address: "str | Path | Run | Record", source: str = "hub") -> "Predictor":
    """The trained model of a run, of its record or the record's address ("sst2/recurrent-seed0"), or of a folder."""
    from rtx_core.experiments.weights import load_weights, weights_of
    from rtx_core.models import load_model

    record = getattr(address, "record", address)  # of a run
    if isinstance(record, records.Record):
        return Predictor(load_weights(record), weights_of(record).parent)
    folder = Path(address).expanduser()
    if not folder.is_dir():
        return load(records.at(str(address), source))
    weights = folder / "model.safetensors"
    if not weights.exists():
        raise RtxError(f"{address} holds no model.safetensors; expected a folder that `rtx export` wrote.")
    return Predictor(load_model(weights), folder)


@dataclass
class Predictor:
    """A trained classifier; the tokenizer that it was trained with lies in `folder`."""

    model: Callable
    folder: Path

    @property
    def classes(self) -> list[str]:
        found = self.model.about.get("classes")
        if not found:
            raise RtxError(f"The model of {self.folder.name} has no classes: it continues texts; load a classifier.")
        return found

    def classify(self, texts: Iterable[str], passes: bool = False) -> pd.DataFrame:
        """A row a text: text, label, and each class's probability under its name.  `passes=True`:
        a row for each pass."""
        import torch

        from rtx_core.data.tasks import logits_of
        from rtx_core.data.tokens import read_tokenizer, tokenize

        texts, classes = _texts(texts), self.classes
        tokens = tokenize(
            pd.DataFrame({"text": texts, "label": 0}), read_tokenizer(self.folder), self.model.about["max_length"]
        )
        if passes and "num_passes" not in self.model.config.names():
            raise RtxError(f"The model of {self.folder.name} has no passes to count; ask it without passes.")
        columns = [f"probability of {name}" if name in HEAD else name for name in classes]
        tables = []
        for n in range(1, self.model.config.num_passes + 1) if passes else [None]:
            with _passes(self.model, n):
                logits = torch.from_numpy(logits_of(self.model, tokens, torch.device("cpu"), nullcontext()))
            table = pd.DataFrame(logits.softmax(-1).numpy(), columns=columns)
            table.insert(0, "label", [classes[i] for i in logits.argmax(1)])
            table.insert(0, "text", texts)
            if passes:
                table.insert(1, "passes", n)
            tables.append(table)
        return pd.concat(tables, ignore_index=True)


@contextmanager
def _passes(model: Callable, n: int | None) -> Iterator[None]:
    """The model run so many times, or as it was trained for None."""
    usual = model.config
    try:
        model.config = usual.replace(num_passes=n) if n else usual
        yield
    finally:
        model.config = usual


def _texts(given: object) -> list[str]:
    """Strings, as many as there are; anything else is an error."""
    if not isinstance(given, Iterable) or isinstance(given, (pd.DataFrame, Mapping, bytes)):
        raise RtxError(f"The texts are of type {type(given).__name__}; expected strings, as a column of a table.")
    texts = [given] if isinstance(given, str) else list(given)
    if not texts:
        raise RtxError("There is no text to classify; give at least one.")
    for text in texts:
        if not isinstance(text, str) or not is_unicode(text):
            raise RtxError(f"{text!r:.60} is no text; expected a string of valid Unicode (a file: UTF-8).")
    return texts
