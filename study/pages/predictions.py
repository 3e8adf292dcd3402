"""Predictions: how many came to which verdict."""

from collections.abc import Mapping

from rtx_core.report.quantities import Quantities


def quantities(counts: Mapping[str, int | str]) -> Quantities:
    """Of what `study.predictions.counts` gives."""
    numbers = {name: lambda name=name: str(counts[name]) for name in ("judged", "kept", "part", "contradicted")}
    return Quantities(numbers | {"sha256": lambda: str(counts["sha256"])})
