"""What the TinyStories records say of the study's claims: loops against controls, initial losses, passes, early exit."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import scipy

from rtx_core.corpora.sources import resolve
from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.published import published
from rtx_core.pages.runs import Runs, measured
from rtx_core.pages.stories import NAMES, STUDY, spread
from rtx_core.results import measurement
from rtx_core.results.record import Record
from rtx_core.results.statistics import mean_interval, paired

LOOPS, CONTROLS = ("frailt", "three-part", "relaxed"), ("control", "control-long", "control-16", "control-8")


def looped(runs: Runs) -> list[str]:
    """The models with passes that are recorded."""
    return [model for model in runs.models if runs.of(model)[0]["extra"]["trained_passes"] > 1]


def mean(records: list[Record], value) -> np.ndarray:
    """Mean over seeds of a list of numbers of each record."""
    return np.mean([value(record) for record in records], axis=0)


# -- loops against controls -------------------------------------------------------------------------------------------


@measured
def comparisons(runs: Runs, *, label: str) -> Displayed:
    """Each loop against each control and against the other loops, paired over the same batches of validation stories and over seeds."""
    rows = []
    for first, second in [*((loop, control) for loop in LOOPS for control in CONTROLS), *combinations(LOOPS, 2)]:
        if (pair := paired(runs.of(first), runs.of(second))) is not None:
            undecided = "undecided" if len(pair.by_seed) > 1 else "undecided: one seed"
            rows.append({
                "Model": NAMES[first], "against": NAMES[second], "Difference": f"{pair.value:+.4f}", "95 % interval over batches": f"{pair.low:+.4f} to {pair.high:+.4f}",
                "by seed": ", ".join(f"{d:+.4f}" for d in pair.by_seed), "p over seeds": f"{pair.p:.2g}" if pair.p is not None else None,
                "Better": {-1: NAMES[first], 1: NAMES[second], 0: undecided}[pair.sign],
            })  # fmt: skip
    if not rows:
        return display.text("Not measured yet: no loop and no other model have a seed in common.")
    frame = pd.DataFrame(rows)
    frame = frame.drop(columns="p over seeds") if frame["p over seeds"].isna().all() else frame
    note = (
        "Loss of the first minus that of the second, paired over the same batches of validation stories and over the seeds that both have; below 0 the first is "
        "better. Better: where the interval excludes 0 and two seeds or more agree; from three on the t-test over seeds must agree too. The interval knows "
        "nothing of how much another seed would change."
    )
    return display.table(frame, label=label, caption="Loops against controls and one another.", note=" ".join([note, *runs.notes]))


@measured
def outcome(runs: Runs) -> Displayed:
    """The differences in words, beside the study's."""
    quoted, said = published()["tinystories"]["validation_loss"], []
    against = {
        "control": "at equal tokens", "control-long": "which reads more tokens, as many as take FraiLT's computation",
        "control-16": "as many layers as are applied, each with weights of its own", "control-8": "twice the layers, run once",
    }  # fmt: skip
    for second, how in against.items():
        pairs = {first: pair for first in LOOPS if (pair := paired(runs.of(first), runs.of(second))) is not None}
        if pairs:
            told = [
                f"{NAMES[first]} {pair.value:+.3f} ({len(pair.by_seed)} seed{'s' * (len(pair.by_seed) > 1)}"
                + (f", published {quoted[first] - quoted[second]:+.3f})" if second in quoted else ")") for first, pair in pairs.items()
            ]  # fmt: skip
            said.append(f"against {NAMES[second]}, {how}: {', '.join(told)}")
    if not said:
        return display.text("How the loops stand against the controls is not measured yet.")
    close = " At this budget it is told which model learns faster at the start, and not where training ends." if runs.settings.reduced else ""
    return display.text(f"Loss of the loops minus that of a control, in nats a token, {'; '.join(said)}.{close}")


# -- initial losses ---------------------------------------------------------------------------------------------------


def _initial(runs: Runs) -> measurement.Measurement | None:
    return measurement.find(resolve(runs.settings.source), "initial", runs.settings.experiment, "losses")


