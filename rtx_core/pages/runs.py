"""What a notebook asks for: the records of its settings, found in `results/` or made now; the book only shows what is found."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps

from rtx_core.corpora.sources import CORPORA, resolve
from rtx_core.errors import RtxError
from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.parameters import CLASSIFIERS, Settings
from rtx_core.paths import REPOSITORY, write_json
from rtx_core.results import store
from rtx_core.results.record import Record, read_json
from rtx_core.training.protocol import Seeds, as_config

BOOK = "RTX_BOOK"  # set while the book is built (book/_ext/paper.py)
STALE = "RTX_STALE"  # "rerun": a stale record is made again (`make paper`); its file stays until the new one replaces it
BUDGET = re.compile(r"(?:-trainrows(?P<train_rows>\d+))?(?:-epochs(?P<epochs>\d+))?")  # ends of the names of smaller runs


@dataclass(frozen=True)
class Runs:
    """Records in the order of models, then seeds; in the book some may be missing."""

    settings: Settings
    records: list[Record]
    data_sha256: str | None  # of today's data; None where it is not at hand to compare with
    others: tuple["Runs", ...] = ()  # the same at other budgets, which stay beside these as a footnote

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def of(self, model: str) -> list[Record]:
        return [record for record in self.records if record["model"] == model]

    @property
    def models(self) -> list[str]:
        """Those of the settings with a record."""
        return [model for model in self.settings.models if self.of(model)]

    @property
    def first(self) -> dict[str, Record]:
        """The first seed's record of each model, by the model's name with hyphens as underscores."""
        return {model.replace("-", "_"): self.of(model)[0] for model in self.models}

    @property
    def budget(self) -> str:
        """What differs from the full protocol; empty when nothing does."""
        longer = [f"{model} {times:g} times the steps" for model, times in self.settings.longer.items() if self.of(model)]
        return ", ".join([f"{name.replace('_', ' ')} {display.show(value)}" for name, value in self.settings.reduced.items()] + longer * bool(self.settings.reduced))

    @property
    def budget_named(self) -> str | None:
        """The same for a table; None where there are no records."""
        return (self.budget or "full") if self.records else None

    @property
    def budgets(self) -> list["Runs"]:
        """These and the `others`, the largest budget first."""
        return sorted((self, *self.others), key=lambda one: one.settings.effort, reverse=True)

    @property
    def footnote(self) -> list[str]:
        """What came out at other budgets."""
        others = [one for one in self.budgets if one is not self]
        return [f"At {f'another budget ({one.budget})' if one.budget else 'the full budget'}: {', '.join(map(one._mean, one.models))}." for one in others]

    def _mean(self, model: str) -> str:
        found = self.of(model)
        measure = "accuracy" if "accuracy" in found[0]["test"] else "loss"
        mean = sum(record["test"][measure] for record in found) / len(found)
        return f"{model} {measure} {mean:.4f}" + (f" (mean of {len(found)} seeds)" if len(found) > 1 else "")

    @property
    def notes(self) -> list[str]:
        """What a reader must know of these records; pages show it beside every table and figure."""
        notes = ["Synthetic: trained and tested on the embedded corpus, which this project generates; it says nothing of real text."]
        notes = notes if any(record.synthetic for record in self) else []
        if any(record["protocol"] == "reduced" for record in self):
            notes.append(f"Protocol reduced: {self.budget} instead of the full protocol's setting.")
        for record in self:
            if note := record.note(self.data_sha256):
                notes.append(f"{record['model']}, seed {record['seed']}: {note}.")
        return notes


class Studies(dict):
    """A reader's name -> `Runs`: one experiment under several values of a setting, for one table or figure."""

    def __init__(self, runs: dict[str, Runs], setting: str = ""):
        super().__init__(runs)
        self.setting = setting

    @classmethod
    def of(cls, runs: "Runs | Studies") -> "Studies":
        """Single runs are a study without a name."""
        return runs if isinstance(runs, Studies) else cls({"": runs})

    @property
    def heading(self) -> str:
        return self.setting.replace("_", " ").capitalize()

    @property
    def records(self) -> list[Record]:
        return [record for runs in self.values() for record in runs]

    @property
    def footnote(self) -> list[str]:
        return [f"{name}: {said}" if name else said for name, runs in self.items() for said in runs.footnote]

    @property
    def notes(self) -> list[str]:
        """The notes of all, each once, with the names of those it is true of unless it is true of all."""
        found: dict[str, list[str]] = {}
        for name, runs in self.items():
            for note in runs.notes:
                found.setdefault(note, []).append(name)
        measured = sum(bool(runs.records) for runs in self.values())
        return [note if len(names) == measured else f"{', '.join(names)}: {note}" for note, names in found.items()]


