"""Runs on another machine: packed, made there without a network, stopped and continued, and brought home."""

import json
import os
import subprocess
import sys
import tarfile
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from factory import tiny

import rtx_core as rtx
from rtx_core import __main__, models, paper, run, run_language
from rtx_core.corpora import characters, stories
from rtx_core.corpora.dataset import dataset
from rtx_core.errors import RtxError
from rtx_core.evaluation import generation
from rtx_core.evaluation import stories as writing
from rtx_core.paths import REPOSITORY, home
from rtx_core.travel import bundle, carried
from rtx_core.travel import pack as packing
from rtx_core.travel.bring import bring
from rtx_core.travel.pack import pack

PLAN = (
    paper.Study("sst2"),
    paper.Study("shakespeare", {"models": ["gpt-1"], "recipe": "report"}),
    paper.Study("tinystories", {"models": ["control"]}),
)
SMALL = {"hidden_size": 16, "num_heads": 2, "intermediate_size": 32}
# Before everything else in each process of the other machine: no network, no package that it can do without, small models.
ELSEWHERE = f"""
import socket, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {{"jsonschema", "pyarrow", "datasets", "huggingface_hub", "papermill", "nbclient", "matplotlib", "IPython"}}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

def no_network(*_, **__):
    raise OSError("there is no network here")

sys.meta_path.insert(0, Missing())
socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = no_network
if "rtx_core.travel.away" in sys.orig_argv:
    from dataclasses import replace
    import rtx_core.evaluation.latency as latency
    from rtx_core import models
    for name in ("baseline", "recurrent", "gpt", "control"):
        kind, config = models.MODELS[name]
        models.MODELS[name] = kind, replace(config, num_layers=2, vocab_size=4096, **{SMALL})
    from rtx_core.evaluation import generation, stories
    latency.TIMED, latency.WARM_UP, generation.SAMPLED, generation.REPEATS, stories.LONGEST, stories.LENGTHS = 3, 1, 20, 2, 5, (8,)
"""


@pytest.fixture(autouse=True)
def small(monkeypatch):
    tiny(monkeypatch)
    for name in ("gpt", "control"):
        kind, config = models.MODELS[name]
        monkeypatch.setitem(models.MODELS, name, (kind, replace(config, num_layers=2, vocab_size=4096, **SMALL)))
    monkeypatch.setattr(characters, "EMBEDDED_CHARACTERS", 3000)
    monkeypatch.setattr(stories, "EMBEDDED", {"train": 40, "validation": 15})
    monkeypatch.setattr(paper, "PLAN", PLAN)


def unpacked(folder, *words):
    """A bundle of the plan on the embedded corpus, unpacked as one would."""
    pack(["--source", "embedded", "-o", str(folder / "bundle.tar"), *words])
    with tarfile.open(folder / "bundle.tar") as tar:
        tar.extractall(folder, filter="data")
    return folder / bundle.BUNDLE


def there(root, *words) -> subprocess.CompletedProcess:
    """`python -m rtx_core …` in the unpacked bundle, on a machine with little on it."""
    (root.parent / "site").mkdir(exist_ok=True)
    (root.parent / "site" / "sitecustomize.py").write_text(ELSEWHERE)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RTX_")} | {"PYTHONPATH": f"{root.parent / 'site'}:{root}"}
    command = [sys.executable, "-m", "rtx_core", *words]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=300)


def short_samples(patch) -> None:
    """As in `ELSEWHERE`."""
    for module, name, value in ((generation, "SAMPLED", 20), (generation, "REPEATS", 2), (writing, "LONGEST", 5), (writing, "LENGTHS", (8,))):
        patch.setattr(module, name, value)


def numbers(record) -> dict:
    """What neither a clock nor the machine's load decides."""
    kept = {k: record[k] for k in ("key", "experiment", "model", "seed", "protocol", "config", "data", "parameters", "selected")}
    history = [{k: v for k, v in row.items() if k != "seconds"} for row in record["history"]]
    return kept | {"test": record["test"], "history": history, "fingerprints": record["code"]["fingerprints"]}


