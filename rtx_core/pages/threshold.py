"""What the threshold has to do with an accuracy: a model that ranks texts well may yet call far too many of them negative."""

import numpy as np

from rtx_core.pages.cells import mean_auc, title
from rtx_core.results.record import Record
from rtx_core.results.statistics import shares

SHIFTED = 0.05  # a share of positive answers that is further from the true one is spoken of


def shifted(first: list[Record], other: list[Record], classes: tuple[str, ...]) -> str:
    """Of two classes, where a model misses the share of positive texts: the accuracies with the share right, and how well the models rank.

    Means over the records of each; empty where both models come near the share, or of more classes.
    """
    both, (a, b) = (first, other), (title(records[0]["model"]) for records in (first, other))
    true, called = shares(first[0])[0][1], [np.mean([shares(record)[1][1] for record in records]) for records in both]
    if len(classes) > 2 or max(abs(share - true) for share in called) <= SHIFTED:
        return ""
    accuracy = [np.mean([record["test"]["accuracy"] for record in records]) for records in both]
    moved = [np.mean([_at_true_share(record) for record in records]) for records in both]
    area, positive = [mean_auc(records) for records in both], classes[1]
    turned = (accuracy[0] - accuracy[1]) * (area[0] - area[1]) < 0
    return (
        f"{'In the mean over seeds ' if len(first) > 1 or len(other) > 1 else ''}{a} calls {100 * called[0]:.0f} % of the texts {positive} and {b} "
        f"{100 * called[1]:.0f} %, while {100 * true:.0f} % are. With the threshold moved until each calls as many {positive} as there are, "
        f"the accuracies would be {moved[0]:.4f} and {moved[1]:.4f}; by the area under the ROC curve, which knows no threshold, {a} has "
        f"{area[0]:.4f} and {b} {area[1]:.4f}{', the opposite of the order by accuracy' if turned else ''}."
    )


def _at_true_share(record: Record) -> float:
    """Accuracy if as many texts were called positive as there are, those of the highest scores."""
    found = record.predictions
    positive, called = found["labels"] == 1, np.zeros(len(found["labels"]), bool)
    called[np.argsort(found["logits"][:, 0] - found["logits"][:, 1], kind="stable")[: positive.sum()]] = True
    return float((called == positive).mean())
