"""Data: every corpus, and files of one's own, as a task for the trainer.  Heavy imports wait for use."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rtx_core.data.config import ClassificationData, FactData, FilesData, GroupData, HopData, LanguageData

if TYPE_CHECKING:
    from rtx_core.data.tasks import Task

DataConfig = ClassificationData | LanguageData | FilesData | HopData | GroupData | FactData
__all__ = [
    "ClassificationData",
    "DataConfig",
    "FactData",
    "FilesData",
    "GroupData",
    "HopData",
    "LanguageData",
]
__all__ += ["config_of", "from_files", "profile", "sample", "task"]
_FROM = {"from_files": "files", "profile": "texts"}


def task(config: DataConfig, batch_size: int, micro_batches: int = 1) -> "Task":
    """What the trainer asks of this data, in steps of `batch_size` texts or sequences."""
    if isinstance(config, HopData):
        from rtx_core.data.algorithmic import KHop as made
    elif isinstance(config, GroupData):
        from rtx_core.data.algorithmic import GroupWords as made
    elif isinstance(config, FactData):
        from rtx_core.data.algorithmic import Facts as made
    elif not isinstance(config, LanguageData):
        from rtx_core.data.texts import classification as made
    elif config.corpus == "shakespeare":
        from rtx_core.data.characters import Characters as made
    else:
        from rtx_core.data.stories import Stories as made
    return made(config, batch_size, micro_batches)


def config_of(fields: dict) -> DataConfig:
    """The settings that a record holds as `config.data`."""
    kinds = {
        "classes": FilesData,
        "hops": HopData,
        "group": GroupData,
        "facts": FactData,
        "block_size": LanguageData,
    }
    kinds["corpus"] = ClassificationData
    kind = next(kind for name, kind in kinds.items() if name in fields)
    return kind(**{name: value for name, value in fields.items() if name in kind.names()})


def __getattr__(name: str):
    if name in _FROM:
        return getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
    raise AttributeError(f"rtx_core.data has no {name!r}; it has {', '.join(__all__)}.")


def sample(path: str, rows: int = 1000) -> str:
    """Write a CSV to try things on: so many generated reviews, columns `review` and `stars` (1 or 5).  Gives the path."""
    from rtx_core.data.synthetic import reviews
    from rtx_core.paths import write_atomically

    table = reviews("movie", rows, style="phrase").rename(columns={"text": "review"})
    table["stars"] = table.pop("label").map({0: 1, 1: 5})
    write_atomically(Path(path), table.to_csv(index=False).encode())
    return str(path)
