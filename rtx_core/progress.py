"""What a long run says, and how a signal ends it."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ONE_REQUEST = 1.0  # seconds: a closing terminal, or `timeout`, may send a signal twice


def say(line: str) -> None:
    """Print a line.  Letters that the terminal's encoding lacks become "?"; a terminal that is gone stops no run."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    with suppress(OSError, ValueError):
        print(line.encode(encoding, "replace").decode(encoding), flush=True)


class Interrupted(KeyboardInterrupt):
    """A signal ends the run; the message says at which step, and whether that is saved."""


class Interrupts:
    """In its `with` block SIGINT, SIGTERM and SIGHUP raise `Interrupted`; inside `deferred()` the signal waits for
    `check()` or the end of that block.  A signal that comes more than `ONE_REQUEST` later ends the process at once.

    At the end of the `with` block the handlers from before are back, and the one of the signal that came is called: by
    default SIGINT is a KeyboardInterrupt, and the others end the process with the signal's status.  Signals that the
    process ignores (nohup) stay ignored, and in threads other than the main one nothing is changed.
    """

    def __init__(self):
        self.number, self.received_at, self.deferring = None, 0.0, False
        self.handlers: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            handlers = {number: signal.getsignal(number) for number in SIGNALS}
            self.handlers = {n: handler for n, handler in handlers.items() if handler not in (None, signal.SIG_IGN)}
            for number in self.handlers:
                signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: object) -> None:
        if self.number is None:
            self.number, self.received_at = number, time.monotonic()
            if not self.deferring:
                raise Interrupted
        elif time.monotonic() - self.received_at > ONE_REQUEST:
            self._restore()
            signal.raise_signal(number)

    def _restore(self) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise `Interrupted` if a signal has come."""
        if self.number is not None:
            raise Interrupted

    @contextmanager
    def deferred(self, defer: bool = True) -> Iterator[None]:
        """Signals wait; with `defer=False`, inside a block in which they wait, they raise at once."""
        previous, self.deferring = self.deferring, defer
        try:
            if not defer:
                self.check()
            yield
        finally:
            self.deferring = previous
        if defer:
            self.check()

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: object) -> None:
        self._restore()
        if self.number is None or isinstance(error, Exception):  # an error has its own sentence
            return
        if error is None or self.handlers[self.number] is not signal.default_int_handler:
            with suppress(OSError, ValueError, AttributeError):
                sys.stdout.flush()
            signal.raise_signal(self.number)
