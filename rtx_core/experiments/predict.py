"""Ask a trained classifier: `rtx.load("sst2/recurrent-seed0").classify(["a film of great charm"])`."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from rtx_core import records
from rtx_core.errors import RtxError

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
    return Predictor(load_model(folder / "model.safetensors"), folder)


@dataclass
class Predictor:
    """A trained classifier; the tokenizer that it was trained with lies in `folder`."""

    model: Callable
    folder: Path

    def classify(self, texts: Iterable[str], passes: bool = False) -> pd.DataFrame:
        """A row a text, with `passes` one for each pass: text, label, and each class's probability under its name."""
        import torch
        from tokenizers import Tokenizer

        from rtx_core.data.tasks import logits_of
        from rtx_core.data.tokens import tokenize

        if not (classes := self.model.about.get("classes")):
            raise RtxError(f"The model of {self.folder.name} has no classes: it continues texts; load a classifier.")
        texts = [texts] if isinstance(texts, (str, pd.DataFrame)) else list(texts)
        if not texts or not all(isinstance(text, str) for text in texts):
            raise RtxError(f"The texts are {texts!r:.60}; expected strings.")
        frame = pd.DataFrame({"text": texts, "passes": None, "label": 0})
        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        tokens = tokenize(frame, tokenizer, self.model.about["max_length"])
        columns, tables = [f"probability of {name}" if name in HEAD else name for name in classes], []
        usual = self.model.config
        for n in range(1, usual.num_passes + 1) if passes else [None]:
            try:
                self.model.config = usual.replace(num_passes=n) if n else usual
                logits = torch.from_numpy(logits_of(self.model, tokens, torch.device("cpu"), nullcontext()))
            finally:
                self.model.config = usual
            table = frame.assign(passes=n, label=[classes[i] for i in logits.argmax(1)])
            tables.append(table.join(pd.DataFrame(logits.softmax(-1).numpy(), columns=columns)))
        return pd.concat(tables, ignore_index=True).drop(columns=[] if passes else "passes")
