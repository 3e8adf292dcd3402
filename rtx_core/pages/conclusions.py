"""What may be concluded, computed from the records of today: each sentence holds for whatever has been measured when the page is drawn."""

from dataclasses import dataclass, replace

import pandas as pd

from rtx_core.language import LANGUAGE
from rtx_core.language import settings as language_settings
from rtx_core.pages import claims, display, shakespeare, stories, story_claims
from rtx_core.pages.display import Displayed
from rtx_core.pages.runs import Runs, architectures, matched, recorded
from rtx_core.pages.table import counts
from rtx_core.pages.cells import mean_accuracy, mean_auc, milliseconds, title
from rtx_core.pages.text import explained
from rtx_core.pages.verdicts import ONE_SEED, REDUCED, VERDICTS
from rtx_core.paths import home
from rtx_core.results import measurement
from rtx_core.results.statistics import Difference, adjusted, answers_all, common, difference, equals
from rtx_core.tasks import TASKS, task

FIRST, SECOND = "baseline", "recurrent"
COMPANIONS = {
    "shakespeare": ("Shakespeare", "notebooks/shakespeare.ipynb", shakespeare.NAMES),
    "tinystories": ("TinyStories", "notebooks/tinystories.ipynb", stories.NAMES),
}
# What is set against what: the models of the study, what they are, and the standard ones that read as many tokens.
SIDES = {
    "shakespeare": (shakespeare.RECURRENT, "recurrent along the sequence", shakespeare.STANDARD, "standard models"),
    "tinystories": (story_claims.LOOPS, "looped over depth", ("control",), "control"),
}


@dataclass(frozen=True)
class Finding:
    """A task, its records, and the paired difference of its two models, Baseline first, where both are recorded with a common seed; its
    p is adjusted over the tasks."""

    name: str
    runs: Runs
    difference: Difference | None

    @property
    def reduced(self) -> bool:
        return any(record["protocol"] == "reduced" for record in self.runs)

    @property
    def early(self) -> list[str]:
        """The models that never answer some class: stopped before they could be compared."""
        return [model for model in self.runs.models if not all(map(answers_all, self.runs.of(model)))]

    @property
    def turned(self) -> bool:
        """Whether the models rank texts in the opposite order of their accuracies, which a threshold can do."""
        areas = [mean_auc(self.runs.of(model)) for model in self.runs.settings.models]
        return self.difference is not None and None not in areas and (areas[0] - areas[1]) * self.difference.value < 0

    @property
    def reading(self) -> str:
        if self.early:
            return f"not compared: {' and '.join(map(title, self.early))} stopped before every class was known"
        if self.difference is None:
            return "not measured yet"
        first, second = map(title, self.runs.settings.models)
        ahead = {1: f"{first} ahead", -1: f"{second} ahead", 0: "may well be chance"}[self.difference.sign]
        return ahead + ", one seed" * bool(self.difference.sign and self.difference.seeds == 1) + ", reduced protocol" * self.reduced


def findings(other: str = SECOND) -> dict[str, Finding]:
    """Every classification task of the paper, measured or not."""
    found = {}
    for variant, (name, *_) in TASKS.items():
        runs = recorded(task(variant).but(models=[FIRST, other]))
        a, b = runs.of(FIRST), runs.of(other)
        known = all(map(answers_all, (*a, *b)))
        found[variant] = Finding(name, runs, difference(a, b) if common(a, b) and known else None)
    measured = {variant: one for variant, one in found.items() if one.difference}
    family = adjusted([one.difference for one in measured.values()])
    return found | {variant: replace(one, difference=d) for (variant, one), d in zip(measured.items(), family)}