def measured(draw: Callable[..., Displayed]) -> Callable[..., Displayed]:
    """A display of records; where there are none it says so."""

    @wraps(draw)
    def drawn(runs: Runs | Studies, **options: object) -> Displayed:
        return draw(runs, **options) if runs.records else display.text("Not measured yet: `results/` holds no record of these settings.")

    return drawn


class Profiles(dict):
    """Reader's name -> profile of the data (see `rtx_core.corpora.dataset.profile`), under several values of a setting."""

    setting: str
    settings: dict[str, Settings]

    @property
    def heading(self) -> str:
        return self.setting.replace("_", " ").capitalize()


def variants(settings: Settings, **values: list) -> dict[str, Settings]:
    """`variants(settings, fraction=[0.1, 0.5])`: a reader's name -> the settings with each value of one setting."""
    ((setting, given),) = values.items()
    if not given:
        raise RtxError(f"Parameter {setting} is []; expected a list of at least one value to compare.")
    return {_called(made := settings.but(**{setting: value}), setting): made for value in given}


def _called(settings: Settings, setting: str) -> str:
    value = getattr(settings, setting)
    if setting == "fraction":
        return f"{100 * value:g} %"
    if setting == "length":
        return "all" if value == "all" else f"{value}est {100 * settings.length_fraction:g} %"
    return f"{value} tokens" if setting == "max_length" else str(value)


def studies(settings: Settings, **values: list) -> Studies:
    """`runs` of each of the `variants`."""
    return Studies({name: runs(made) for name, made in variants(settings, **values).items()}, *values)


def runs(settings: Settings) -> Runs:
    """The records that these settings name.  What `results/` lacks is trained now; what it has is never made again.

    While the book is built nothing is trained on real text: a page shows what is recorded and says what is missing.
    """
    source = resolve(settings.source)
    if os.environ.get(BOOK) and source != "embedded":
        return recorded(settings)
    today = _data_at_hand(settings, source)
    records = []
    for model in settings.models:
        for seed in settings.seeds:
            record = _found(settings, source, model, seed, today)
            if record is None:
                from rtx_core.run import run  # needs torch, which drawing a page does not

                record = run(settings, model, seed)
            records.append(record)
    return Runs(settings, records, today)


def recorded(settings: Settings) -> Runs:
    """What `results/` holds of these settings, every seed of it, or of the same at a smaller budget of rows and epochs.

    The budget is that of most models; among equals the larger, so a full run is shown as soon as there is one of each model.
    """
    source = resolve(settings.source)
    made = [_all_of(one, {model: _seeds(one, source, model) for model in one.models}, source) for one in [settings, *_smaller(settings, source)]]
    best = max(made, key=lambda one: (len(one.models), one.settings.effort))
    return replace(best, others=tuple(one for one in made if one is not best and one.records))


def matched(models: list[str], *tasks: Runs) -> list[Runs] | None:
    """The records of each at the largest budget that all have of these models, so that the budget is not what differs; None without."""
    for one in tasks[0].budgets:
        same = [[b for b in task.budgets if b.settings.reduced == one.settings.reduced and all(map(b.of, models))] for task in tasks]
        if all(same):
            return [found[0] for found in same]
    return None


