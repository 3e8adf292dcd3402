"""The theory page: identities on the models' own code, the formulas of the figures against autograd, attention, and what it refuses."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from factory import content, markdown, plain, saved, tiny
from test_notebooks import execute, kernel  # noqa: F401  (the kernel of this environment, for every test here)

import rtx_core as rtx
from rtx_core.evaluation import identities
from rtx_core.evaluation.attention import SENTENCE, attention, cls_attention
from rtx_core.evaluation.identities import relative_offset, shared_gradient, untied
from rtx_core.models import build_model, save_model
from rtx_core.models.layers import rotary_table, rotate
from rtx_core.models.packed import Packed
from rtx_core.pages import gates, theory
from rtx_core.parameters import settings
from rtx_core.results import measurement
from rtx_core.run import work

pytestmark = pytest.mark.usefixtures("figures")


@pytest.fixture
def small(monkeypatch):
    tiny(monkeypatch)


# -- depth and gradient ------------------------------------------------------------------------------------------------


def rows(shown) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in plain(markdown(shown)).splitlines() if line.startswith("|")][2:]


def test_depth_table_counts_what_the_models_count():
    found = {(row[0], row[1], row[2]): row[3:] for row in rows(theory.depth("hub", label="tab-a"))}
    for name, (_, width, layers) in zip(("baseline", "recurrent"), (("Baseline", "384", "6 × 1"), ("Recurrent", "256", "3 × 2"))):
        model = build_model(name, seed=0)
        weights = sum(p.numel() for p in model.layers.parameters())
        assert found[(rtx.table.title(name), width, layers)][1] == f"{weights / 1e6:.2f}"
    unshared = build_model("recurrent", seed=0, num_layers=6, num_passes=1)
    assert found[("– its depth, unshared", "256", "6 × 1")][:2] == ["6", f"{sum(p.numel() for p in unshared.layers.parameters()) / 1e6:.2f}"]
    once, twice = (found[(form, "256", f"3 × {n}")] for form, n in (("– its layers once", 1), ("Recurrent", 2)))
    assert once[1] == twice[1] and float(twice[2]) == pytest.approx(2 * float(once[2]), abs=0.1)
    assert {row[-1] for row in found.values()} == {"–"}  # no record here


def test_depth_table_shows_a_record_where_there_is_one():
    tenth = settings("sst2", {"source": "hub", "fraction": 0.1, "models": ["recurrent"]})
    for asked, wrong in ((tenth, 30), (tenth.but(num_passes=3), 20), (tenth.but(num_layers=6, num_passes=1), 10)):
        saved(asked, "recurrent", wrong=range(wrong))
    found = {row[0]: row[6][:6] for row in rows(theory.depth("hub", label="tab-a"))}
    assert (found["Recurrent"], found["– its layers 3 times"], found["– its depth, unshared"]) == ("0.8500", "0.9000", "0.9500")
    assert found["Baseline"] == found["– its layers once"] == "–"


def passes(records: dict[int, list[tuple[int, float, int]]]) -> None:
    """Records of the recurrent model: number of passes -> (wrong answers, test loss, selected step) of each seed."""
    tenth = settings("sst2", {"source": "hub", "fraction": 0.1, "models": ["recurrent"]})
    for times, seeds in records.items():
        asked = tenth.but(num_passes=times * (times != 2))
        for seed, (wrong, loss, step) in enumerate(seeds):
            made = content(asked, "recurrent", wrong=range(wrong))
            row = next(row for row in made["history"] if row["step"] == step)
            selected = {"step": step, "validation_loss": row["validation_loss"]}
            saved(asked, "recurrent", seed, range(wrong), test=made["test"] | {"loss": loss}, selected=selected)


def test_depth_reading_compares_passes_and_not_their_epochs(home):
    assert markdown(theory.depth_reading("hub")) == "Whether further passes help is not measured yet."
    passes({1: [(20, 0.52, 200)], 2: [(40, 0.50, 100), (42, 0.49, 100), (46, 0.55, 200)], 3: [(40, 0.51, 100)]})
    shown = markdown(theory.depth_reading("hub"))
    assert "On seed 0, Recurrent with its layers run once, twice and 3 times has an accuracy of 0.9000, 0.8000 and 0.8000 and a test loss of 0.5200" in shown
    assert "0.5000 and 0.5100 (selected after epoch 2, 1 and 1)" in shown
    assert "Run twice minus run once: accuracy -10.00 points" in shown and "test loss -0.0200. Run 3 times minus run twice: accuracy +0.00 points" in shown
    assert "accuracy rises significantly in none and falls in 1. There accuracy is highest with the layers run once" in shown
    assert "of different epochs" in shown and shown.endswith("One seed tells trained models apart, not numbers of passes.")
    assert "do not show that running the layers twice helps; only if the rate held" in markdown(theory.exchange("hub"))
    found = {row[0]: row[6:] for row in rows(theory.depth("hub", label="tab-a"))}
    assert found["Recurrent"][0].startswith("0.7867 (") and found["Recurrent"][1:] == ["1 / 1 / 2", "0.5133"]
    assert found["– its layers once"][1:] == ["2", "0.5200"]


def test_depth_reading_of_several_seeds_tests_over_them(home):
    assert "whether a further pass helps here is not measured yet" in markdown(theory.exchange("hub"))
    passes({1: [(60, 0.60, 100), (62, 0.61, 100), (61, 0.62, 100)], 2: [(40, 0.50, 100), (42, 0.52, 100), (43, 0.52, 100)]})
    shown = markdown(theory.depth_reading("hub"))
    assert "On seeds 0, 1 and 2, in the mean, Recurrent" in shown
    assert "an accuracy of 0.6950 and 0.7917 and a test loss of 0.6100 and 0.5133 (selected after epoch 1 / 1 / 1 and 1 / 1 / 1)" in shown
    assert "paired t-test over seeds" in shown.split("test loss -0.0967", 1)[1] and "accuracy rises significantly in 1 and falls in none." in shown
    assert not any(word in shown for word in ("There accuracy", "different epochs", "tells trained", "tell trained"))
    assert "the accuracies above agree that running the layers twice helps" in markdown(theory.exchange("hub"))


def test_depth_is_in_the_name_of_a_run_and_in_its_model():
    deeper = settings("sst2", {"num_passes": 3, "num_layers": 2})
    assert deeper.variant == "sst2-numlayers2-numpasses3" and deeper.reduced == {} and settings("sst2", {}).overrides == {"residual": "code"}
    model = build_model("recurrent", **deeper.overrides)
    assert (model.config.num_layers, model.config.num_passes) == (2, 3)


@pytest.mark.parametrize("passes", [2, 3])
def test_shared_gradient_is_the_sum_over_passes(passes, small):
    found = shared_gradient("recurrent", passes)
    assert found["error"] < 1e-12 and found["loss_difference"] < 1e-12
    assert all(len(layer["passes"]) == passes and min(layer["passes"]) > 0 for layer in found["layers"])


def test_the_check_can_fail(small, monkeypatch):
    """Where the copies are not those of the shared layers, their gradients do not add up to its gradient."""

    def other(model):
        made = untied(model)
        with torch.no_grad():
            made.layers[0].copies[1].ffn.down.bias += 0.1
        return made

    monkeypatch.setattr(identities, "untied", other)
    assert shared_gradient("recurrent", 2)["error"] > 1e-3


def test_gradient_table_says_what_was_checked(small):
    said = plain(markdown(theory.gradient("recurrent", 2, 0, label="tab-a")))
    assert "its layers twice" in said and "Cosine of neighbors" in said and re.search(r"differ by at most \de-1\d|are equal to the last bit", said)
    with pytest.raises(rtx.RtxError, match="num_passes is 1; a sum over passes needs at least 2"):
        theory.gradient("recurrent", 1, 0, label="tab-a")
    with pytest.raises(rtx.RtxError, match="did you mean 'recurrent'"):
        theory.gradient("recurent", 2, 0, label="tab-a")


def test_gradient_table_says_equal_or_how_far_apart(monkeypatch):
    layers = [{"passes": [0.1, 0.2], "sum": 0.25, "cosines": [0.9]}]
    for error, loss, expected in ((0.0, 0.0, "gradients are equal to the last bit; the two losses are equal to the last bit."),
                                  (3e-15, 2e-16, "gradients differ by at most 3e-15 in relative terms; the two losses differ by 2e-16.")):  # fmt: skip
        found = {"layers": layers, "parameters": 10, "error": error, "loss_difference": loss}
        monkeypatch.setattr(identities, "shared_gradient", lambda *asked: found)
        assert plain(markdown(theory.gradient("recurrent", 2, 0, label="tab-a"))).endswith(expected)


# -- rotary positions --------------------------------------------------------------------------------------------------


def test_scores_depend_on_the_offset_alone():
    found = relative_offset(64, 10_000.0, 512)
    assert found["shifted"] < 1e-6 and found["length"] < 1e-6
    assert found["moved"] > 0.05  # while the offset itself matters


@pytest.mark.parametrize("size", [2, 8, 64])
def test_similarity_is_the_score_of_the_models_own_rotation(size):
    positions = torch.arange(300)
    x = torch.ones(1, 1, size)
    turned = rotate(x.expand(300, 1, size), rotary_table(positions, size, 10_000.0))[:, 0]
    np.testing.assert_allclose(theory.similarity(size, positions.numpy(), 10_000.0), (turned @ x[0, 0] / size).numpy(), atol=1e-5)


def test_collisions_of_one_pair_are_the_whole_turns_and_vanish_with_dimension():
    one = theory.collisions(2, 100, 10_000.0)
    assert set(one) == {m for m in range(2, 100) if abs((m + np.pi) % (2 * np.pi) - np.pi) <= 1}
    counts = [len(theory.collisions(size, 512, 10_000.0)) for size in (2, 4, 8, 64)]
    assert counts[0] > counts[1] > counts[2] > counts[3] == 0


def test_aliasing_figure_counts_in_its_alt_text():
    said = markdown(theory.aliasing([2, 64], 512, label="fig-a"))
    assert f"by head size: 2: {len(theory.collisions(2, 512, 10_000.0))}, 64: 0." in said
    with pytest.raises(rtx.RtxError, match=r"head_sizes is \[3\]; expected even numbers"):
        theory.aliasing([3], 512, label="fig-a")
    with pytest.raises(rtx.RtxError, match="furthest is 2; expected at least 3"):
        theory.aliasing([2], 2, label="fig-a")


# -- gated units -------------------------------------------------------------------------------------------------------

SETTINGS = [dict(beta=1.0, w=1.0, b=0.0, v=1.0, c=0.0), dict(beta=0.0, w=-2.0, b=0.7, v=0.5, c=-1.0), dict(beta=7.3, w=3.0, b=-3.0, v=-3.0, c=3.0)]
X = np.linspace(-4, 4, 41) + 0.013  # not at ReLU's kink


def by_torch(at: dict) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Value and gradient of every curve, the gradients by autograd."""
    found = {}
    for name in gates.CURVES:
        x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
        z = at["w"] * x + at["b"]
        gate = z * torch.sigmoid(at["beta"] * z)
        y = {"relu": F.relu(z), "gelu": F.gelu(z), "swish": gate, "swiglu": gate * (at["v"] * x + at["c"])}[name]
        y.sum().backward()
        found[name] = y.detach().numpy(), x.grad.numpy()
    return found


