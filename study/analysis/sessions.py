"""Runs that shared a GPU, by when they were trained."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from rtx_core.records import Record

PAUSE = timedelta(minutes=2)  # at most between two runs of a session, in which programs start and test


@dataclass
class Session:
    """The times at which runs began and ended, without a longer pause between them."""

    times: list[tuple[datetime, datetime]]

    @property
    def runs(self) -> int:
        return len(self.times)

    @property
    def minutes(self) -> float:
        return (max(end for _, end in self.times) - min(start for start, _ in self.times)).total_seconds() / 60

    @property
    def together(self) -> int:
        """How many runs were trained at the same time, at most."""
        return max(sum(start <= moment < end for start, end in self.times) for moment, _ in self.times)


def graph_runs(records: Iterable[Record]) -> list[Record]:
    """Those that were trained as a CUDA graph."""
    return [record for record in records if record["config"].get("compile") == "graph"]


def largest_session(records: Iterable[Record]) -> Session:
    """The session of the most runs."""
    ends = [(datetime.fromisoformat(record["finished"]), timedelta(seconds=record["seconds"])) for record in records]
    sessions: list[Session] = []
    for start, end in sorted((end - length, end) for end, length in ends):
        if sessions and start - max(end for _, end in sessions[-1].times) < PAUSE:
            sessions[-1].times.append((start, end))
        else:
            sessions.append(Session([(start, end)]))
    return max(sessions, key=lambda session: session.runs)
