"""Records, their predictions and the cache of tokens, damaged at random: each file is odd or it is read, and whatever
reads it goes on."""

import json
import random
from contextlib import suppress
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pytest
from committed import put
from conftest import refused

from rtx_core import records
from rtx_core.experiments import cost, doctor
from rtx_core.experiments.configure import configure
from rtx_core.experiments.weights import retrain_advice
from rtx_core.foreign import InvalidFile, dump_arrays, read_arrays
from rtx_core.records import golden
from rtx_core.report import display, evidence, figures, statistics
from study.demo import explorer

EDITS = 1600  # of records; half of them of bytes, half of what JSON holds
NAMES = ["sst2-10pct/recurrent-seed0", "khop/1x4-seed0", "tinystories-report-reduced/frailt-seed0"]
MEASURED = "growth/khop/1x4-seed5"
VALUES = [None, True, 0, -1, 1.5, 2**70, 10**400, 1e308, float("nan"), "", "x", "\ud800", "9" * 5000, [], [[]], [None]]
VALUES += [{}, {"total": 1}, "2999-01-01T00:00:00+00:00", "../x", ["` {val}`1` `"], {"base": "x"}]


def places(value: object, above: tuple = ()) -> list[tuple]:
    """The way to everything within JSON, of lists to the first two entries."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    return [place for key, each in inner for place in [(*above, key), *places(each, (*above, key))]]


def edit(text: str, draw: random.Random) -> str:
    """JSON of which one field is taken away, renamed or given another value."""
    content = json.loads(text)
    *above, last = draw.choice(places(content))
    inner = content
    for key in above:
        inner = inner[key]
    value = inner.pop(last)
    if isinstance(inner, list):
        inner.append(draw.choice(VALUES))
    elif how := draw.randrange(4):
        inner |= {last: draw.choice(VALUES)} if how > 1 else {draw.choice(("x", "kind")): value}
    return json.dumps(content)


def damage(content: bytes, draw: random.Random) -> bytes:
    """Up to three bytes replaced, or some taken away, put in or repeated."""
    damaged = bytearray(content)
    for _ in range(draw.randint(1, 3)):
        at, some = draw.randrange(len(damaged)), draw.randbytes(draw.choice((0, 1, 8)))
        damaged[at : at + draw.choice((0, 1, 1, len(some), 40))] = some
    return bytes(damaged)


def test_whatever_reads_damaged_records_goes_on(home):
    draw, paths = random.Random(0), [put(home, name) for name in NAMES]
    read = [(path, records.read(path)) for path in paths]
    whole = [(path, record.content, path.with_suffix(".npz")) for path, record in read]
    measured = put(home, MEASURED)
    growth = measured.read_text()
    for n in range(1, EDITS + 1):  # each under a seed of its own, with the key that belongs to it
        path, content, arrays = draw.choice(whole)
        key = records.schema.run_key(content["config"], content["data"]["sha256"], n)
        text, to = json.dumps(content | {"seed": n, "key": key}), path.with_stem(f"{content['model']}-seed{n}")
        to.write_text(edit(text, draw) if n % 2 else text)
        if arrays.exists():
            to.with_suffix(".npz").write_bytes(arrays.read_bytes())
        damaged = to if n % 2 else draw.choice([file for file in (to, to.with_suffix(".npz")) if file.exists()])
        if not n % 2:
            damaged.write_bytes(damage(damaged.read_bytes(), draw))
        if n % 4 == 0:
            measured.with_stem(f"damaged-{n}").write_text(edit(growth.replace("1x4-seed5", f"damaged-{n}"), draw))
    found, odd = records.records(), records.invalid_files()
    assert EDITS / 10 < len(found) < EDITS / 1.5 and len(found) + len(odd) > EDITS
    with pytest.warns(UserWarning, match="left out"):
        table = records.results()
    assert len(table) == len(found) and len(table.columns) > 40
    assert sum(level == "wrong" for level, *_ in doctor.records()) >= len(odd)
    display.provenance([*found, *records.measurements("growth")])
    evidence.badge(found)
    classifiers = [record for record in found if "confusion" in record["test"]]
    logits = read[0][1].predictions["logits"]
    for record in classifiers:
        assert np.array_equal(record.predictions["logits"], logits)
        statistics.matched_accuracy(record)
        evidence.milliseconds([record])
    for some in (classifiers[:20], classifiers[20:40]):
        figures.benchmark(some, label="a", caption="b")
        figures.accuracies({"c": some}, heading="a", label="b", caption="c")
        plt.close(figures.bubble(some))
        plt.close(figures.learning_curves(some))
    figures.loss(found)


@pytest.mark.parametrize("name", NAMES)
def test_settings_that_a_record_should_not_have_stop_nothing(name, home, monkeypatch):
    """They are well-formed, and no check of their form can refuse them."""
    path, experiment = put(home, name), name.partition("/")[0].removesuffix("-10pct").removesuffix("-report-reduced")
    content = records.read(path).content
    wanted = configure(experiment, content["model"], 9)
    for part, setting, value in product(("train", "data", "model"), ("steps", "letters", "num_layers"), ("x", [1], -1)):
        config = content["config"] | {part: content["config"][part] | {setting: value}}
        for data in (config["data"], {}, {"x": 1}):
            changed = content | {"config": config | {"data": data}, "asked": {"model": {}, "settings": {"seed": 1}}}
            changed["key"] = records.schema.run_key(changed["config"], content["data"]["sha256"], content["seed"])
            for task in (None, "os:system", "rtx_core.__main__:main", "study.plan:Study"):
                known = {name: value for name, value in content["code"].items() if name != "task"}
                record = records.Record(changed | {"code": known | ({"task": task} if task else {})}, path)
                records.check(record.content)
                record.stale_reason()
                cost.minutes(wanted, [record])
                retrain_advice(record)
                monkeypatch.setattr(golden.records, "records", lambda record=record: [record])
                assert "os:system" not in {run["task"] for run in golden.missing_runs({}).values()}


@pytest.mark.parametrize("name", ["../../x", "/x", "a\\b", "a\0b", "\n"])
def test_an_experiment_that_would_be_a_path_is_refused(name, home):
    """As exports are called by it."""
    with refused("at experiment"):
        records.read(put(home, "khop/1x4-seed6", experiment=name))


@pytest.mark.parametrize("content", [b"rtxDemo.files] = {", b"rtxDemo.files] = [];", b"\xff"])
def test_a_script_that_is_none_is_one_sentence(content, tmp_path):
    (tmp_path / "x.js").write_bytes(content)
    with refused("x.js is no script"):
        explorer.exported(tmp_path)


def test_no_task_of_a_record_is_called():
    with refused("which is none"):
        golden._task("rtx_core.__main__:main", "{}", 1, 1)


def test_a_damaged_cache_is_never_served(tmp_path):
    draw, path = random.Random(0), tmp_path / "x.npz"
    whole = {"a": np.arange(30), "b": np.ones((2, 3), dtype=np.float32)}
    content = dump_arrays(whole, "key")
    for _ in range(EDITS):
        path.write_bytes(damage(content, draw))
        with suppress(InvalidFile):
            again = read_arrays(path, key="key")
            assert again.keys() == whole.keys() and all(np.array_equal(again[name], whole[name]) for name in whole)
