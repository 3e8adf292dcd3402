"""What a notebook asks for: the records of its settings, found in `results/` or made now."""

from collections.abc import Iterator
from dataclasses import dataclass

from rtx_core.corpora.sources import CORPORA, resolve
from rtx_core.errors import RtxError
from rtx_core.pages import display
from rtx_core.parameters import CLASSIFIERS, Settings
from rtx_core.paths import REPOSITORY, write_json
from rtx_core.results import store
from rtx_core.results.record import Record, read_json
from rtx_core.training.protocol import Seeds, as_config


@dataclass(frozen=True)
class Runs:
    """Records in the order of models, then seeds."""

    settings: Settings
    records: list[Record]
    data_sha256: str | None  # of today's data; None where it is not at hand to compare with

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def of(self, model: str) -> list[Record]:
        return [record for record in self.records if record["model"] == model]

    @property
    def first(self) -> dict[str, Record]:
        """The first seed's record of each model, by the model's name with hyphens as underscores."""
        return {model.replace("-", "_"): self.of(model)[0] for model in self.settings.models}

    @property
    def notes(self) -> list[str]:
        """What a reader must know of these records; pages show it beside every table and figure."""
        notes = ["Synthetic: trained and tested on the embedded corpus, which this project generates; it says nothing of real text."]
        notes = notes if any(record.synthetic for record in self) else []
        if any(record["protocol"] == "reduced" for record in self):
            changed = ", ".join(f"{k.replace('_', ' ')} {display.show(v)}" for k, v in self.settings.reduced.items())
            notes.append(f"Protocol reduced: {changed} instead of the report's setting.")
        for record in self:
            if note := record.note(self.data_sha256):
                notes.append(f"{record['model']}, seed {record['seed']}: {note}.")
        return notes


class Profiles(dict):
    """Split -> profile of the data under that split (see `rtx_core.corpora.dataset.profile`)."""


def runs(settings: Settings) -> Runs:
    """The records that these settings name.  What `results/` lacks is trained now; what it has is never made again."""
    source = resolve(settings.source)
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


def _found(settings: Settings, source: str, model: str, seed: int, today: str | None) -> Record | None:
    record = store.find(source, settings.variant, model, seed)
    if record is None or (record.synthetic and record.note(today)):  # a quick run is made anew when its code or data changed
        return None
    wanted = {"training": as_config(settings.protocol, Seeds.of(seed)), "model": _model_config(settings, model)}
    if record["config"] != wanted:
        raise RtxError(
            f"{settings.variant}/{record.path.name} was made under other settings than the ones of that name today; "
            f"move it away to run the experiment again."
        )
    return record


def _model_config(settings: Settings, model: str) -> dict:
    return architectures()[model]["config"] | {"residual": settings.residual, "num_labels": len(CORPORA[settings.corpus].classes)}


def _data_at_hand(settings: Settings, source: str) -> str | None:
    """The hash of today's data; None where it would have to be downloaded, or where `real` data cannot be read.

    A page is drawn from its records alone, so the default `real` asks for no data; whoever names a source wants it read.
    """
    if source == "hub":
        return None
    from rtx_core.corpora.dataset import dataset

    try:
        return dataset(settings.corpus, source, settings.split, settings.max_length, settings.train_rows).facts["sha256"]
    except RtxError:
        if settings.source != "real":
            raise
        return None


def profiles(settings: Settings, splits: list[str]) -> Profiles:
    """Label counts and length histograms of the corpus under each split: recorded in `results/data`, or made now."""
    if not splits:
        raise RtxError("Parameter splits is []; expected at least one way of splitting, such as 'seeded'.")
    source, found = resolve(settings.source), Profiles()
    for split in splits:
        path = store.folder(source) / "data" / f"{settings.corpus}-{split}-{settings.max_length}.json"
        if not path.exists() or source == "embedded":  # generated text is profiled in a moment, and may have changed
            from rtx_core.corpora.dataset import profile

            write_json(path, profile(settings.corpus, source, split, settings.max_length))
        found[split] = read_json(path, needs=("classes", "data", "parts", "code", "finished"))
    return found


def architectures() -> dict[str, dict]:
    """What `python -m rtx_core.architectures` recorded of every model."""
    return read_json(REPOSITORY / "results" / "architectures.json", needs=CLASSIFIERS)