def initial(runs: Runs, *, label: str) -> Displayed:
    """Table 5: initial and final losses, ours over seeds beside the published ones."""
    quoted, found, rows = published()["tinystories"]["initial"], _initial(runs), []
    for model in STUDY:
        ours, final = found["losses"].get(model) if found else None, [r["test"]["loss"] for r in runs.of(model)]
        rows.append({
            "Model": NAMES[model], "Published": f"{quoted[model]['initial']:.3f}", "Published, final": f"{quoted[model]['final']:.3f}",
            "Ours, from – to": f"{min(ours):.3f} to {max(ours):.3f}" if ours else None,
            "Ours, mean": spread(ours) if ours else None, "Seeds": len(ours) if ours else None,
            "Ours, final": spread(final) if final else None,
        })  # fmt: skip
    if found is None:
        note = "Not measured yet: `python -m rtx_core.evaluation.initial tinystories` measures the initial losses."
    else:
        pieces = found["data"]["vocabulary"]
        note = f"Initial losses on {found['n']:,} validation tokens. A uniform guess among {pieces:,} pieces has {math.log(pieces):.3f}."
        note += f" Initial losses {found.note()}." if found.note() else ""
    return display.table(pd.DataFrame(rows), label=label, caption="Loss before and after training.", note=" ".join([note, *runs.notes]))


def initialisation(runs: Runs) -> Displayed:
    """Whether the published order of initial losses is more than chance, and whether final losses follow initial ones."""
    quoted, found = published()["tinystories"]["initial"], _initial(runs)
    if found is None or any(model not in found["losses"] for model in STUDY):
        return display.text("Whether the order of initial losses is more than chance is not measured yet.")
    by_seed = np.array([found["losses"][model] for model in STUDY])  # (models, seeds)
    printed = np.array([quoted[model]["initial"] for model in STUDY])
    same = int((np.argsort(-by_seed, axis=0) == np.argsort(-printed)[:, None]).all(0).sum())
    low, high = np.percentile(np.ptp(by_seed, axis=1), [0, 100])
    gaps, apart = [], []
    for model, losses in zip(STUDY[1:], by_seed[1:]):
        value, *interval = mean_interval((losses - by_seed[0]).tolist())
        gaps.append(f"{NAMES[model]} {value:+.4f} ({interval[0]:+.4f} to {interval[1]:+.4f})")
        apart += [NAMES[model]] if interval[0] > 0 or interval[1] < 0 else []
    said = (
        f"The published initial losses span {np.ptp(printed):.3f} between models, one seed each. Between {by_seed.shape[1]} seeds of one model ours span {low:.3f} "
        f"to {high:.3f}{', so a span of that size between single runs tells nothing of their architectures' if np.ptp(printed) < low else ''}. A seed gives the models weights in common, so "
        f"they are compared in pairs: initial loss minus {NAMES[STUDY[0]]}'s, mean and 95 % interval over seeds, {'; '.join(gaps)}. "
        f"{f'More than chance is the difference of {_listed(apart)}' if apart else 'None of these differences is more than chance'}. "
        f"The published order of the four occurs with {same} of {by_seed.shape[1]} seeds."
    )
    note = f" These initial losses were {found.note()}." if found.note() else ""
    return display.text(f"{said} {_followed(runs, by_seed)}{note}")


def _followed(runs: Runs, by_seed: np.ndarray) -> str:
    """Whether the order of the final losses is that of the initial ones, seed by seed."""
    told = []
    for seed in sorted(set.intersection(*({r["seed"] for r in runs.of(model)} for model in STUDY))):
        if seed < by_seed.shape[1]:
            final = [next(r["test"]["loss"] for r in runs.of(model) if r["seed"] == seed) for model in STUDY]
            rank = scipy.stats.spearmanr(by_seed[:, seed], final).statistic
            orders = [", ".join(NAMES[STUDY[i]] for i in np.argsort(losses)) for losses in (by_seed[:, seed], final)]
            told.append(f"with seed {seed} the initial losses are, lowest first, {orders[0]}, and the final ones {orders[1]} (rank correlation {rank:+.2f})")
    if not told:
        return "Whether final losses follow initial ones is not measured yet."
    budget = " at this budget" if runs.settings.reduced else ""
    few = f" {len(told)} seed{'s' * (len(told) > 1)} of {len(STUDY)} models are few: a correlation of ±1 comes by chance in one of {math.factorial(len(STUDY)) // 2} seeds."
    return f"If initialization decided, final losses would follow initial ones, a rank correlation of +1. Measured{budget}: {'; '.join(told)}.{few}"


