"""What the story models write: yardsticks that need no judge, the judge's scores, and the stories themselves."""

import math

import numpy as np
import pandas as pd

from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.published import published
from rtx_core.pages.runs import Runs, measured
from rtx_core.pages.stories import NAMES, STUDY, bits_per_byte, spread
from rtx_core.results import measurement
from rtx_core.results.measurement import texts_sha256

CRITERIA = ("grammar", "creativity", "consistency", "plot")


@measured
def yardsticks(runs: Runs, *, label: str) -> Displayed:
    """What can be measured of the written stories without a judge."""
    rows = []
    for model in runs.models:
        every = [r["extra"]["stories"] for r in runs.of(model)]
        row = {"Model": NAMES[model], "Bits per byte": spread([bits_per_byte(r) for r in runs.of(model)], ".3f")}
        for key, title in (("words", "Words"), ("distinct_1", "Distinct-1"), ("distinct_2", "Distinct-2"), ("distinct_3", "Distinct-3"),
                           ("repetition", "Repeated 4-grams"), ("prompt_words_used", "Prompt words used")):  # fmt: skip
            values = [m[key] for m in every if m[key] is not None]
            row[title] = (f"{np.mean(values):.1f}" if key == "words" else f"{np.mean(values):.3f}") if values else None
        rows.append(row)
    first = runs.records[0]
    note = (
        f"{first['extra']['stories']['stories']} stories a model and seed, from the same beginnings of validation stories and with the same random "
        f"numbers, temperature {first['extra']['sampling']['temperature']}, at most {first['extra']['sampling']['longest']} tokens."
    )
    return display.table(pd.DataFrame(rows), label=label, caption="Yardsticks that need no judge.", note=" ".join([note, *runs.notes]))


def judged(runs: Runs, *, label: str) -> Displayed:
    """Table 4: the judge's scores, ours below the published ones."""
    quoted, rows = published()["tinystories"]["judge"], []
    for model in STUDY:
        printed = zip((*CRITERIA, "average"), quoted["scores"][model])
        rows.append({"Model": NAMES[model], "Judge": quoted["judge"], "Stories": None, "Rejected": None, **{name.capitalize(): f"{v:.2f}" for name, v in printed}})
    for model in runs.models:
        graded = [m for r in runs.of(model) if (m := measurement.find(r["data"]["source"], "judge", r["experiment"], f"{model}-seed{r['seed']}"))
                  and m["texts_sha256"] == texts_sha256(r["samples"])]  # fmt: skip
        scores = np.array([[score[c] for c in CRITERIA] for m in graded for score in m["scores"] if score])
        if graded:
            columns = [*scores.T, scores.mean(1)] if len(scores) else [[]] * 5
            rows.append({"Model": NAMES[model], "Judge": f"ours, {', '.join(sorted({m['judge'] for m in graded}))}", "Stories": len(scores),
                         "Rejected": sum(m["rejected"] for m in graded),
                         **{name.capitalize(): _mean_score(column) for name, column in zip((*CRITERIA, "average"), columns)}})  # fmt: skip
    ours = len(rows) > len(STUDY)
    note = ("Ours: mean ± standard error over stories; rejected stories had no valid answer and are not in the means." if ours else
            "Ours were not graded: that needs a key for a judge, and none was given; the stories below can be compared by eye.")  # fmt: skip
    frame = pd.DataFrame(rows).astype({"Stories": "Int64", "Rejected": "Int64"})
    return display.table(frame, label=label, caption="Scores of the judge, from 1 to 10.", note=" ".join([note, *runs.notes]))


def _mean_score(values: list[float]) -> str | None:
    error = f" ± {np.std(values, ddof=1) / math.sqrt(len(values)):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{error}" if len(values) else None


@measured
def samples(runs: Runs, *, label: str, n: int = 3) -> Displayed:
    """Stories of every model from the same beginnings, side by side."""
    records = [runs.of(model)[0] for model in runs.models if model in STUDY]
    if not records:
        return display.text("Not measured yet: no model of the study is recorded.")
    rows = [{"Beginning": group[0]["prompt"] + " …", **{NAMES[r["model"]]: sample["text"] for r, sample in zip(records, group)}}
            for group in list(zip(*(r["samples"] for r in records)))[:n]]  # fmt: skip
    caption = f"Stories from the same beginnings of held-out stories, with the same random numbers, seed {records[0]['seed']}."
    return display.table(pd.DataFrame(rows), label=label, caption=caption, note=" ".join(runs.notes))