def by_task(*, label: str) -> Displayed:
    """One row a task."""
    rows, notes = [], {}
    for one in findings().values():
        d = one.difference
        rows.append({
            "Task": one.name, "Test texts": d.n if d else None, "Seeds": d.seeds if d else None,
            **{title(m): mean_accuracy(one.runs.of(m)) for m in (FIRST, SECOND)},
            "AUC": _ranked(one.runs), "Difference (points)": f"{100 * d.value:+.2f} ({100 * d.low:+.2f} to {100 * d.high:+.2f})" if d else None,
            "Adjusted p": _p(d and d.adjusted), "Reading": one.reading,
        })  # fmt: skip
        notes |= {f"{one.name}: {note}": None for note in one.runs.notes if not note.startswith("Protocol") or d}
    note = (
        "Accuracy, mean of the recorded seeds, and Baseline minus Recurrent on the same texts with its 95 % interval. Seeds: those that both models have. "
        "AUC: area under the ROC curve of Baseline and of Recurrent, of two classes; it knows no threshold, so where its order is not that of the "
        "accuracies, a threshold that suits one model less decides these. "
        "Adjusted p: of McNemar's exact test of one seed, or the paired t-test over three or more, after Benjamini and Hochberg for the tasks in this table. "
        "A reading calls a difference chance unless the adjusted p is below 0.05; two seeds have no p, and there the interval has to exclude 0 and the "
        "seeds have to agree."
    )
    frame = pd.DataFrame(rows).astype({"Test texts": "Int64", "Seeds": "Int64"})
    return display.table(frame, label=label, caption="Baseline against Recurrent, task by task.", note=" ".join([note, *notes]))


def headline() -> Displayed:
    """How many tasks are decided and which way, and the first of them in numbers."""
    found = findings()
    measured = {variant: one for variant, one in found.items() if one.difference}
    if not measured:
        return display.text(f"None of the {len(found)} tasks is measured with both models yet, so nothing is concluded here.")
    first = next(iter(measured.values()))
    said = [
        f"Of {len(found)} tasks, {len(measured)} {_is(len(measured))} measured with both models so far: {_decided(list(measured.values()))}; p is adjusted "
        f"for the number of tasks.{_stopped(list(found.values()))}",
        f"On {first.name} the baseline reaches an accuracy of {explained(first.runs.of(FIRST))} and the recurrent model, with {_share():.0%} of the parameters, "
        f"{explained(first.runs.of(SECOND))}; the paired difference is {first.difference}.",
    ]
    if notes := [note for note in first.runs.notes if not note.startswith(("Protocol", "Synthetic"))]:
        said.append(f"Of these runs, {' and '.join(note.removesuffix('.') for note in notes)}.")
    full = [one for one in measured.values() if not one.reduced]
    if len(full) < len(measured):
        said.append(f"At the full protocol {len(full)} {_is(len(full))} measured: {_decided(full)}." if full else "None of them is measured at the full protocol.")
    if single := sum(one.difference.seeds == 1 for one in measured.values()):
        said.append(
            f"{_all(single, len(measured))} one seed of each model, so {'it tells' if single == len(measured) else 'there the test tells'} how two trained "
            "models differ and not how two architectures do."
        )
    return display.text(" ".join(said))


def _decided(found: list[Finding]) -> str:
    """Who is ahead on how many of these, and on how little that rests."""
    signs = [one.difference.sign for one in found]
    decided = [one for one in found if one.difference.sign]
    said = (
        f"the baseline is significantly ahead on {signs.count(1)}, the recurrent model on {signs.count(-1)}, and on {signs.count(0)} the difference may well "
        "be chance"
    )
    few, small = sum(one.difference.seeds == 1 for one in decided), sum(one.reduced for one in decided)
    rests = [f"{what} {n}" for n, what in ((few, "on one seed of each model"), (small, "at a reduced budget")) if n]
    rests = [f"of the {len(decided)} decided: {', '.join(rests)}"] if rests else []
    turned = [one.name for one in decided if one.turned]
    rests += [f"on {' and '.join(turned)} the area under the ROC curve has the opposite order"] if turned else []
    return said + (f" ({'; '.join(rests)})" if rests else "")


def _stopped(found: list[Finding]) -> str:
    early = [one.name for one in found if one.early]
    return f" Not compared {_is(len(early))} {'; '.join(early)}: a model was stopped there before it knew every class." if early else ""


def _all(n: int, of: int) -> str:
    return "Every test so far compares" if n == of else f"{n} of the {of} comparisons rest{'s' * (n == 1)} on"


