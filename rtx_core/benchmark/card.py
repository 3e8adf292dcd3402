"""The card of a model: one JSON, and one page of HTML with its pictures inside, without scripts."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtx_core.benchmark.words import changes, of_seeds, score
from rtx_core.errors import RtxError
from rtx_core.foreign import invalid_file_errors, read_bytes
from rtx_core.paths import build, write_atomically
from rtx_core.report import display, figures
from rtx_core.report.style import number, one_line

MOST_BYTES = 2**22
ROUNDING = "The validation error with every matrix but the embedding rounded after training. "
ROUNDING += "The validation sequences of s3 and z6 have all lengths, and those of the test the longest."
SURE_OF_ONE = "One seed and one learning rate: measurements, no verdict; another rate may do better (--rate)"
RECORDED, RECURRENCE = "recorded", "recurrence"  # roles: a stack or loop of this library, a class that a study declares
INKS, GREY = ("#cc3311", "#0077bb"), "#8a919b"
Share = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(gt=0, lt=2**53)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Counts(Part):
    """Of the matrices outside the vocabulary's: how many parameters, and how often they are applied to a token."""

    weights: Count
    applied: Count
    width: Count
    passes: Count

    @property
    def depth(self) -> int:
        """The layers of this library of that width that do as many multiply-adds: 12.25 width² each."""
        return max(1, round(self.applied / (12.25 * self.width**2)))


class Point(Part):
    """A model on a task: its test error for each seed, at its learning rate."""

    name: str
    role: str  # candidate, RECORDED, RECURRENCE, or a control's
    errors: list[Share] = Field(min_length=1)
    seeds: list[int] = []  # of each error; of an older card they are not known
    answers: int
    kilobits: list[Share] = []
    weights: Count
    depth: Count
    passes: Count
    rate: float


class Verdict(Part):
    control: str
    verdict: Literal["better", "worse", "equal", "cannot say"]
    says: str


class TaskResult(Part):
    task: str
    unit: Literal["error", "nats"]
    candidate: Point | None = None
    others: list[Point] = []
    places: list[str] = []
    verdicts: list[Verdict] = []
    passes: list[tuple[int, Share]] = []
    rounded: list[tuple[int, Share]] = []
    minutes: Share = 0.0
    memory_mib: Share = 0.0
    problem: str = ""


class CheckLine(Part):
    check: str
    verdict: str
    says: str


class Card(Part):
    version: Literal[1] = 1
    name: str
    budget: str
    date: str
    machine: str
    counts: Counts
    check: list[CheckLine]
    tasks: list[TaskResult]


def folder() -> Path:
    return build() / "bench"


def write(card: Card, stem: Path) -> None:
    """The JSON and the page of a card."""
    write_atomically(stem.with_name(f"{stem.name}.json"), card.model_dump_json(indent=1).encode())
    write_atomically(stem.with_name(f"{stem.name}.html"), page(card).encode())


def read(path: Path | str) -> Card:
    """The card in a JSON file, checked."""
    try:
        with invalid_file_errors():
            content = read_bytes(Path(path), MOST_BYTES)
        return Card.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the top"
        problem = f"{path} is no card (at {where:.80}: {first['msg']:.80})"
        raise RtxError(f"{problem}; give the JSON that `bench` wrote.") from None
    except RtxError as error:
        raise RtxError(f"{path} cannot be read ({error}); give the JSON that `bench` wrote.") from None


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = ["".join(f"<th>{escape(one_line(cell))}</th>" for cell in head)]
    lines += ["".join(f"<td>{escape(one_line(cell))}</td>" for cell in row) for row in rows]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>" if rows else ""


def picture(figure: "Figure", alt: str) -> str:
    image = base64.b64encode(display.draw(figure)).decode()
    return f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{image}">'


def result_of(card: Card, task: str) -> TaskResult | None:
    return next((each for each in card.tasks if each.task == task), None)


def marks(cards: Sequence[Card], task: str) -> list[tuple[Point, str]]:
    """Every model on a task once, with its color; the cards' own ones last."""
    results = [(card, ink, result) for card, ink in zip(cards, INKS) if (result := result_of(card, task))]
    points = {point.name: (point, GREY) for _, _, result in results for point in result.others}
    for card, ink, result in results:
        points.pop(card.name, None)
        if result.candidate:
            points[card.name] = (result.candidate, ink)
    return list(points.values())