def _all_of(settings: Settings, seeds: dict[str, list[int]], source: str) -> Runs:
    if not any(seeds.values()):
        return Runs(settings, [], None)
    settings = settings.but(seeds=sorted({seed for found in seeds.values() for seed in found}))
    today = _data_at_hand(settings, source)
    return Runs(settings, [_found(settings, source, model, seed, today) for model in settings.models for seed in seeds[model]], today)


def _smaller(settings: Settings, source: str) -> list[Settings]:
    """The same settings at the smaller budgets that `results/` has folders of."""
    made = []
    for folder in store.folder(source).glob(f"{settings.variant}-*"):
        if budget := BUDGET.fullmatch(folder.name.removeprefix(settings.variant)):
            made.append(settings.but(**{name: int(value) for name, value in budget.groupdict().items() if value}))
    return [one for one in made if one.effort < settings.effort]  # a longer trial is no budget of these


def _seeds(settings: Settings, source: str, model: str) -> list[int]:
    folder = store.path_of(source, settings.variant, model, 0).parent
    numbers = (re.fullmatch(rf"{model}-seed(\d+)", path.stem) for path in folder.glob("*.json"))
    return sorted(int(number[1]) for number in numbers if number)


def _found(settings: Settings, source: str, model: str, seed: int, today: str | None) -> Record | None:
    record = store.find(source, settings.variant, model, seed)
    if record is None or made_again(record, today):
        return None
    wanted = {"training": as_config(settings.protocol, Seeds.of(seed)), "model": _model_config(settings, model)}
    if record["config"] != wanted:
        raise RtxError(
            f"{settings.variant}/{record.path.name} was made under other settings than the ones of that name today; "
            f"move it away to run the experiment again."
        )
    return record


def made_again(record: Record, today: str | None = None) -> bool:
    """Its code or data changed, and it is a quick run or `STALE` asks for it."""
    return (record.synthetic or os.environ.get(STALE) == "rerun") and bool(record.note(today))


def _model_config(settings: Settings, model: str) -> dict:
    return architectures()[model]["config"] | settings.overrides | {"num_labels": len(CORPORA[settings.corpus].classes)}


def _data_at_hand(settings: Settings, source: str) -> str | None:
    """The hash of today's data; None where it would have to be downloaded, or where `real` data cannot be read.

    A page is drawn from its records alone, so the default `real` asks for no data; whoever names a source wants it read.
    """
    if source == "hub":
        return None
    from rtx_core.corpora.dataset import dataset

    try:
        return dataset(**settings.data).facts["sha256"]
    except RtxError:
        if settings.source != "real":
            raise
        return None


def profiles(settings: Settings, splits: list[str] = (), **values: list) -> Profiles:
    """Label counts and length histograms of the corpus under each split, or under each value of another setting.

    They are recorded in `results/data`, or made now.
    """
    values = values or {"split": splits}
    source, found = resolve(settings.source), Profiles()
    (found.setting,), found.settings = values, variants(settings, **values)
    for name, made in found.settings.items():
        path = store.folder(source) / "data" / f"{made.corpus}-{made.split}{made.subset}-{made.max_length}.json"
        if not path.exists() or source == "embedded":  # generated text is profiled in a moment, and may have changed
            from rtx_core.corpora.dataset import profile

            write_json(path, profile(**{k: v for k, v in made.data.items() if k != "train_rows"}))
        found[name] = read_json(path, needs=("classes", "data", "parts", "code", "finished"))
    return found


def architectures() -> dict[str, dict]:
    """What `python -m rtx_core.architectures` recorded of every model."""
    return read_json(REPOSITORY / "results" / "architectures.json", needs=CLASSIFIERS)