@pytest.mark.parametrize("at", SETTINGS)
def test_formulas_are_those_of_autograd(at):
    scope = gates.functions() | at | {"x": X}
    for name, (value, slope) in by_torch(at).items():
        *_, value_formula, slope_formula = gates.CURVES[name]
        np.testing.assert_allclose(eval(value_formula, {}, scope), value, atol=3e-6)
        np.testing.assert_allclose(eval(slope_formula, {}, scope), slope, atol=3e-6)


def test_silu_is_the_one_of_the_models():
    np.testing.assert_allclose(gates.functions()["swish"](X, 1.0), F.silu(torch.tensor(X)).numpy(), atol=1e-12)


def test_figure_runs_the_same_formulas_and_loads_nothing():
    html = gates.interactive().forms["text/html"]
    assert html in markdown(gates.interactive())
    for name, (arguments, expression) in gates.FORMULAS.items():
        assert f"const {name} = ({arguments}) => {expression};" in html
    for *_, value, slope in gates.CURVES.values():
        assert html.count(f"=> {value}, ") == 1 and f"=> {slope}]" in html
    assert not re.search(r"https?:|src=|import|fetch|@import|url\(", html) and "```" not in html
    assert html.count('<input type="range"') == html.count("<label>") == len(gates.SLIDERS) and html.count('role="img" aria-label') == 2


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run JavaScript with")
@pytest.mark.parametrize("at", SETTINGS)
def test_javascript_computes_what_autograd_does(at):
    asked = "curves[name].map((f) => xs.map((x) => f({...at, x})))"
    program = f"""{gates.script()}
const at = {json.dumps(at)}, xs = {json.dumps(X.tolist())};
console.log(JSON.stringify(Object.fromEntries(Object.keys(curves).map((name) => [name, {asked}]))));"""
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, (value, slope) in by_torch(at).items():
        np.testing.assert_allclose(found[name], [value, slope], atol=3e-6)


