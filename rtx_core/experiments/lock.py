"""Who may write a record: one process at a time."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rtx_core.errors import Busy
from rtx_core.paths import build, home


@contextmanager
def record_lock(record: Path, about: str, wait: bool, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the name of a record, so that nobody else writes it or its checkpoint.  The lock goes when the process does.

    Where another process holds it, this one waits; without `wait` that is `Busy`.  `about` is left in the lock for
    `rtx doctor`: the run's folder, and the command that goes on with it.
    """
    lock = build() / "locks" / "-".join(record.relative_to(home()).with_suffix("").parts)
    lock.parent.mkdir(parents=True, exist_ok=True)
    with open(lock, "a", encoding="utf-8") as file:  # not "w", which would empty the file of whoever holds it
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if not wait:
                raise Busy(f"Another process is training {lock.name} now; wait for it, or stop it first.") from error
            say("another process is training this; waiting until it is done")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(about)
        file.flush()
        yield
