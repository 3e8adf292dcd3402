"""Data: every corpus, and files of one's own, as a task for the trainer.  Heavy imports wait for use."""

from pathlib import Path
from typing import TYPE_CHECKING

from rtx_core.data.config import ClassificationData, FilesData, GroupData, HopData, LanguageData

if TYPE_CHECKING:
    from rtx_core.data.tasks import Task

DataConfig = ClassificationData | LanguageData | FilesData | HopData | GroupData
__all__ = ["ClassificationData", "DataConfig", "FilesData", "GroupData", "HopData", "LanguageData"]
__all__ += ["config_of", "from_files", "profile", "sample", "task"]


def task(config: DataConfig, batch_size: int, micro_batches: int = 1) -> "Task":
    """What the trainer asks of this data, in steps of `batch_size` texts or sequences."""
    if isinstance(config, HopData):
        from rtx_core.data.algorithmic import KHop as made
    elif isinstance(config, GroupData):
        from rtx_core.data.algorithmic import GroupWords as made
    elif not isinstance(config, LanguageData):
        from rtx_core.data.texts import classification as made
    elif config.corpus == "shakespeare":
        from rtx_core.data.characters import Characters as made
    else:
        from rtx_core.data.stories import Stories as made
    return made(config, batch_size, micro_batches)


def config_of(fields: dict) -> DataConfig:
    """The settings that a record holds as `config.data`."""
    kinds = {"classes": FilesData, "hops": HopData, "group": GroupData, "block_size": LanguageData}
    kinds["corpus"] = ClassificationData
    kind = next(kind for name, kind in kinds.items() if name in fields)
    return kind(**{name: value for name, value in fields.items() if name in kind.names()})


def profile(config: ClassificationData | FilesData) -> dict:
    """Label counts and length histograms of every part (see `texts.profile`)."""
    from rtx_core.data.texts import profile

    return profile(config)


def from_files(
    train: str,
    text="text",
    label="label",
    validation=None,
    test=None,
    max_length=128,
    seed=0,
    generated=False,
) -> FilesData:
    """Your own labelled texts as settings for `task`: CSV, TSV, JSON lines, parquet, or a data set's name.

    The classes are the distinct labels, sorted.  A part for which no file is given is a tenth of `train`,
    drawn by `seed`.  Runs on `generated` texts are recorded in `_build/results/`, apart from those on real ones.
    """
    from rtx_core.data.files import described

    given = {"train": train, "text": text, "label": label, "validation": validation, "test": test}
    return described(**given, max_length=max_length, seed=seed, generated=generated)


def sample(path: str, rows: int = 1000) -> str:
    """Write a CSV to try things on: so many generated reviews, columns `review` and `stars` (1 or 5).  Gives the path."""
    from rtx_core.data.synthetic import reviews
    from rtx_core.paths import write_atomically

    table = reviews("movie", rows, style="phrase").rename(columns={"text": "review"})
    table["stars"] = table.pop("label").map({0: 1, 1: 5})
    write_atomically(Path(path), table.to_csv(index=False).encode())
    return str(path)
