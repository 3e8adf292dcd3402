"""Data: every corpus, and files of one's own, as a task for the trainer.  Heavy imports wait for use."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rtx_core.data.config import ClassificationData, DataConfig, FactData, FilesData, GroupData, HopData, LanguageData
from rtx_core.lazy import lazily

if TYPE_CHECKING:
    from rtx_core.data.tasks import Task

__all__ = ["ClassificationData", "DataConfig", "FactData", "FilesData", "GroupData", "HopData"]
__all__ += ["LanguageData", "config_of", "from_files", "profile", "sample", "task"]
__getattr__, _ = lazily(__name__, {"files": "from_files", "texts": "profile"})


def task(config: DataConfig, batch_size: int, micro_batches: int = 1) -> "Task":
    """What the trainer asks of this data, in steps of `batch_size` texts or sequences."""
    return config.task(batch_size, micro_batches)


def config_of(fields: Mapping) -> DataConfig:
    """A record's `config.data` as settings, of the kind whose fields fit it best."""
    names = {kind: set(kind.names()) for kind in _kinds(DataConfig)}
    kind = max(names, key=lambda kind: (len(names[kind] & fields.keys()), -len(names[kind])))
    return kind(**{name: value for name, value in fields.items() if name in names[kind]})


def _kinds(of: type[DataConfig]) -> Iterator[type[DataConfig]]:
    for kind in of.__subclasses__():
        yield from (kind, *_kinds(kind))


def mirrored() -> dict[str, Callable[[str], object]]:
    """Folder of a mirror -> what reads and verifies its texts, called with a source."""
    from rtx_core.data import corpora, sources, tokens

    known = {name: each for name, each in corpora.CORPORA.items() if isinstance(each, corpora.Corpus)}
    found = {corpus.folder: partial(sources.load, name) for name, corpus in known.items()}
    found["bert-base-uncased"] = tokens.bert_vocabulary
    for text in corpora.RUNNING.values():
        found[text.folder] = import_module(text.task_class.partition(":")[0]).load
    return found


def sample(path: str, rows: int = 1000) -> str:
    """Write a CSV of generated reviews to try things on, columns `review` and `stars` (1 or 5); gives its path."""
    from rtx_core.data.synthetic import reviews
    from rtx_core.paths import write_atomically

    table = reviews("movie", rows, style="phrase").rename(columns={"text": "review"})
    table["stars"] = table.pop("label").map({0: 1, 1: 5})
    write_atomically(Path(path), table.to_csv(index=False).encode())
    return str(path)
