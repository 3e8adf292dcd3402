"""The claims of the original study: quoted in `claims.json`, judged by `judges` and `counted` from what `results/` holds now."""

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pandas as pd

from rtx_core.errors import unknown
from rtx_core.pages import counted, display, judges
from rtx_core.pages.display import Displayed
from rtx_core.pages.verdicts import MISSING, ONE_SEED, REDUCED, VERDICTS, Missing, Verdict, called, of_task, stamp
from rtx_core.paths import REPOSITORY
from rtx_core.results import measurement
from rtx_core.results.statistics import ALPHA, ENOUGH_SEEDS, common, compare, difference, equals, same_share
from rtx_core.tasks import TASKS


@cache
def claims() -> dict[str, list[dict]]:
    """Section -> its claims: what is claimed, where, the page that treats it, and the judge with its terms."""
    return json.loads(Path(__file__).with_name("claims.json").read_text(encoding="utf-8"))


def judge(claim: dict) -> Verdict:
    return _judged(json.dumps(claim["judge"]), stamp())


@cache
def _judged(asked: str, now: tuple) -> Verdict:
    name, terms = json.loads(asked)
    try:
        return getattr(judges if hasattr(judges, name) else counted, name)(**terms)
    except Missing as lacking:
        return Verdict(MISSING, f"No record of {lacking}.")


def section(name: str) -> Displayed:
    """The claims of a section, each with source, verdict, statistic, and the page with its table."""
    if name not in claims():
        raise unknown("section of claims", name, claims())
    entries = []
    for claim in claims()[name]:
        verdict = judge(claim)
        entries.append(f"{claim['says']} ({claim['source']})\n: **{verdict.called}.** {verdict.statistic}{link(claim['page'])}\n")
    return display.text("\n".join(entries))


def summary(*, label: str) -> Displayed:
    """How many claims of each section have which verdict, and how many of the decided ones rest on little."""
    rows = [{"Claims on": name} | {called.capitalize(): n for called, n in tally(map(judge, entries)).items()} for name, entries in claims().items()]
    frame = pd.DataFrame(rows)
    frame.loc[len(frame)] = ["all", *frame.drop(columns="Claims on").sum()]
    note = "The last two columns count those of the reproduced and contradicted claims that rest on one seed of each model, or on runs of a reduced budget."
    return display.table(frame, label=label, caption="Verdicts on the claims of the slides and the report, from the records of today.", note=note)


def tally(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many have each word, and each reservation."""
    verdicts = list(verdicts)
    words = {word: sum(one.word == word for one in verdicts) for word in VERDICTS}
    return words | {name: sum(name in one.at for one in verdicts) for name in (ONE_SEED, REDUCED)}


def single_seeds() -> Displayed:
    """What the tests of single seeds say where there are enough for one over seeds: how far a verdict on one seed can be trusted."""
    models, moved = ("baseline", "recurrent"), measurement.every("hub", "transfer")
    compared = {TASKS[variant][0]: [of_task(variant).of(model) for model in models] for variant in TASKS}
    for way in dict.fromkeys((one["trained_on"], one["tested_on"]) for one in moved):
        found = [one for one in moved if (one["trained_on"], one["tested_on"]) == way]
        compared[" to ".join(map(called, way))] = [[one for one in found if one["model"] == model] for model in models]
    said, turned = [], 0
    for name, (a, b) in compared.items():
        if len(pairs := common(a, b)) >= ENOUGH_SEEDS:
            alone = [compare(*pair) for pair in pairs]
            told = ", ".join(f"{one['points']:+.2f} points (p {equals(one['p'])})" for one in alone)
            said.append(f"{name}, {told}; over seeds {difference(a, b)}")
            turned += {True, False} <= {one["points"] > 0 for one in alone if one["p"] < ALPHA}
    if not said:
        return display.text("How far a verdict on one seed can be trusted is not measured yet: no comparison has three seeds.")
    opposite = f" In {turned} of the {len(said)} single seeds decide for either side." if turned else ""
    return display.text(f"Seed by seed, where there are three or more, Baseline minus Recurrent: {'. '.join(said)}.{opposite}")


def in_print(*, label: str) -> Displayed:
    """The published accuracies among themselves: each difference with the test set it was found on, and what a test makes of it."""
    rows = []
    for name, terms in (claim["judge"] for entries in claims().values() for claim in entries if claim.get("printed", True)):
        if name == "published":
            n, x, y = (terms[key] for key in ("n", "baseline", "recurrent"))
            p = same_share(round(x * n), n, round(y * n), n)
            rows.append({"Taken for": TASKS[terms["variant"]][0], "Test texts": n, "Baseline": f"{x:.4f}", "Recurrent": f"{y:.4f}",
                         "Recurrent minus Baseline (points)": f"{100 * (y - x):+.2f}", "p": f"{p:.2g}"})  # fmt: skip
    note = "p: Fisher's exact test, as the published predictions are not at hand to be paired. SST-2 stands for what it was measured on, whatever the captions say."
    return display.table(pd.DataFrame(rows), label=label, caption="Accuracies in the slides and the report, compared with one another.", note=note)


def link(page: str) -> str:
    """A link to a page of the book; nothing where the book has none of that name."""
    found = re.search(rf"file: ((?:notebooks/)?{re.escape(page)})$", (REPOSITORY / "_toc.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not found:
        return ""
    target = found[1] + (".ipynb" if found[1].startswith("notebooks/") else ".md")
    return f" []({target})"