def plane(follow: list[tuple[Point, str]], store: list[tuple[Point, str]]) -> Figure | None:
    """Models by their error on pointers and the facts that they store, each with its color; None without any."""
    kilobits = {point.name: float(np.mean(point.kilobits)) for point, _ in store}
    marks = [(point, ink) for point, ink in follow if point.name in kilobits]
    if not marks:
        return None
    fig, (ax,) = figures.canvas(width=6.4, height=4.2)
    for point, ink in marks:
        x = 100 * max(float(np.mean(point.errors)), 0.5 / max(point.answers, 1))  # half an answer: the axis has no zero
        y, highlighted = kilobits[point.name], ink != GREY
        marker = "*" if highlighted else "^" if point.role == RECURRENCE else "s" if point.passes > 1 else "o"
        ax.plot(x, y, marker, color=ink, markersize=16 if highlighted else 7)
        look = {"textcoords": "offset points", "fontsize": 9, "color": ink if highlighted else "black"}
        ax.annotate(point.name, (x, y), xytext=(7, 4), **look)
    ax.set(xscale="log", xlabel="follow: error on pointers (%), better to the right", ylabel="store: facts (kilobits)")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.invert_xaxis()
    ax.margins(0.15)
    return fig


def label(point: Point) -> str:
    """Its name, the role of a control, and how many seeds it has, if several."""
    is_control = point.role not in ("candidate", RECORDED, RECURRENCE)
    seeds = f", {len(point.errors)} seeds" * (len(point.errors) > 1)
    return f"{point.name}{f', {point.role}' * is_control}{seeds}"


def rows_of(cards: Sequence[Card], task: str) -> str:
    """A row for each model on a task, a mark for each seed."""
    if not (points := sorted(marks(cards, task), key=lambda mark: np.mean(mark[0].errors))):
        return ""
    nats, (fig, (ax,)) = task == "characters", figures.canvas(width=6.4, height=0.9 + 0.3 * len(points))
    for y, (point, ink) in enumerate(points):
        values = [each if nats else 100 * each for each in point.errors]
        ax.plot(values, [y] * len(values), "o", color=ink, markersize=8)
    ax.set(yticks=range(len(points)), yticklabels=[label(each) for each, _ in points], ylim=(len(points) - 0.4, -0.6))
    ax.set_xlabel("loss (nats a character)" if nats else "test error (%)")
    ax.margins(x=0.08)
    if not nats:
        ax.set_xlim(left=-1)
    return picture(fig, f"The test error of each model on {task}, one mark per seed.")


