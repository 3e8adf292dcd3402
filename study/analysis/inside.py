"""Measurements inside loops: over pointers, with more passes than in training, and of states over products."""

from collections.abc import Iterable

from rtx_core.records import Record
from study.analysis.hops import in_a_row


def after(measured: Record, passes: int, quantity: str, way: str = "free"):
    """What was measured after so many passes of a loop that runs on; "held" is with the state's length held."""
    return measured[way][quantity][measured["passes"].index(passes)]


def errors_after(measured: Iterable[Record], passes: int, hops: int, way: str = "free") -> list[float]:
    """The share of wrong answers at so many hops, by seed."""
    return [after(one, passes, "error", way)[hops] for one in measured]


def factors_read(measured: Iterable[Record], passes: int) -> list[int]:
    """The number n up to which a probe reads the product of the first n factors from nine tenths of texts, by seed."""
    rows = [one["prefix"]["accuracy"][passes] for one in measured]
    return [in_a_row(1 - share for share in row) for row in rows]


def parities_read(measured: Iterable[Record], passes: int) -> list[int]:
    """The same of the parity of these products."""
    return [in_a_row(1 - share for share in one["parity"]["accuracy"][passes]) for one in measured]


def span_read(measured: Iterable[Record], passes: int, span: int) -> list[float]:
    """The share read of the product of the last `span` factors, at the later places, by seed."""
    return [one["spans"]["accuracy"][passes][one["spans_read"].index(span)] for one in measured]
