"""Data: every corpus, and files of one's own, as a task for the trainer.  Heavy imports wait for use."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rtx_core.data.config import (
    AlgorithmicData,
    ClassificationData,
    DataConfig,
    FactData,
    FilesData,
    GroupData,
    HopData,
    LanguageData,
    SequenceTask,
    TextData,
)
from rtx_core.lazy import lazily

__all__ = ["AlgorithmicData", "ClassificationData", "DataConfig", "FactData", "FilesData", "GroupData", "HopData"]
__all__ += ["LanguageData", "SequenceTask", "TextData"]
__all__ += ["config_of", "from_files", "from_text", "profile", "sample", "task"]
if TYPE_CHECKING:
    from rtx_core.data.files import from_files, from_text
    from rtx_core.data.texts import profile
else:
    __getattr__, __dir__ = lazily(__name__, __file__, {"Drawn": "AlgorithmicData"})
task = DataConfig.task  # as a function: (config, batch_size)


def config_of(fields: Mapping, kind: type[DataConfig] | None = None) -> DataConfig:
    """A record's `config.data` as settings of this kind, else of the one whose fields fit it best."""
    names = {kind: set(kind.names()) for kind in _kinds(DataConfig)}
    kind = kind or max(names, key=lambda kind: (len(names[kind] & fields.keys()), -len(names[kind])))
    return kind(**{name: value for name, value in fields.items() if name in names[kind]})


def _kinds(base: type[DataConfig]) -> Iterator[type[DataConfig]]:
    for kind in base.__subclasses__():
        yield from (kind, *_kinds(kind))


def sample(path: str, rows: int = 1000) -> str:
    """Write a CSV of generated reviews to try things on, columns `review` and `stars` (1 or 5); gives its path."""
    from rtx_core.data.synthetic import reviews
    from rtx_core.errors import RtxError
    from rtx_core.paths import user_path, write_atomically

    table = reviews("movie", rows, style="phrase").rename(columns={"text": "review"})
    table["stars"] = table.pop("label").map({0: 1, 1: 5})
    content = table.to_csv(index=False).encode()
    file = user_path(path)
    if file.exists() and file.read_bytes() != content:
        raise RtxError(f"{path} is there and holds something else; give another name.")
    write_atomically(file, content)
    return str(path)