def _ranked(runs: Runs) -> str | None:
    """The area under the ROC curve of both models, mean over their seeds."""
    areas = [mean_auc(runs.of(model)) for model in (FIRST, SECOND)]
    return None if None in areas else " / ".join(f"{area:.3f}" for area in areas)


def state() -> Displayed:
    """What is measured and what is not, as a list."""
    found = findings()
    done = [one.name for one in found.values() if one.difference]
    waiting = [one.name for one in found.values() if not one.difference]
    lines = [f"- Measured with both models: {'; '.join(done) or 'nothing yet'}."]
    lines += [f"- Not measured yet with both: {'; '.join(waiting)}."] if waiting else []
    return display.text("\n".join([*lines, *(f"- {sentence}" for sentence in _companions())]))


def companions() -> Displayed:
    """The validation losses of the companion studies, the lowest first; what follows from them stands on their pages."""
    paragraphs = []
    for name, (called, page, models) in COMPANIONS.items():
        for recipe in LANGUAGE[name].recipes:
            runs = stories.in_results(language_settings(name, {"recipe": recipe, "source": "hub"}), "hub")
            loss = {model: [record["test"]["loss"] for record in runs.of(model)] for model in runs.models}
            if not loss:
                paragraphs.append(f"[{called}]({page}), recipe `{recipe}`: not measured yet.")
                continue
            unit = runs.records[0]["data"]["unit"]
            budget = f"reduced to {runs.settings.training.tokens:,} {unit}" if runs.settings.reduced else "in full"
            found = sorted((sum(losses) / len(losses), model, len(losses)) for model, losses in loss.items())
            told = ", ".join(f"{models[model]} {mean:.3f} ({n} seed{'s' * (n > 1)})" for mean, model, n in found)
            longer = ", more for one that is named so" if set(LANGUAGE[name].longer) & set(loss) else ""
            paragraphs.append(f"[{called}]({page}), recipe `{recipe}`, {budget} a run{longer}; loss in nats a {unit.removesuffix('s')}, the lowest first: {told}. {_sides(name, {model: mean for mean, model, _ in found})}".rstrip())
    return display.text("\n\n".join(paragraphs))


def _sides(name: str, mean: dict[str, float]) -> str:
    """Whether the recurrent models of a companion study end below the standard ones; their pages tell how certain that is."""
    ours, what, theirs, standard = SIDES[name]
    pairs = [(mean[a], mean[b]) for a in ours for b in theirs if {a, b} <= mean.keys()]
    if not pairs:
        return ""
    below = sum(a < b for a, b in pairs)
    which = "Each" if below == len(pairs) else "None" if not below else "Some"
    return f"{which} of the models {what} {'ends' if which != 'Some' else 'end'} below the {standard}."


def _companions() -> list[str]:
    """Whether the companion studies have records."""
    said = []
    for name, (called, page, _) in COMPANIONS.items():
        n = len(list((home() / "results" / "language").glob(f"{name}-*/*.json")))
        said.append(f"[{called}]({page}): " + (f"{n} recorded run{'s' * (n > 1)}, judged on {'their' if n > 1 else 'its'} page." if n else "not measured yet."))
    return said


def cost() -> Displayed:
    """What the recurrent model saves: parameters always, time as measured on every task, beside what the arithmetic alone would save."""
    c, known, ratios = counts(), architectures(), {}
    for variant, (name, *_) in TASKS.items():
        runs = recorded(task(variant))
        latencies = [record["latency"]["environment"] for record in runs.of(FIRST) + runs.of(SECOND)]
        if {FIRST, SECOND} <= set(runs.models) and len({(one["device"], one["threads"]) for one in latencies}) == 1:
            ratios[name] = [milliseconds(runs.of(SECOND), kind) / milliseconds(runs.of(FIRST), kind) for kind in (0, -1)]
    said = [
        f"The recurrent model has {c['recurrent_total']:,} parameters, {c['saving_total']:.1%} fewer than the baseline's {c['baseline_total']:,}; outside "
        f"the word embedding the saving is {c['saving_non_embedding']:.1%}. Part of it comes from the loop and part from the smaller width."
    ]
    if ratios:
        (alone, alone_most), (batch, batch_most) = ((min(kind), max(kind)) for kind in zip(*ratios.values()))
        said.append(
            f"Its matrix products are {known[SECOND]['flops_per_token'] / known[FIRST]['flops_per_token']:.2f} of the baseline's. Of its time it took "
            f"{_range(alone, alone_most)} for a single text and {_range(batch, batch_most)} in batches, on the {len(ratios)} "
            f"task{'s' * (len(ratios) > 1)} where both were timed on one device."
        )
    else:
        said.append("Its speed against the baseline's is not measured yet.")
    return display.text(" ".join(said))


