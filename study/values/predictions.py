"""What became of the predictions, until the pages that quote it import it."""

from rtx_core.report.values import Space
from study.predictions import counts, predictions

VALUES = {"predictions": predictions, "prediction_counts": lambda: Space(counts())}
