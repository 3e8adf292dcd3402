"""What many pages read of records."""

from collections.abc import Iterable

from rtx_core.records import Record
from rtx_core.report.evidence import badge
from rtx_core.report.quantities import words


def test_loss(record: Record) -> float:
    """In nats."""
    return record["test"]["loss"]


def learning_rate(record: Record) -> float:
    return record["config"]["train"]["learning_rate"]


def at_rate(records: Iterable[Record], rate: float) -> list[Record]:
    """The runs at one learning rate."""
    return [record for record in records if learning_rate(record) == rate]


def seeds_of(records: Iterable[Record]) -> list[int]:
    return sorted({record["seed"] for record in records})


def seeds_in_words(records: Iterable[Record]) -> str:
    """How many seeds all models of these runs have: "two seeds"."""
    count = badge(list(records)).seeds
    return f"{words(count)} seed{'' if count == 1 else 's'}"