def _range(least: float, most: float) -> str:
    return f"{least:.2f}" if f"{least:.2f}" == f"{most:.2f}" else f"{least:.2f} to {most:.2f}"


def width() -> Displayed:
    """Whether recurrence has been told apart from width."""
    found = [one for one in findings("recurrent-wide").values() if one.difference]
    if not found:
        return display.text(
            "No run of the recurrent model at the baseline's width is recorded yet, so none of the differences above can be ascribed to recurrence: "
            "the published models differ in width as well."
        )
    said = "; ".join(f"on {one.name}, {one.difference} ({one.reading})" for one in found)
    open_ = "" if any(one.difference.sign for one in found) else " So whether the loop costs accuracy by itself is open."
    return display.text(f"At equal width, where the two models differ in the loop alone, Baseline minus {title('recurrent-wide')}: {said}.{open_}")


def leak() -> Displayed:
    """What each other way of cutting SST-2 costs in accuracy against the pooled one: both models at one budget, with the same seeds."""
    said = []
    for cut, what in (("sst2-grouped", "Keeping the phrases of a sentence together"), ("sst2-official", "GLUE's own split, whose test texts are whole sentences,")):
        both = [recorded(task(variant)) for variant in ("sst2", cut)]
        if not (same := matched([FIRST, SECOND], *both)):
            said.append(f"{what} is not measured yet with both models at a budget of the pooled split.")
            continue
        told, budget = [], same[0].budget
        for model in (FIRST, SECOND):
            if pairs := common(*(one.of(model) for one in same)):
                pooled, other = (sum(pair[i]["test"]["accuracy"] for pair in pairs) / len(pairs) for i in (0, 1))
                seeds = f"seed{'s' * (len(pairs) > 1)} {', '.join(str(pair[0]['seed']) for pair in pairs)}"
                told.append(f"of {title(model)} by {100 * (other - pooled):+.2f} points ({pooled:.4f} to {other:.4f}, {seeds})")
        bags = [m["test"]["accuracy"] for m in (measurement.find("hub", "yardstick", variant, "bag-of-words-seed0") for variant in ("sst2", cut)) if m]
        words = f"; that of a bag of words changes by {100 * (bags[1] - bags[0]):+.2f} points" if len(bags) == 2 else ""
        at = f" ({budget})" if budget else ""
        said.append(f"{what} changes the accuracy{at} {' and '.join(told)}{words}." if told else f"{what} is not measured yet with a seed of the pooled split.")
    return display.text(" ".join(said))


def judged() -> Displayed:
    """How the claims of the original study fare."""
    counted = claims.tally(verdicts := [claims.judge(claim) for entries in claims.claims().values() for claim in entries])
    words = ", ".join(f"{counted[word]} {_is(counted[word])} {word}" for word in VERDICTS)
    return display.text(
        f"Of the {len(verdicts)} [claims](claims.md) taken from the slides and the report, {words}. Of the reproduced and contradicted ones "
        f"{counted[ONE_SEED]} rest{'s' * (counted[ONE_SEED] == 1)} on one seed of each model and {counted[REDUCED]} on runs of a reduced budget."
    )


def _p(value: float | None) -> str | None:
    return None if value is None else equals(value).removeprefix("= ")


def _share() -> float:
    return 1 - counts()["saving_total"]


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
