"""A trained model leaves the project and answers as before: the exported folder, and its ONNX form."""

import json

import numpy as np
import pytest
import torch

import rtx_core as rtx
from rtx_core.errors import RtxError
from rtx_core.experiments import export
from rtx_core.models.packed import Packed

GIVEN = {"source": "embedded", "train_rows": 64, "epochs": 1, "learning_rate": 1e-3}
NAME = "sst2-trainrows64-epochs1-learningrate0.001"
TEXTS = ["a lovely film", "dull , slow and far too long", "fine"]


@pytest.fixture(autouse=True)
def small(small_models):
    """Seconds."""


def exported(home, model="recurrent", name=NAME):
    return export.export(f"{name}/{model}-seed0", str(home / "out"), source="embedded")


def texts_of(lengths) -> list[np.ndarray]:
    random = np.random.RandomState(0)
    return [random.randint(1, 97, size=n) for n in lengths]


def padded(texts) -> tuple[np.ndarray, np.ndarray]:
    """(ids, mask), int64, zeros after each text."""
    ids = np.zeros((len(texts), max(map(len, texts))), dtype=np.int64)
    for row, text in zip(ids, texts):
        row[: len(text)] = text
    return ids, (ids > 0).astype(np.int64)


def test_an_exported_folder_answers_as_the_run_does(home):
    rtx.run("sst2", "recurrent", num_layers=1, **GIVEN)
    name = "sst2-trainrows64-numlayers1-epochs1-learningrate0.001"
    folder = exported(home, name=name)
    files = {path.name for path in folder.iterdir()}
    assert files - {"model.onnx"} == {"README.md", "config.json", "model.safetensors", "tokenizer.json"}
    assert json.loads((folder / "config.json").read_text())["config"]["architecture"] == "recurrent"
    card = (folder / "README.md").read_text()
    assert card.startswith("---\n") and ("model.onnx" in card) == ("model.onnx" in files)
    here = rtx.load(f"{name}/recurrent-seed0", source="embedded").classify(TEXTS, passes=True)
    there = rtx.load(folder)
    assert there.classify((text for text in TEXTS), passes=True).equals(here)
    for wrong in (None, 5, [3], b"a", here, ["\ud83d"], []):
        with pytest.raises(RtxError, match="expected|at least one"):
            there.classify(wrong)
    there.model.about["classes"] = ["text", "label"]
    assert list(there.classify("a"))[2:] == ["probability of text", "probability of label"]
    with pytest.raises(RtxError, match="not empty"):
        exported(home, name=name)
    if "model.onnx" in files:
        answers_as_packed(folder)


def answers_as_packed(folder):
    """The ONNX form of an exported model, for any batch and length."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    opsets = onnx.load(folder / "model.onnx").opset_import
    assert [one.version for one in opsets if one.domain == ""] == [export.OPSET]
    session = runtime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    model = rtx.load_model(folder / "model.safetensors")
    for lengths in ([5], [3, 12, 7], [export.LONGEST, 1], [40] * 9):
        texts = texts_of(lengths)
        ids, mask = padded(texts)
        (found,) = session.run(["logits"], {"input_ids": ids, "attention_mask": mask})
        with torch.inference_mode():
            expected = model(Packed.from_sequences(texts)).numpy()
        assert found.shape == (len(texts), 2) and np.abs(found - expected).max() < 1e-4
    assert np.ptp(expected[:, 0]) > 1e-3  # texts differ, so that a constant would not pass


@pytest.mark.parametrize("residual", ["code", "paper"])
def test_the_padded_form_is_the_packed_one(residual):
    model = rtx.build_model("recurrent", seed=0, vocab_size=97, residual=residual, num_passes=3).eval()
    texts = texts_of([3, 12, 7])
    with torch.inference_mode():
        found = export.Padded(model).eval()(*map(torch.from_numpy, padded(texts)))
        expected = model(Packed.from_sequences(texts))
    assert torch.allclose(found, expected, atol=1e-5) and np.ptp(expected[:, 0].numpy()) > 1e-3


def test_what_cannot_classify_says_so(home):
    (home / "empty").mkdir()
    with pytest.raises(RtxError, match=r"empty holds no model\.safetensors"):
        rtx.load(str(home / "empty"))
    given = {"source": "embedded", "steps": 2, "batch_size": 2, "block_size": 16, "eval_every": 1}
    run = rtx.run("shakespeare", "gpt-1", **given)
    folder = exported(home, "gpt-1", run.config.name)
    assert not (folder / "model.onnx").exists() and "model.onnx" not in (folder / "README.md").read_text()
    with pytest.raises(RtxError, match="has no classes"):
        rtx.load(str(folder)).classify(TEXTS)