def test_runs_travel_and_come_home(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(packing, "code", lambda: {"commit": "c0ffee", "clean": True})
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    root = unpacked(tmp_path)
    assert "MiB, pending runs: 4.  There: tar xf bundle.tar && cd rtx-bundle && python -m rtx_core away." in capsys.readouterr().out
    done = there(root, "away", "--jobs", "2", "-o", str(tmp_path / "records.tar"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of 4 runs are recorded" in done.stdout and done.stderr == ""
    assert not (root / "results").exists()  # the runs are synthetic
    monkeypatch.setenv("RTX_HOME", str(tmp_path / "fresh"))
    bring([str(tmp_path / "records.tar")])
    said = capsys.readouterr().out
    assert said.count("\n") == 5 and "4 brought.  Next: jupyter-book build book" in said and "data not at hand" not in said
    for one in paper.runs(source="embedded"):
        assert one.state == "recorded" and one.found["code"]["commit"] == "c0ffee"
        assert one.record.read_bytes() == (root / one.record.relative_to(home())).read_bytes()
    bring([str(tmp_path / "records.tar")])
    assert capsys.readouterr().out.startswith("0 brought, 4 were here already")

    short_samples(monkeypatch)
    brought = {one.name: one.found for one in paper.runs(source="embedded")}
    monkeypatch.setenv("RTX_HOME", str(tmp_path / "again"))  # the same runs, made at home
    for one in paper.runs(source="embedded"):
        module = run if one.settings.experiment == "sst2" else run_language
        mine, theirs = numbers(module.run(one.settings, one.model, one.seed)), numbers(brought[one.name])
        assert mine["test"].pop("loss") == pytest.approx(theirs["test"].pop("loss"), rel=1e-4)
        assert {k: mine[k] for k in mine.keys() - {"test", "history", "selected"}} == {k: theirs[k] for k in mine.keys() - {"test", "history", "selected"}}


def test_bundle_is_the_same_for_the_same_and_knows_what_is_pending(tmp_path):
    words = ["--source", "embedded", "--only", "sst2-trainrows64-epochs1"]
    for name in ("a", "b"):
        pack([*words, "-o", str(tmp_path / name)])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with tarfile.open(tmp_path / "a") as tar:
        assert [entry.mtime for entry in tar] == [0] * len(tar.getnames())
        pending = json.load(tar.extractfile(f"{bundle.BUNDLE}/pending.json"))
        assert f"{bundle.BUNDLE}/requirements.lock" in tar.getnames() and f"{bundle.BUNDLE}/rtx_core/run.py" in tar.getnames()
    assert [(one["model"], one["seed"]) for one in pending] == [("baseline", 0), ("recurrent", 0)]
    asked = rtx.settings("sst2", pending[0]["given"])
    run.run(asked, "baseline", 0)
    assert [one.model for one in packing.pending_runs(False, "embedded", ["sst2-trainrows64-epochs1"])] == ["recurrent"]
    run.run(asked, "recurrent", 0)
    with pytest.raises(RtxError, match=r"^Nothing is pending: every one of these runs is recorded; .*\.$"):
        pack(words)


def test_unknown_variant_and_uncommitted_code_are_said(tmp_path, monkeypatch, capsys):
    with pytest.raises(RtxError, match=r"^Unknown variant 'sst2-trainrow64': did you mean 'sst2-trainrows64-epochs1'\?"):
        pack(["--source", "embedded", "--only", "sst2-trainrow64"])
    monkeypatch.setattr(packing, "code", lambda: {"commit": "c0ffee", "clean": False})
    monkeypatch.setattr(paper, "PLAN", PLAN[1:2])
    pack(["--source", "embedded", "-o", str(tmp_path / "bundle.tar")])
    assert "The code is not that of a commit: the records will say so." in capsys.readouterr().out
    with pytest.raises(RtxError, match=r"bundle\.tar cannot be written .*; make room, or name another file with -o\.$"):
        pack(["--source", "embedded", "-o", str(tmp_path / "nowhere" / "bundle.tar")])


def test_carried_data_is_the_data(tmp_path):
    asked = [one.settings for one in paper.runs(source="embedded")]
    parts, tokenizer = stories.tokenised("embedded")
    text, original = characters.text("embedded"), dataset(**asked[0].data)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((run, "dataset"), (stories, "tokenised"), (characters, "text")):
            patch.setattr(module, name, getattr(module, name))  # put back afterwards
        for one in asked:
            name, content = carried.of(one)
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(content())
        carried.install(tmp_path)
        assert characters.text("embedded") == text
        again, same = stories.tokenised("embedded")
        read = run.dataset(**asked[0].data)
        with pytest.raises(RtxError, match=r"^The bundle holds no dataset for .*\"max_length\": 64.*; pack that run too\.$"):
            run.dataset(**asked[0].data | {"max_length": 64})
    assert same.to_str() == tokenizer.to_str() and same.encode("<story>").ids == tokenizer.encode("<story>").ids != [stories.STORY]
    for name, part in parts.items():
        assert np.array_equal(again[name].ids, part.ids) and again[name].ids.dtype == part.ids.dtype
        assert np.array_equal(again[name].starts, part.starts) and again[name].bytes == part.bytes
    assert read.facts == original.facts and read.classes == original.classes
    for part in carried.PARTS:
        ours, theirs = vars(getattr(read, part)), vars(getattr(original, part))
        assert all(np.array_equal(ours[k], theirs[k]) and ours[k].dtype == theirs[k].dtype for k in ours)


# -- there ------------------------------------------------------------------------------------------------------------


def test_damaged_bundle_is_refused_before_any_run(tmp_path):
    root = unpacked(tmp_path, "--only", "shakespeare-report-reduced-steps2-blocksize64")
    with (root / "rtx_core" / "run.py").open("a") as file:
        file.write("# changed\n")
    done = there(root, "away")
    assert done.returncode == 1 and done.stderr == "The bundle is damaged: rtx_core/run.py is not what its manifest says; unpack it anew.\n"
    (root / bundle.MANIFEST).unlink()
    assert there(root, "away").stderr.startswith("rtx-bundle/ is no unpacked bundle (it has no readable MANIFEST.json);")


def test_wheels_are_asked_of_pip_for_the_platform(tmp_path, monkeypatch):
    asked = []

    def pip(command, **_):
        asked.extend(command)
        (tmp_path / "numpy-1-any.whl").write_bytes(b"wheel")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(packing.subprocess, "run", pip)
    assert [path.name for path in packing.wheels(tmp_path, ["manylinux_2_28_x86_64"], "3.12")] == ["numpy-1-any.whl"]
    assert ["--platform", "manylinux_2_28_x86_64", "--python-version", "3.12"] == asked[asked.index("--platform") :][:4]
    assert "torch" not in asked and "jsonschema" in asked and str(REPOSITORY / "requirements.lock") in asked
    monkeypatch.setattr(packing.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1, stderr="a\nERROR: none\n"))
    with pytest.raises(RtxError, match=r"^pip found no wheels for plan9 and Python 3\.12 \(ERROR: none\); name other platforms, or leave --wheels out\.$"):
        packing.wheels(tmp_path, ["plan9"], "3.12")


def test_commands_are_there():
    for name in ("pack", "away", "bring"):
        with pytest.raises(SystemExit) as end:
            __main__.main([name, "--help"])
        assert end.value.code == 0