# -- passes and exits -------------------------------------------------------------------------------------------------


@measured
def passes(runs: Runs) -> Displayed:
    """What other numbers of passes than the trained one do, in words."""
    said = []
    for model in looped(runs):
        trained, loss = runs.of(model)[0]["extra"]["trained_passes"], mean(runs.of(model), lambda r: r["extra"]["passes"]["validation"])
        said.append(f"{NAMES[model]} {loss[-1] - loss[trained - 1]:+.3f} with {len(loss)} instead of {trained} passes, and lowest after {int(np.argmin(loss)) + 1}")
    return display.text(f"Change of the loss with twice the trained passes: {'; '.join(said)}." if said else "No model with passes is measured yet.")


def exit_costs(record: Record, taken: np.ndarray, asked: bool = True) -> np.ndarray:
    """Forward FLOPs of a token that stops after so many passes (a mean may be a fraction), read after each of them where `asked`."""
    f, c = record["extra"]["flops_per_token"], record["config"]["model"]
    a_pass, head = f[1] - f[0], 2 * c["vocab_size"] * c["hidden_size"]
    coda = (f[0] - a_pass - head) / 2  # outside the loop are the head and, as large as each other, prelude and coda
    return f[0] + (taken - 1) * (a_pass + asked * (head + coda))


def exit_points(runs: Runs, model: str) -> list[dict]:
    """For each allowed cost the means over seeds, and the lowest loss of all tokens stopping alike at no more computation.

    An allowance that changes nothing is left out.
    """
    records, points = runs.of(model), []
    extra, fixed = records[0]["extra"], mean(records, lambda r: r["extra"]["passes"]["validation"])
    flops = np.array(extra["flops_per_token"])
    for i, row in enumerate(extra["exits"]):
        point = {key: float(np.mean([r["extra"]["exits"][i][key] for r in records])) for key in row}
        if points and point["validation_passes"] == points[-1]["validation_passes"]:
            continue
        for name, asked in (("cost", True), ("free", False)):
            point[name] = float(exit_costs(records[0], np.array(point["validation_passes"]), asked))
            point[f"{name}_fixed"] = float(fixed[: extra["trained_passes"]][flops[: extra["trained_passes"]] <= point[name] * (1 + 1e-9)].min())
        points.append(point)
    return points


@measured
def exits(runs: Runs, *, label: str) -> Displayed:
    """Thresholds and what they give, against stopping all tokens alike."""
    rows, better, free = [], 0, 0
    for model in looped(runs):
        for p in exit_points(runs, model):
            better, free = better + (p["validation_loss"] < p["cost_fixed"]), free + (p["validation_loss"] < p["free_fixed"])
            rows.append({
                "Model": NAMES[model], "Allowed": f"{p['allowed']:g}", "Threshold": f"{p['threshold']:.2g}", "Passes, training": f"{p['training_passes']:.2f}",
                "Passes": f"{p['validation_passes']:.2f}", "MFLOPs": f"{p['cost'] / 1e6:.1f}", "Loss": f"{p['validation_loss']:.4f}",
                "Minus all alike": f"{p['validation_loss'] - p['cost_fixed']:+.4f}", "if asking were free": f"{p['validation_loss'] - p['free_fixed']:+.4f}",
            })  # fmt: skip
    if not rows:
        return display.text("No model with passes is measured yet.")
    note = (
        f"At {better} of {len(rows)} points tokens that stop on their own have a lower loss than the best number of passes for all tokens at no more computation; "
        f"were asking free, at {free}. Allowed: nats that stopping may cost on training stories, which chooses the threshold on the divergence. Minus all alike: the loss "
        "minus that of the best number of passes, the same for all tokens, at no more computation. A token takes two passes at least. Means over seeds."
    )
    return display.table(pd.DataFrame(rows), label=label, caption="Early exit against stopping all tokens alike.", note=" ".join([note, *runs.notes]))


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
