"""Ask a trained classifier: `rtx.load("sst2/recurrent-seed0").classify(["a film of great charm"])`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rtx_core import records
from rtx_core.errors import RtxError


def load(address: str, source: str = "hub") -> "Predictor":
    """The trained model of a record, by its path under `results/` without the ending, or of an exported folder."""
    from rtx_core.models import load_model
    from rtx_core.trained import load_weights, weights_of

    folder = Path(address).expanduser()
    if not folder.is_dir():
        record = records.at(address, source)
        return Predictor(load_weights(record), weights_of(record).parent)
    weights = folder / "model.safetensors"
    if not weights.exists():
        raise RtxError(
            f"{address} holds no model.safetensors; expected a folder that `python -m rtx_core export` wrote."
        )
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
            raise RtxError(
                f"The model of {self.folder.name} has no classes: it continues texts; load a classifier."
            )
        return found

    def classify(self, texts: Iterable[str], passes: bool = False) -> pd.DataFrame:
        """A row a text: text, label, and the probability of each class.  `passes=True`: a row for the answer after each pass."""
        import torch

        from rtx_core.data.tokens import read_tokenizer, tokenize
        from rtx_core.models.packed import Packed

        texts, classes = [texts] if isinstance(texts, str) else list(texts), self.classes
        if not texts:
            raise RtxError("There is no text to classify; give at least one.")
        tokens = tokenize(
            pd.DataFrame({"text": texts, "label": 0}),
            read_tokenizer(self.folder),
            self.model.about["max_length"],
        )
        ids, lengths, _ = tokens.take(pd.RangeIndex(len(texts)).to_numpy())
        batch, usual = Packed.from_flat(ids, lengths), self.model.config
        if passes and "num_passes" not in usual.names():
            raise RtxError(f"The model of {self.folder.name} has no passes to count; ask it without passes.")
        tables = []
        for n in range(1, usual.num_passes + 1) if passes else [None]:
            self.model.config = usual.but(num_passes=n) if n else usual
            with torch.inference_mode():
                found = self.model(batch).softmax(-1).numpy()
            table = pd.DataFrame(found, columns=classes)
            table.insert(0, "label", [classes[i] for i in found.argmax(1)])
            table.insert(0, "text", texts)
            if passes:
                table.insert(1, "passes", n)
            tables.append(table)
        self.model.config = usual
        return pd.concat(tables, ignore_index=True)
