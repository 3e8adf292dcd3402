"""TinyStories: losses before training, and names in the stories that models write."""

from collections.abc import Mapping, Sequence

import numpy as np

from rtx_core.records import Record


class InitialLosses:
    """Losses before training of the study's models, over many seeds, beside those in print."""

    def __init__(self, measurement: Record, published: Mapping):
        self.losses: dict[str, list[float]] = measurement["losses"]
        self.printed = {model: row["initial"] for model, row in published["initial"].items()}

    @property
    def rows(self) -> np.ndarray:
        """(models, seeds), in the order of print."""
        return np.array([self.losses[model] for model in self.printed])

    @property
    def seeds(self) -> int:
        return self.rows.shape[1]

    @property
    def seed_range(self) -> float:
        """The least range of one model's seeds."""
        return float(np.ptp(self.rows, axis=1).min())

    @property
    def printed_range(self) -> float:
        return float(np.ptp(list(self.printed.values())))

    @property
    def same_order(self) -> int:
        """In how many seeds the models come in the order of print."""
        order = np.argsort(list(self.printed.values()))[:, None]
        return int((np.argsort(self.rows, axis=0) == order).all(0).sum())


def names_repeated(grades: Sequence[Record]) -> dict[str, float]:
    """Model -> the share of the names in what it writes that stood before in the story or its beginning, in the mean
    over seeds; and of the stories as `written`."""
    shares = {}
    for graded in grades:
        shares |= {m: float(np.mean([seed["kept"] for seed in seeds])) for m, seeds in graded["grades"].items()}
        shares["written"] = graded["written"]["kept"]
    return shares
