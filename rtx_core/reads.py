"""Which records' results are read while something is computed: the evidence of a number."""

from collections.abc import Iterator
from contextlib import contextmanager

# Keys that say which run a record is of; reading any other key is reading a result.
IDENTITY = {
    "experiment",
    "name",
    "model",
    "seed",
    "recipe",
    "budget",
    "kind",
    "config",
    "environment",
    "code",
    "finished",
}
READS: list[list] = []


@contextmanager
def reading() -> Iterator[list]:
    """The records whose results are read inside."""
    READS.append([])
    try:
        yield READS[-1]
    finally:
        READS.pop()


def note(record: object, key: str) -> None:
    """A record's entry is read."""
    if key not in IDENTITY:
        for read in READS:
            read.append(record)
