"""The page *Try it*: its JavaScript, run by V8 alone, gives what tokenizers, torch and scikit-learn give."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from py_mini_racer import MiniRacer
from reference import disturbed
from torch.utils.flop_counter import FlopCounterMode

from rtx_core import build_model
from rtx_core.data.preprocess import clean
from rtx_core.data.synthetic import reviews
from rtx_core.data.tokens import tokenize, trained_vocabulary
from rtx_core.models.build import count_parameters
from rtx_core.models.packed import Packed
from rtx_core.paths import REPOSITORY
from study.analysis import cache
from study.analysis.formulas import size_of
from study.demo import measure as demo
from study.demo.export import encoder_arrays, script, words_arrays
from study.measurements import bag_of_words
from study.measurements.attention import cls_attention
from study.pages import build_one

DEMO = REPOSITORY / "book" / "demo"
TEXTS = reviews("movie", 200, seed=3, style="phrase")["text"].tolist()
HOSTILE = [
    "",
    " \t\n ",
    "<b>A GOOD</b> film!!! See http://a.b/c ...  <br />",
    "http:::://a <!-- not\nme --> <3 </ // << >> _ __ ___",
    "Ünïcödé İstanbul ΣΑΣ ǅ straße ﬁne 𝔘𝔫𝔦 e\u0301\u0301",
    "日本語の映画 한국어 עִבְרִית العربية ไทย 🎬🎬🎬 👩\u200d👧",
    "zero\u200bwidth soft\xadhyphen nul\x00 bell\x07 next\x85line nbsp\xa0 bom\ufeff line\u2028break \ufffd",
    "<script>alert('x')</script> &lt;b&gt; \\u003c \"'`$+|~^",
    "¿?¡! — – ‘’ “” … ،؟ 。、",
    "a" * 99 + " " + "b" * 101 + " " + "é" * 100,
    "[CLS] [SEP] [PAD] [MASK] [UNK] ##s",
    "film " * 200,
]
PARTS = ["http://", "www.", "<br />", "!!!", "film", "good"]
LETTERS = st.sampled_from([*"aB <>/!.,:_-\n\t\x1c\x85é́ßİ日🎬'", *PARTS])


def v8(*files) -> MiniRacer:
    context = MiniRacer()
    for file in files:
        context.eval(file if isinstance(file, str) else file.read_text(encoding="utf-8"))
    return context


def ask(context: MiniRacer, function: str, argument: object):
    """What a function of the page gives for each element of a list."""
    return json.loads(context.eval(f"JSON.stringify({json.dumps(argument)}.map({function}))"))


COUNTS = st.tuples(st.integers(1, 40), st.integers(1, 8), st.integers(1, 64), st.integers(2, 200_000), st.booleans())


@settings(max_examples=40, deadline=None)
@given(COUNTS)
def test_the_calculator_counts_as_the_library_does(shape):
    layers, passes, heads, vocabulary, injected = shape
    (counted,) = ask(
        v8(DEMO / "sizes.js"), "one => decoder(...one)", [[layers, passes, 32 * heads, vocabulary, injected]]
    )
    config = build_one.decoder(layers, passes, 32 * heads, vocabulary).replace(injection=("none", "linear")[injected])
    assert (counted["weights"], counted["inLayers"]) == (size_of(config)["total"], size_of(config)["layers"])
    assert counted["work"] == build_one.work(config)
    assert 2 * counted["cache"] == cache.size(layers, passes, 32 * heads, 2)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 3000), st.integers(2, 200_000), st.integers(1, 40), st.integers(1, 8))
def test_the_calculator_finds_the_widest_that_fits(budget, vocabulary, layers, passes):
    asked = {"budget": budget, "vocabulary": vocabulary, "layers": layers, "passes": passes}
    (found,) = ask(v8(DEMO / "sizes.js"), "candidates", [asked])
    shapes = (layers, 1, "none"), (layers, passes, "none"), (layers, passes, "linear"), (layers * passes, 1, "none")
    for one, (depth, runs, injection) in zip(found, shapes):
        wider = build_one.decoder(depth, runs, (one["width"] if one else 0) + 32, vocabulary).replace(
            injection=injection
        )
        assert size_of(wider)["total"] > 1e6 * budget
        assert not one or one["weights"] <= 1e6 * budget


@pytest.fixture(scope="module")
def tokenizer():
    return trained_vocabulary([*TEXTS, "film good a b . ! < > ' : [ ] cls sep", "é è ñ ##"])


def cutter(tokenizer, length: int = 128) -> str:
    pieces = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    return f"var cut = rtxDemo.wordPiece({json.dumps(pieces)}); var ids = (text) => cut.encode(text, {length}).ids;"


def ids_of(tokenizer, texts, length: int = 128) -> list[list[int]]:
    tokenizer.enable_truncation(length)
    return [encoded.ids for encoded in tokenizer.encode_batch([clean(text) for text in texts])]


@pytest.mark.parametrize("length", [3, 16, 128])
def test_hostile_texts_are_cut_as_the_library_cuts_them(tokenizer, length):
    found = ask(v8(DEMO / "wordpiece.js", cutter(tokenizer, length)), "ids", HOSTILE)
    assert dict(zip(HOSTILE, found)) == dict(zip(HOSTILE, ids_of(tokenizer, HOSTILE, length)))


@settings(deadline=None, max_examples=40)
@given(texts=st.lists(st.lists(LETTERS, max_size=30).map("".join), min_size=1, max_size=20))
def test_any_mixture_is_cut_as_the_library_cuts_it(tokenizer, texts):
    assert ask(v8(DEMO / "wordpiece.js", cutter(tokenizer)), "ids", texts) == ids_of(tokenizer, texts)


def test_words_know_their_pieces_and_what_was_cut_off(tokenizer):
    context = v8(DEMO / "wordpiece.js", cutter(tokenizer))
    (found,) = ask(context, "(text) => cut.encode(text, 5)", ["A Good film, zz!"])
    words = [(word["text"], word["from"], word["to"]) for word in found["words"]]
    assert words == [("a", 1, 2), ("good", 2, 3), ("film", 3, 4)] and len(found["ids"]) == 5
    assert found["cut"] == len(ids_of(tokenizer, ["A Good film, zz!"])[0]) - 5


@pytest.fixture(scope="module")
def encoder(tokenizer):
    small = {"hidden_size": 32, "num_heads": 2, "intermediate_size": 48}
    model = build_model("recurrent", seed=0, vocab_size=tokenizer.get_vocab_size(), **small)
    return disturbed(model, 0.2).eval()


@torch.inference_mode()
def torch_logits(model, sequences, passes: int) -> np.ndarray:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "config", model.config.replace(num_passes=passes))
        return model(Packed.from_sequences(sequences)).numpy()


RUN = """
var E = rtxDemo.forward().encoder;
function run(model, ids, passes) {
  var s = E.start(model, ids);
  return Array.from({ length: passes }, () => E.pass(model, s));
}
"""


def page(model, tokenizer, met, int8: bool) -> MiniRacer:
    header = {"config": model.config.model_dump(), "classes": ["negative", "positive"]}
    file = script("demo", header, encoder_arrays(model, met, int8)).decode()
    ready = "var model = E.open(rtxDemo.files.demo);"
    return v8(DEMO / "wordpiece.js", DEMO / "forward.js", file, cutter(tokenizer), RUN, ready)


@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
def test_the_page_computes_what_torch_does(encoder, tokenizer, int8):
    sequences = ids_of(tokenizer, TEXTS)
    met = np.unique(np.concatenate(sequences))
    found = ask(page(encoder, tokenizer, met, int8), "(text) => run(model, ids(text), 3)", TEXTS)
    stored = demo.reduced(encoder, met) if int8 else encoder
    for n in (1, 2, 3):
        ours = np.array([passes[n - 1]["logits"] for passes in found])
        trained = torch_logits(encoder, sequences, n)
        np.testing.assert_allclose(ours, torch_logits(stored, sequences, n), atol=2e-4)
        assert (ours.argmax(1) == trained.argmax(1)).mean() >= 0.99
        assert np.abs(ours - trained).mean() < (0.05 if int8 else 1e-4) * trained.std()
    weights, probabilities = cls_attention(stored, sequences[0])  # of three layers, twice
    np.testing.assert_allclose(found[0][1]["attention"], weights[3:].mean((0, 1)), atol=1e-5)
    np.testing.assert_allclose(found[0][1]["probabilities"], probabilities, atol=1e-5)


def test_a_piece_that_training_never_met_counts_as_zeros(encoder, tokenizer):
    sequences = ids_of(tokenizer, TEXTS[:20])
    met = np.unique(np.concatenate(sequences))[::2]
    found = ask(page(encoder, tokenizer, met, int8=True), "(ids) => run(model, ids, 2)[1].logits", sequences)
    np.testing.assert_allclose(found, torch_logits(demo.reduced(encoder, met), sequences, 2), atol=2e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_pages_bag_of_words_is_scikit_learns(tokenizer, classes):
    frame = pd.DataFrame({"text": TEXTS, "label": np.arange(len(TEXTS)) % classes})
    train, test = (tokenize(part, tokenizer, 128) for part in (frame[:120], frame[120:]))
    pipeline, logits = bag_of_words.fit(train, test)
    met = np.unique(train.ids)
    header = {"idf_unmet": float(np.log(1 + len(train)) + 1)}
    file = script("words", header, words_arrays(pipeline, met)).decode()
    context = v8(DEMO / "forward.js", file, "var bag = rtxDemo.bagOfWords(rtxDemo.files.words);")
    sequences = [test.ids[a:b].tolist() for a, b in zip(test.offsets, test.offsets[1:])]
    found = ask(context, "(ids) => bag.classify(ids)", sequences)
    np.testing.assert_allclose([one["probabilities"] for one in found], np.exp(logits), atol=1e-5)
    assert not all(np.isin(ids, met).all() for ids in sequences)  # training never met some


@pytest.mark.parametrize(("width", "layers", "passes"), [(64, 2, 3), (128, 1, 1), (192, 3, 2)])
def test_what_a_shape_costs_is_what_torch_counts(width, layers, passes):
    function = f"(passes) => rtxDemo.cost({width}, {layers}, passes, {{vocabulary: 99}})"
    (cost,) = ask(v8(DEMO / "loop-drawn.js"), function, [passes])
    sizes = {"hidden_size": width, "num_heads": width // 64, "intermediate_size": 4 * width, "vocab_size": 99}
    model = build_model("recurrent", seed=0, num_layers=layers, num_passes=passes, **sizes).eval()
    counted = count_parameters(model)
    assert cost["parameters"] == counted["total"] and cost["weights"] == 4 * counted["total"]
    assert cost["embedding"] == 99 * width
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        model(Packed.from_sequences([list(range(16))]), rows_only=False)
    attention = 4 * 16 * 16 * width * layers * passes  # two products of 16 × 16 × width, which the counter cannot see
    assert cost["flops"] == counter.get_total_flops() + attention


def test_the_nearest_runs_come_first():
    runs = [{"width": w, "layers": n, "passes": r} for w, n, r in [(384, 6, 1), (256, 3, 2), (256, 3, 3)]]
    (found,) = ask(v8(DEMO / "loop-drawn.js"), "(runs) => rtxDemo.nearest(runs, 256, 3, 4, 2)", [runs])
    assert [run["passes"] for run in found] == [3, 2]


def committed(name: str) -> MiniRacer:
    """A model of the repository; `shares(text)` are its probabilities after each of six passes."""
    models = DEMO / "models"
    ready = f"""
    var cut = rtxDemo.wordPiece(rtxDemo.files.vocabulary.pieces), file = rtxDemo.files["{name}"], model = E.open(file);
    var shares = (text) => run(model, cut.encode(text, file.max_length).ids, 6).map((one) => one.probabilities);
    """
    return v8(DEMO / "wordpiece.js", DEMO / "forward.js", models / "vocabulary.js", models / f"{name}.js", RUN, ready)


def test_the_committed_model_answers_as_was_measured_in_torch():
    file = REPOSITORY / "results/demo/sst2/recurrent-seed0-int8.json"
    examples = json.loads(file.read_text(encoding="utf-8"))["examples"]
    found = ask(committed("sst2-recurrent"), "shares", [example["text"] for example in examples])
    expected = [[each["probabilities"] for each in example["passes"]] for example in examples]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_examples_of_the_page_are_right_and_wrong_as_it_says():
    """Three right, three wrong; from two passes to six no answer changes, and the wrong ones are surer."""
    cells = json.loads((REPOSITORY / "notebooks" / "try-it.ipynb").read_text(encoding="utf-8"))["cells"]
    (box,) = (text for text in ("".join(cell["source"]) for cell in cells) if 'class="rtx-try"' in text)
    lists = [re.findall(r'<li data-meant="(\w+)">(.*)</li>', part) for part in box.split("<ul>")[1:]]
    assert [len(examples) for examples in lists] == [3, 3]
    for examples, right in zip(lists, (True, False)):
        meant, texts = zip(*examples)
        shares = np.array(ask(committed("sst2-recurrent"), "shares", texts))[:, 1:]  # (texts, passes 2 to 6, classes)
        answers = np.array(["negative", "positive"])[shares.argmax(2)]
        assert (answers == answers[:, :1]).all() and (shares.max(2)[:, -1] >= shares.max(2)[:, 0]).all()
        assert ((answers[:, 0] == meant) == right).all()


def test_the_scripts_write_no_html():
    """What a visitor types is data."""
    ways = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(")
    for file in DEMO.glob("*.js"):
        assert ways.findall(file.read_text()) == [], file.name
