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
    judges, notes = _graded(runs)
    for judge, by_model in sorted(judges.items()):
        common = sorted(set.intersection(*({story for story, score in stories.items() if score} for stories in by_model.values())))
        for model in (model for model in runs.models if model in by_model):
            scores = np.array([[by_model[model][story][c] for c in CRITERIA] for story in common])
            columns = [*scores.T, scores.mean(1)] if common else [[]] * 5
            rows.append({"Model": NAMES[model], "Judge": f"ours, {judge}", "Stories": len(common), "Rejected": list(by_model[model].values()).count(None),
                         **{name.capitalize(): _mean_score(column) for name, column in zip((*CRITERIA, "average"), columns)}})  # fmt: skip
        if not common:
            notes.append(f"{display.escape(judge)} graded no story of one seed and beginning for every model of its rows, so they have no means.")
    if judges:
        notes.insert(0, "Ours: mean ± standard error over the stories, of the same seeds and beginnings, that the judge graded for every model of its rows: "
                        "a story rejected for one model counts for none; rejected stories had no valid answer.")  # fmt: skip
    elif not notes:
        notes.append("Ours were not graded: that needs a key for a judge, and none was given; the stories below can be compared by eye.")
    frame = pd.DataFrame(rows).astype({"Stories": "Int64", "Rejected": "Int64"})
    return display.table(frame, label=label, caption="Scores of the judge, from 1 to 10.", note=" ".join([*notes, *runs.notes]))


def _graded(runs: Runs) -> tuple[dict[str, dict[str, dict]], list[str]]:
    """Judge -> model -> (seed, place, beginning) of a story -> its scores, None where rejected; and what must be known of them."""
    judges, said = {}, {}
    for r in runs:
        if m := measurement.find(r["data"]["source"], "judge", r["experiment"], f"{r['model']}-seed{r['seed']}"):
            if m["texts_sha256"] == texts_sha256(r["samples"]):
                stories = judges.setdefault(m["judge"], {}).setdefault(r["model"], {})
                stories |= {(r["seed"], i, sample["prompt"]): score for i, (sample, score) in enumerate(zip(r["samples"], m["scores"]))}
                note = m.note() and f"the scores were {m.note()}"
            else:
                note = "the recorded scores are of other texts than the run's; run the judge again"
            if note:
                said.setdefault(note, []).append(f"{NAMES[r['model']]} seed {r['seed']}")
    return judges, [f"{', '.join(names)}: {note}." for note, names in said.items()]


def _mean_score(values: list[float]) -> str | None:
    error = f" ± {np.std(values, ddof=1) / math.sqrt(len(values)):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{error}" if len(values) else None


@measured
def samples(runs: Runs, *, label: str, n: int = 3) -> Displayed:
    """Stories of every model from the same beginnings, side by side: the first that begin a sentence, as the data file may begin in one."""
    records = [runs.of(model)[0] for model in runs.models if model in STUDY]
    if not records:
        return display.text("Not measured yet: no model of the study is recorded.")
    groups = list(zip(*(r["samples"] for r in records)))
    whole = [group for group in groups if _begins_a_sentence(group[0]["prompt"])]
    rows = [{"Beginning": group[0]["prompt"] + " …", **{NAMES[r["model"]]: sample["text"] for r, sample in zip(records, group)}}
            for group in (whole or groups)[:n]]  # fmt: skip
    caption = f"Stories from the same beginnings of held-out stories, with the same random numbers, seed {records[0]['seed']}."
    return display.table(pd.DataFrame(rows), label=label, caption=caption, note=" ".join(runs.notes))


def _begins_a_sentence(text: str) -> bool:
    """With a capital or a digit, or with an opening quote before one: `" he said` and `'t` are torn."""
    first = text.lstrip("\"'“‘„«")[:1]
    return first.isupper() or first.isdigit()
