"""Records made elsewhere are checked before one of them is taken; the examples are this repository's."""

import json
import shutil

import pytest

from rtx_core import RtxError
from rtx_core.experiments.importing import import_records
from rtx_core.paths import REPOSITORY

RUN = "sst2-10pct/baseline-seed0"
TAKEN = [RUN, "sst2-10pct/recurrent-seed0", "precision/sst2-10pct/baseline-seed0-int8"]
TAKEN += ["tinystories-report-reduced/frailt-seed0", "tinystories-report-reduced/control-long-seed0"]
TAKEN += ["shakespeare-small-learningrate0.003/gpt-6-time-seed0"]
TAKEN += ["shakespeare-report-reduced/gpt-2-seed0", "yardstick/sst2-10pct/bag-of-words-seed0"]
TAKEN += ["khop/1x1-seed5"]  # with its weights


@pytest.fixture
def there(tmp_path_factory):
    made = tmp_path_factory.mktemp("there")
    for name in (*TAKEN, f"weights/{TAKEN[-1]}"):
        for file in (REPOSITORY / "results").glob(f"{name}.*"):
            place = made / file.relative_to(REPOSITORY)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)
    return made


def altered(there, name, *keys, value):
    """Another value under these keys of a record."""
    path = there / "results" / f"{name}.json"
    content = part = json.loads(path.read_text())
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    path.write_text(json.dumps(content))


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_sound_records_are_taken_once(there, home):
    altered(there, TAKEN[1], "experiment", value="own-data")  # whose name says nothing of its settings
    assert len(import_records(str(there))) == len(TAKEN)
    assert files(home / "results") == files(there / "results")
    assert import_records(str(there / "results")) == []


INT8 = "precision/sst2-10pct/baseline-seed0-int8"
WORDS = "yardstick/sst2-10pct/bag-of-words-seed0"
FITTED = "shakespeare-small-learningrate0.003/gpt-6-time-seed0"
LIES = [  # (record, keys …, value, what is said of it)
    (RUN, "test", "f1", 0.9, "f1"),
    (RUN, "selected", "validation_loss", 0.01, "not the lowest"),
    (RUN, "budget", "reduced", "its settings are of sst2-10pct, full"),
    (RUN, "config", "data", "fraction", 0.5, "settings are of sst2-50pct"),
    (FITTED, "budget", "reduced", "its settings are of shakespeare-small"),
    (INT8, "test", "recall", 0.5, "recall"),
    (INT8, "run", "0" * 24, "of the run 0000"),
    (INT8, "data", "source", "embedded", "synthetic"),
    (WORDS, "data", "sha256", "0" * 64, "do not mix them"),
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: "-".join(map(str, lie[1:3])))
def test_a_record_that_lies_is_refused_with_all_others(there, home, lie):
    name, *keys, value, said = lie
    altered(there, name, *keys, value=value)
    with pytest.raises(RtxError, match=said):
        import_records(str(there))
    assert files(home) == {}


def test_another_record_of_that_name_is_replaced_only_when_told(there, home):
    import_records(str(there))
    before = files(home)
    altered(there, RUN, "seconds", value=1.0)
    with pytest.raises(RtxError, match="baseline-seed0.json differs .*--replace"):
        import_records(str(there))
    assert files(home) == before
    (path,) = import_records(str(there), replace=True)
    assert json.loads(path.read_text())["seconds"] == 1.0


def test_a_folder_without_records_is_one_sentence(tmp_path):
    for folder in (tmp_path / "nothing", tmp_path):
        with pytest.raises(RtxError, match="holds no records"):
            import_records(str(folder))
