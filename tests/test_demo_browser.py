"""Somebody types a text into the page *Try it*, opened from disk: an opt-in test, where there is a Chromium."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request

import numpy as np
import pytest
import torch
from test_demo import DEMO, TEXTS, ids_of, spread
from tornado.websocket import websocket_connect

from rtx_core import build_model
from rtx_core.data.synthetic import reviews
from rtx_core.data.tokens import tokenize, trained_vocabulary
from rtx_core.evaluate import bag_of_words, demo
from rtx_core.export_demo import encoder_arrays, script, words_arrays
from rtx_core.models.packed import Packed

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not os.environ.get("RTX_LONG"), reason="set RTX_LONG=1 to run it"),
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium"),
]
PAGE = """<!doctype html><meta charset="utf-8"><title>Try it</title>
<div class="rtx-try" data-demos="tiny"><ul><li>i regret the ending</li></ul></div>
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


class Browser:
    """A page in Chromium, driven over the DevTools protocol."""

    def __init__(self, folder):
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "about:blank"]
        self.process = subprocess.Popen(
            [CHROMIUM, f"--user-data-dir={folder}", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.port_file, self.sent = folder / "DevToolsActivePort", 0

    async def __aenter__(self):
        for _ in range(300):
            if self.port_file.exists() and self.port_file.read_text().count("\n"):
                break
            await asyncio.sleep(0.1)
        port = self.port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as listed:
            (page,) = [target for target in json.load(listed) if target["type"] == "page"]
        self.socket = await websocket_connect(page["webSocketDebuggerUrl"], max_message_size=2**26)
        return self

    async def __aexit__(self, *_):
        self.socket.close()
        self.process.terminate()
        self.process.wait()

    async def send(self, method: str, **parameters):
        self.sent += 1
        await self.socket.write_message(json.dumps({"id": self.sent, "method": method, "params": parameters}))
        while True:
            answer = json.loads(await self.socket.read_message())
            if answer.get("id") == self.sent:
                return answer["result"]

    async def evaluate(self, expression: str):
        answer = await self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until(self, expression: str, seconds: float = 60):
        end = time.monotonic() + seconds
        while not await self.evaluate(expression):
            assert time.monotonic() < end, f"{expression} is not true after {seconds} s"
            await asyncio.sleep(0.1)


DONE = "document.querySelector('.rtx-try')?.dataset.state === 'done'"


def shares(model, tokenizer, text: str, passes: int) -> np.ndarray:
    model.config = model.config.but(num_passes=passes)
    with torch.inference_mode():
        return model(Packed.from_sequences(ids_of(tokenizer, [text]))).softmax(-1)[0].numpy()


def read(shown: list[str]) -> list[float]:
    return [float(re.search(r"([\d.]+) %", text)[1]) / 100 for text in shown]


def test_a_visitor_types_a_text_and_opens_a_link(site, tmp_path):
    address, model, tokenizer = site
    bars = "[...document.querySelectorAll('.rtx-panel section:first-child .rtx-bars li')].map(x => x.textContent)"

    async def visit():
        async with Browser(tmp_path / "profile") as browser:
            await browser.send("Page.navigate", url=address)
            await browser.until("document.querySelector('.rtx-try')?.dataset.state === 'idle'")
            assert (
                await browser.evaluate("document.scripts.length") == 3
            )  # nothing heavy before the first use
            await browser.evaluate("document.querySelector('.rtx-try textarea').focus()")
            text = "<b>the humor</b> , you will regret"
            await browser.send("Input.insertText", text=text)
            await browser.until(DONE)
            np.testing.assert_allclose(
                read(await browser.evaluate(bars)), shares(model, tokenizer, text, 2), atol=6e-4
            )
            assert await browser.evaluate("document.querySelectorAll('.rtx-try b').length") == 0
            link = await browser.evaluate("document.querySelector('.rtx-try a').href")
            await browser.send("Page.navigate", url=link.replace("passes=2", "passes=5"))
            await browser.until("document.querySelector('.rtx-try output').value.startsWith('5')")
            await browser.until(DONE)
            np.testing.assert_allclose(
                read(await browser.evaluate(bars)), shares(model, tokenizer, text, 5), atol=6e-4
            )
            current = "document.querySelector('.rtx-passes [aria-current]').textContent"
            assert (await browser.evaluate(current)).startswith("5")

    asyncio.run(visit())
