"""Somebody types a text into the page *Try it*, opened from disk: an opt-in test, where there is a Chromium."""
# ruff: noqa: F811  (fixtures)

import re
import shutil

import numpy as np
import pytest
import torch
from chromium import OPT_IN, all_of, driver, one, wait  # noqa: F401
from test_demo import DEMO, TEXTS, ids_of, spread

from rtx_core import build_model
from rtx_core.data.synthetic import reviews
from rtx_core.data.tokens import tokenize, trained_vocabulary
from rtx_core.evaluate import bag_of_words
from rtx_core.models.packed import Packed
from study.demo import measure as demo
from study.demo.export import encoder_arrays, script, words_arrays

pytestmark = OPT_IN
PAGE = """<!doctype html><meta charset="utf-8"><title>Try it</title>
<div class="rtx-try" data-demos="tiny"><p>One:</p><ul><li data-meant="negative">i regret the ending</li></ul></div>
<script src="demo/try-it.js"></script>
<div class="rtx-loop"></div><script src="demo/runs.js"></script><script src="demo/loop-drawn.js"></script>"""


@pytest.fixture
def site(tmp_path):
    """The page with a small model of random weights, and that model."""
    frame = reviews("movie", 200, seed=3, style="phrase")
    tokenizer = trained_vocabulary([*TEXTS, "< > b /"])
    train = tokenize(frame, tokenizer, 128)
    met = np.unique(train.ids)
    pipeline, _ = bag_of_words.fit(train, train)
    sizes = {"hidden_size": 32, "num_heads": 2, "intermediate_size": 48}
    model = spread(build_model("recurrent", seed=0, vocab_size=tokenizer.get_vocab_size(), **sizes))
    about = {"classes": ["negative", "positive"], "max_length": 128, "config": model.config.model_dump()}
    about |= {"record": "tiny/recurrent-seed0", "key": "0" * 24, "idf_unmet": 6.3}
    shutil.copytree(DEMO, tmp_path / "demo", ignore=shutil.ignore_patterns("models"))
    (tmp_path / "demo" / "models").mkdir()
    pieces = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    files = {
        "models/tiny-recurrent.js": script("tiny-recurrent", about, encoder_arrays(model, met)),
        "models/tiny-words.js": script("tiny-words", about, words_arrays(pipeline, met)),
        "models/vocabulary.js": script("vocabulary", {"pieces": pieces}, {}),
        "runs.js": b"var rtxDemo = rtxDemo || {}; rtxDemo.runs = [];",
    }
    for name, content in files.items():
        (tmp_path / "demo" / name).write_bytes(content)
    (tmp_path / "page.html").write_text(PAGE)
    return (tmp_path / "page.html").as_uri(), demo.reduced(model, met), tokenizer


def shares(model, tokenizer, text: str, passes: int) -> np.ndarray:
    model.config = model.config.replace(num_passes=passes)
    with torch.inference_mode():
        return model(Packed.from_sequences(ids_of(tokenizer, [text]))).softmax(-1)[0].numpy()


def test_a_visitor_types_a_text_and_opens_a_link(site, driver):
    address, model, tokenizer = site
    text = "<b>the humor</b> , you will regret"

    def shows(state: str) -> None:
        wait(driver, lambda d: one(d, ".rtx-try").get_attribute("data-state") == state)

    def agrees(passes: int) -> None:
        shows("done")
        bars = all_of(driver, ".rtx-panel section:first-child .rtx-bars li")
        shown = [re.search(r"([\d.]+) %", bar.get_attribute("textContent"))[1] for bar in bars]
        expected = shares(model, tokenizer, text, passes)
        np.testing.assert_allclose(np.array(shown, dtype=float) / 100, expected, atol=6e-4)

    driver.get(address)
    shows("idle")
    assert len(all_of(driver, "script")) == 3  # nothing heavy before the first use
    assert one(driver, ".rtx-examples").text.startswith("One:")
    driver.execute_script("arguments[0].focus()", one(driver, ".rtx-try textarea"))
    driver.execute_cdp_cmd("Input.insertText", {"text": text})
    agrees(passes=2)
    assert all_of(driver, ".rtx-try b") == []
    driver.get(one(driver, ".rtx-try a").get_attribute("href").replace("passes=2", "passes=5"))
    wait(driver, lambda d: one(d, ".rtx-try output").get_property("value").startswith("5"))
    agrees(passes=5)
    assert one(driver, ".rtx-passes [aria-current]").get_attribute("textContent").startswith("5")
