"""What claims are judged by, and what a claim is."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rtx_core.records import Record
from rtx_core.report.values import Runs, Task, Unmeasured
from study.analysis.outcomes import MISSING, Outcome


class Sources:
    """What claims are judged by: records of runs and measurements, counts of data sets, times, and printed numbers."""

    def __init__(
        self,
        folders: Mapping[str, list[Record]],
        measured: Iterable[Record],
        profiles: Mapping[str, Record],
        times: Mapping[str, Mapping],
        printed: Mapping[str, Mapping],
    ):
        self.folders, self.measured, self.profiles = folders, list(measured), profiles
        self.times, self.printed = times, printed

    def task(self, name: str) -> Task:
        """Classifiers of one folder."""
        return Task(self.folders.get(name, []), called=name)

    def decoders(self, *names: str) -> Runs:
        """Language models of these folders."""
        return Runs([run for name in names for run in self.folders.get(name, [])], names[0])

    def transfer(self, name: str) -> Task:
        """Models of one corpus, tested on another."""
        return Task(self.measurements("transfer", name), called=name)

    def parts(self, name: str) -> dict[str, dict]:
        """Of a data set, as counted."""
        if not self.profiles.get(name):
            raise Unmeasured(f"Nothing was counted of {name}.")
        return self.profiles[name]["parts"]

    def measurements(self, kind: str, name: str | None = None) -> list[Record]:
        return [one for one in self.measured if one["kind"] == kind and name in (None, one["of"])]

    def measurement(self, kind: str, name: str) -> Record:
        if not (matches := self.measurements(kind, name)):
            raise Unmeasured(f"There is no measurement {kind} of {name}.")
        return matches[0]


Test = Callable[[Sources], Outcome]


@dataclass(frozen=True)
class Claim:
    """What is claimed, where it stands, and the test that decides it."""

    says: str
    source: str
    test: Test

    def outcome(self, sources: Sources) -> Outcome:
        try:
            return self.test(sources)
        except Unmeasured as lacking:
            return Outcome(MISSING, str(lacking))