def curves(cards: Sequence[Card]) -> str:
    """The error by passes at test time."""
    fig, (ax,) = figures.canvas(width=6.4, height=3.2)
    for card, ink in zip(cards, INKS):
        tried = [task for task in card.tasks if task.passes and task.unit == "error"]
        for task, style in zip(tried, ("-", ":", "--", "-.", "-")):
            passes, errors = zip(*task.passes)
            shares = [100 * each for each in errors]
            ax.plot(passes, shares, f"o{style}", color=ink, label=f"{card.name}, {task.task}")
        if tried:
            ax.axvline(card.counts.passes, color=ink, linewidth=1, alpha=0.5)
    ax.set(xlabel="passes at test time (vertical line: as trained)", ylabel="validation error (%)")
    if not ax.lines:
        return ""
    ax.legend(fontsize=9)
    return picture(fig, "The error of the trained model by its number of passes at test time.")


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }}
img {{ max-width: 100% }} h2 {{ margin-top: 2rem }}
table {{ border-collapse: collapse; font-size: .9rem; display: block; overflow-x: auto }}
td, th {{ text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; border-bottom: 1px solid #8886 }}
.problem {{ border-left: 4px solid #cc3311; padding-left: .7rem }}
@media (prefers-color-scheme: dark) {{ img {{ filter: invert(.9) hue-rotate(180deg) }} }}
</style>
<body>{body}</body></html>
"""


def page(*cards: Card, lead: str = "") -> str:
    """One card as a page, or two in one, after what leads it."""
    title = " and ".join(card.name for card in cards)
    parts = [f"<h1>{escape(one_line(title))}</h1>", *map(summary, cards), lead]
    if drawn := plane(*(marks(cards, task) for task in ("pointers", "facts"))):
        alt = "Each model by its error on pointers and the kilobits of facts that it stores."
        key = "Squares: loops. Circles: stacks. Triangles: recurrences of others. Stars: what was benched."
        parts += ["<h2>Follow and store</h2>", picture(drawn, alt), f"<p>{key}</p>"]
    for task in dict.fromkeys(each.task for card in cards for each in card.tasks):
        parts += [f"<h2>{escape(one_line(task))}</h2>", rows_of(cards, task)]
        parts += [in_words(card, one) for card in cards if (one := result_of(card, task))]
    if drawn := curves(cards):
        parts += ["<h2>Passes at test time</h2>", drawn]
    for card in cards:
        parts += [f"<h2>{escape(one_line(card.name))}: rounding, time and memory</h2>", costs(card)]
        if lines := [(line.check, line.verdict, line.says) for line in card.check]:
            parts += [f"<h2>{escape(one_line(card.name))}: check</h2>", table(("Check", "Verdict", ""), lines)]
    return PAGE.format(title=escape(one_line(title)), body="\n".join(parts))


def summary(card: Card) -> str:
    size = card.counts
    times = number(size.applied / size.weights, ".3g")
    sizes = f"{size.weights:,} parameters in matrices outside the vocabulary, each applied {times} times on average"
    sizes += f": as many multiply-adds as {size.depth} layers of width {size.width}"
    seeds = {len(task.candidate.errors) for task in card.tasks if task.candidate} or {0}
    least, most = min(seeds), max(seeds)
    sure = {0: "No task could be trained", 1: SURE_OF_ONE}
    sure = sure.get(most, f"{most} seeds for each task" if least == most else f"{least} to {most} seeds for a task")
    if card.budget == "trial":
        sure = "A trial of a few steps: its numbers mean nothing"
    lines = [
        f"<b>{escape(one_line(card.name))}</b>: {escape(sizes)}.",
        f"Budget {escape(card.budget)}. {escape(sure)}.",
    ]
    lines.append(
        f"Made {escape(card.date[:16].replace('T', ' '))} on {escape(one_line(card.machine)) or 'this machine'}."
    )
    failed = [line.check for line in card.check if line.verdict == "fail"]
    if failed:
        lines.append(f"<b>The check fails at {escape(', '.join(failed))}</b>, so read the numbers with care.")
    if size.passes < 2:
        lines.append("It is no loop in depth: no matrix is applied more than once.")
    return f"<p>{' '.join(lines)}</p>"


def in_words(card: Card, task: TaskResult) -> str:
    """What a card says of a task in words."""
    parts = []
    if task.problem:
        parts.append(f'<p class="problem">{escape(one_line(task.problem))}</p>')
    if task.candidate:
        stored = (
            f", {number(float(np.mean(task.candidate.kilobits)), '.0f')} kilobits stored"
            if task.candidate.kilobits
            else ""
        )
        rate = f"learning rate {task.candidate.rate:g}"
        measure = "loss" if task.unit == "nats" else "test error"
        words = [f"{card.name}: {measure} {of_seeds(task.candidate, task.unit)}{stored}, at {rate}.", *task.places]
        parts.append(f"<p>{escape(one_line(' '.join(words)))}</p>")
    if sentences := changes(task, card.counts.passes):
        seed = f" of seed {task.candidate.seeds[0]}" if task.candidate and task.candidate.seeds else ""
        sentences.append(
            f"This was measured on the validation sequences of one trained model{seed}, so it is no verdict."
        )
        parts.append(f"<p>{escape(' '.join(sentences))}</p>")
    if not task.others and card.budget != "trial":
        parts.append("<p>No other model is recorded on this task at this budget: <code>rtx bench --ladder</code>.</p>")
    parts.append(table(("Against", "Verdict", ""), [(each.control, each.verdict, each.says) for each in task.verdicts]))
    return "".join(parts)


def costs(card: Card) -> str:
    bits = sorted({bits for task in card.tasks for bits, _ in task.rounded}, reverse=True)
    head = ["Task", *(f"{each} bits" for each in bits), "Training, all seeds (min)", "Peak memory (MiB)"]
    rows = []
    for task in card.tasks:
        by_bits = {each: score(value, task.unit) for each, value in task.rounded}
        numbers = [f"{task.minutes:.1f}", f"{task.memory_mib:.0f}"]
        rows.append([task.task, *(by_bits.get(each, "") for each in bits), *numbers])
    return f"{table(head, rows)}{f'<p>{ROUNDING}</p>' * bool(bits)}"
