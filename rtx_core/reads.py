"""Which records' results are read while something is computed: the evidence of a number."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, Protocol

# Keys that say which run a record is of; reading any other key is reading a result.
IDENTITY = {"experiment", "name", "model", "seed", "recipe", "budget", "kind"}
IDENTITY |= {"config", "environment", "code", "finished"}
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


def remember(function: Callable) -> Callable:
    """As `functools.cache`; what the function read counts as read whenever its result is used again."""
    results: dict[tuple, tuple[Any, list]] = {}

    @wraps(function)
    def remembering(*arguments: Any) -> Any:
        if arguments not in results:
            with reading() as read:
                value = function(*arguments)
            results[arguments] = value, read
        value, read = results[arguments]
        for outer in READS:
            outer += read
        return value

    return remembering


class Entries(Protocol):
    """A record, or its content."""

    def __getitem__(self, key: str, /) -> Any: ...

    def get(self, key: str, default: Any = None, /) -> Any: ...


class remembered:  # noqa: N801, used as `property` is
    """As `functools.cached_property`, by `remember`."""

    def __init__(self, function: Callable):
        self.function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.place = f"_remembered_{name}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if self.place not in vars(instance):
            vars(instance)[self.place] = remember(partial(self.function, instance))
        return vars(instance)[self.place]()
