"""A trained model leaves the project and answers as before, as an exported folder."""

import json

import pytest

import rtx_core as rtx
from rtx_core.errors import RtxError
from rtx_core.experiments import export

QUICK = {"source": "embedded", "train_rows": 64, "epochs": 1, "learning_rate": 1e-3}
TEXTS = ["a lovely film", "dull , slow and far too long", "fine"]


pytestmark = pytest.mark.usefixtures("small_models")


def exported(home, model, name):
    return export.export(f"{name}/{model}-seed0", str(home / "out"), source="embedded")


def test_an_exported_folder_answers_as_the_run_does(home):
    rtx.run("sst2", "recurrent", num_layers=1, **QUICK)
    name = "sst2-trainrows64-numlayers1-epochs1-learningrate0.001"
    folder = exported(home, "recurrent", name)
    files = {path.name for path in folder.iterdir()}
    assert files == {"README.md", "config.json", "model.safetensors", "tokenizer.json"}
    assert json.loads((folder / "config.json").read_text())["config"]["architecture"] == "recurrent"
    assert (folder / "README.md").read_text().startswith("---\n")
    here = rtx.load(f"{name}/recurrent-seed0", source="embedded").classify(TEXTS, passes=True)
    there = rtx.load(folder)
    assert there.classify((text for text in TEXTS), passes=True).equals(here)
    for wrong in (None, 5, [3], b"a", here, ["\ud83d"], []):
        with pytest.raises(RtxError, match="expected|at least one"):
            there.classify(wrong)
    there.model.about["classes"] = ["text", "label"]
    assert list(there.classify("a"))[2:] == ["probability of text", "probability of label"]
    with pytest.raises(RtxError, match="not empty"):
        exported(home, "recurrent", name)


def test_what_cannot_classify_says_so(home):
    (home / "empty").mkdir()
    with pytest.raises(RtxError, match=r"empty holds no model\.safetensors"):
        rtx.load(str(home / "empty"))
    given = {"source": "embedded", "steps": 2, "batch_size": 2, "block_size": 16, "eval_every": 1}
    run = rtx.run("shakespeare", "gpt-1", **given)
    folder = exported(home, "gpt-1", run.config.name)
    with pytest.raises(RtxError, match="has no classes"):
        rtx.load(str(folder)).classify(TEXTS)
