"""Data: every corpus, and files of one's own, as a task for the trainer.  Heavy imports wait for use."""

from typing import TYPE_CHECKING

from rtx_core.data.config import ClassificationData, FilesData, LanguageData

if TYPE_CHECKING:
    from rtx_core.data.tasks import Task

DataConfig = ClassificationData | LanguageData | FilesData
__all__ = ["ClassificationData", "DataConfig", "FilesData", "LanguageData", "from_files", "profile", "task"]


def task(config: DataConfig, batch_size: int, micro_batches: int = 1) -> "Task":
    """What the trainer asks of this data, in steps of `batch_size` texts or sequences."""
    if isinstance(config, LanguageData):
        if config.corpus == "shakespeare":
            from rtx_core.data.characters import Characters as Language
        else:
            from rtx_core.data.stories import Stories as Language
        return Language(config, batch_size, micro_batches)
    from rtx_core.data.texts import classification

    return classification(config, batch_size, micro_batches)


def profile(config: ClassificationData | FilesData) -> dict:
    """Label counts and length histograms of every part (see `texts.profile`)."""
    from rtx_core.data.texts import profile

    return profile(config)


def from_files(
    train: str,
    text: str = "text",
    label: str = "label",
    validation: str | None = None,
    test: str | None = None,
    max_length: int = 128,
    seed: int = 0,
) -> FilesData:
    """Your own labelled texts as settings for `task`: CSV, TSV, JSON lines, parquet, or a data set's name.

    The classes are the distinct labels, sorted.  A part for which no file is given is a tenth of `train`,
    drawn by `seed`.
    """
    from rtx_core.data.files import described

    given = {"text": text, "label": label, "validation": validation, "test": test}
    return described(train=train, **given, max_length=max_length, seed=seed)
