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
    true, each = shares(first[0])[0][1], [[shares(record)[1][1] for record in records] for records in both]
    if len(classes) > 2 or max(np.mean(np.abs(np.array(one) - true)) for one in each) <= SHIFTED:
        return ""
    called = [" / ".join(f"{100 * share:.0f} %" for share in one) for one in each]
    accuracy = [np.mean([record["test"]["accuracy"] for record in records]) for records in both]
    moved = [np.mean([_at_true_share(record) for record in records]) for records in both]
    area, positive = [mean_auc(records) for records in both], classes[1]
    turned = [", the opposite order" if (accuracy[0] - accuracy[1]) * (one[0] - one[1]) < 0 else "" for one in (moved, area)]
    return (
        f"{a} calls {called[0]} of the texts {positive} and {b} {called[1]}{' (by seed)' if max(map(len, both)) > 1 else ''}, while {100 * true:.0f} % are. "
        f"With the threshold moved until each calls as many {positive} as there are, the accuracies would be {moved[0]:.4f} and {moved[1]:.4f}{turned[0]}; "
        f"by the area under the ROC curve, which knows no threshold, {a} has {area[0]:.4f} and {b} {area[1]:.4f}{turned[1]}."
    )


def _at_true_share(record: Record) -> float:
    """Accuracy if as many texts were called positive as there are, those of the highest scores."""
    found = record.predictions
    positive, called = found["labels"] == 1, np.zeros(len(found["labels"]), bool)
    called[np.argsort(found["logits"][:, 0] - found["logits"][:, 1], kind="stable")[: positive.sum()]] = True
    return float((called == positive).mean())
