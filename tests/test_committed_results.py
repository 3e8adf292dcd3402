"""What the repository's results/ holds: records proven by their predictions, and today's architectures."""

import json

import numpy as np
import pytest
from factory import SST2, saved

from rtx_core.architectures import describe
from rtx_core.errors import RtxError
from rtx_core.parameters import CLASSIFIERS
from rtx_core.paths import REPOSITORY
from rtx_core.results.record import read, read_json, run_key
from rtx_core.travel import proof

RECORDS = sorted(path for path in (REPOSITORY / "results").glob("*/*.json") if path.parent.name not in ("data", "benchmarks"))


def prove(path) -> None:
    """A committed record is valid, real, where it says it is, and says what its predictions say."""
    made = read(path)
    assert not made.synthetic
    assert (path.parent.name, path.stem) == (made["experiment"], f"{made['model']}-seed{made['seed']}")
    assert made["key"] == run_key(made["config"], made["data"]["sha256"], made["seed"])
    logits, labels = made.predictions["logits"], made.predictions["labels"]
    guesses, n = logits.argmax(1), len(labels)
    assert n == made["test"]["n"] == made["data"]["n_test"] and np.isfinite(logits).all()
    assert made["test"]["accuracy"] == pytest.approx(float((guesses == labels).mean()), abs=1e-12)
    confusion = np.zeros((logits.shape[1], logits.shape[1]), dtype=int)
    np.add.at(confusion, (labels.astype(int), guesses), 1)
    assert made["test"]["confusion"] == confusion.tolist()
    assert made["selected"]["validation_loss"] == min(row["validation_loss"] for row in made["history"])


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_committed_record_is_proven_by_its_predictions(path):
    prove(path)


def test_everything_committed_is_what_another_machine_could_bring():
    """Language models, measurements, benchmarks and profiles too: form, name, configuration, and numbers that give one another."""
    names = sorted(path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "results").glob("*/**/*.json"))
    assert any("/language/" in name for name in names)
    for name in names:
        proof.prove(REPOSITORY, name, lambda source, key, load: None)  # the data may not be at hand


@pytest.mark.parametrize("lie", [{"seed": 1}, {"model": "recurrent"}, {"key": "0" * 24}, {"test": {"accuracy": 0.81}},
                                 {"test": {"confusion": [[79, 21], [20, 80]]}}, {"selected": {"validation_loss": 0.5432}}])  # fmt: skip
def test_the_proof_finds_lies(lie):
    made = saved(SST2)
    prove(made.path)
    false = {k: made[k] | v if isinstance(v, dict) else v for k, v in lie.items()}
    made.path.write_text(json.dumps(made.content | false))
    with pytest.raises((AssertionError, RtxError)):
        prove(made.path)


def test_every_committed_prediction_has_its_record():
    orphans = [path.name for path in (REPOSITORY / "results").glob("*/*.npz") if not path.with_suffix(".json").exists()]
    assert orphans == []


def test_committed_architectures_are_those_of_the_models():
    committed = read_json(REPOSITORY / "results" / "architectures.json")
    assert list(committed) == list(CLASSIFIERS)
    for name in CLASSIFIERS:
        assert committed[name] == describe(name), name