# -- [CLS] -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["baseline", "recurrent"])
def test_attention_weights_reproduce_what_the_layers_compute(name, small):
    model, ids, outputs, values = build_model(name, seed=1).eval(), [2, 9, 30, 41, 3], [], []
    for layer in model.layers:
        layer.attention.register_forward_hook(lambda module, inputs, output: outputs.append(output[0].detach()))
        layer.attention.register_forward_pre_hook(
            lambda module, inputs: values.append(module.qkv(inputs[0]).view(len(ids), 3, module.num_heads, -1)[:, 2].detach()))  # fmt: skip
    weights, probabilities = cls_attention(model, ids)
    c = model.config
    assert weights.shape == (c.num_layers * c.num_passes, c.num_heads, len(ids))
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]))
    torch.testing.assert_close(probabilities, model(Packed.from_sequences([ids])).softmax(-1)[0].detach())
    for i, (attended, v, out) in enumerate(zip(weights, values, outputs)):
        mixed = torch.einsum("ht,thd->hd", attended, v).flatten()
        torch.testing.assert_close(model.layers[i % c.num_layers].attention.out(mixed), out)


def test_attention_is_recorded_where_the_weights_are_and_shown(small, home):
    given = {"source": "embedded", "max_length": 32, "models": ["recurrent"]}
    asked = settings("sst2", given)
    with pytest.raises(rtx.RtxError, match="There is no record of sst2-maxlength32, recurrent, seed 0"):
        attention("sst2", given)
    made = saved(asked, "recurrent")
    save_model(build_model("recurrent", seed=0), "recurrent", work(asked, made["key"]) / "model.safetensors")
    attention("sst2", given)
    (found,) = measurement.every("embedded", "attention")
    assert found.path.is_relative_to(home / "_build") and found.synthetic and not (home / "results").exists() and found.note() == ""
    assert found["tokens"][0] == "[CLS]" and np.shape(found["weights"])[-1] == len(found["tokens"]) and found["run"] == made["key"]

    shown = markdown(theory.attention("embedded", label="fig-a"))
    assert "Synthetic: on the embedded corpus" in shown and "Recurrent, highest in pass 2, layer" in shown
    told = plain(markdown(theory.attended("embedded")))
    answer = found["classes"][int(np.argmax(found["probabilities"]))]
    assert told.startswith(f"The sentence is “{SENTENCE}”, our own, which no data set has labeled; we read it as positive. Recurrent (`sst2-maxlength32`, seed 0)")
    assert f"calls it {answer} with probability" in told and (", as we do;" in told) == (answer == "positive") == (", against our reading;" not in told)
    assert "not measured yet" in markdown(theory.attended("real")) and "ot measured yet" in markdown(theory.attention("real", label="fig-a"))


# -- the page ----------------------------------------------------------------------------------------------------------


def test_page_runs_and_says_what_is_not_measured(home):
    said = execute("theory", home, {"head_sizes": [2, 64], "furthest": 64, "seed": 1})
    assert "seed 1, float64" in plain(said) and "ot measured yet" in said and "```{raw} html" in said
    assert {path.stem for path in (home / "book" / "figures").iterdir()} == {"fig-theory-aliasing", "fig-theory-activations"}
    assert not (home / "results").exists() and not (home / "_build").exists()
