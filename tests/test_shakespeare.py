"""The Shakespeare page: small runs on the generated play, paired comparisons, and what it says of records that are not there."""

import math
import re
from dataclasses import replace

import pytest
import torch
from factory import markdown, plain
from test_notebooks import execute, kernel  # noqa: F401  (the kernel of this environment, for the last test)
from torch.utils.flop_counter import FlopCounterMode

import rtx_core as rtx
from rtx_core.architectures import describe_character_model
from rtx_core.corpora import characters
from rtx_core.errors import RtxError
from rtx_core.evaluation import generation
from rtx_core.language import LANGUAGE
from rtx_core.models import build_model, kausik
from rtx_core.pages import shakespeare as pages
from rtx_core.pages import shakespeare_figures as figures_module
from rtx_core.pages.published import published
from rtx_core.pages.runs import BOOK, Runs, Studies
from rtx_core.paths import REPOSITORY
from rtx_core.results.language import LanguageRecord
from rtx_core.results.record import read_json
from rtx_core.results.statistics import Paired, paired

SMALL = {"hidden_size": 12, "num_heads": 2, "intermediate_size": 16}
GIVEN = {"source": "embedded", "models": ["gpt-2", "gpt-6", "kausik"], "seeds": [0, 1], "steps": 2, "batch_size": 2, "block_size": 16,
         "eval_every": 1, "eval_batches": 2, "device": "cpu"}  # fmt: skip
RECIPES = ["report", "nanogpt"]


@pytest.fixture
def small(monkeypatch):
    """Small models, a short play, short measurements."""
    fixed = LANGUAGE["shakespeare"]
    models = {name: (model, overrides | SMALL) for name, (model, overrides) in fixed.models.items()}
    monkeypatch.setitem(LANGUAGE, "shakespeare", replace(fixed, models=models))
    monkeypatch.setattr(characters, "EMBEDDED_CHARACTERS", 5000)
    monkeypatch.setattr(generation, "SAMPLED", 20)
    monkeypatch.setattr(generation.latency, "__defaults__", (1,))


@pytest.fixture
def studies(small) -> Studies:
    return pages.runs(GIVEN, RECIPES)


def test_page_is_drawn_from_runs(studies, figures, home):
    assert len(studies.records) == 12 and all(record.synthetic for record in studies.records)
    assert studies["report"].settings.training.schedule == "constant" and studies["nanogpt"].settings.training.schedule == "cosine"
    loss = plain(markdown(rtx.shakespeare.losses(studies, label="tab-a")))
    for one in studies.values():
        for model in GIVEN["models"]:
            tests = [record["test"] for record in one.of(model)]
            values = [t["loss"] for t in tests]
            seeds = abs(values[0] - values[1]) / 2  # s / √2 of two values
            assert f"| {sum(values) / 2:.4f} | {(tests[0]['error'] + tests[1]['error']) / 2:.4f} | {seeds:.4f} |" in loss
    assert "Synthetic: trained and tested on the embedded corpus" in loss and "1.4699" not in loss and "ublished" not in loss
    pairs = plain(markdown(rtx.shakespeare.comparisons(studies, label="tab-b")))
    assert pairs.count("| Recurrent | Standard, 6 layers |") == 2 and "Synthetic" in pairs
    assert plain(markdown(rtx.shakespeare.verdict(studies))).count("That Recurrent beats Standard, 6 layers is not measured at the published budget yet; at this one") == 2
    written = markdown(rtx.shakespeare.samples(studies))
    assert all(studies["report"].of(model)[0]["samples"][0]["text"].strip("\n") in written for model in GIVEN["models"])
    assert "| steps | 10000 | 2 | 5000 | 2 |" in plain(markdown(rtx.shakespeare.recipes(studies, label="tab-c")))
    for draw in ("curves", "latency"):
        shown = markdown(getattr(rtx.shakespeare_figures, draw)(studies, label=f"fig-{draw}"))
        assert "Standard, 6 layers" in shown and "Synthetic" in shown and (figures / f"fig-{draw}.svg").exists()
    said = plain(markdown(rtx.shakespeare.provenance(studies)))
    assert said.count("-seed1.json") == 6 and "All runs of this page are recorded" in said
    assert not (home / "results").exists()


def test_book_trains_nothing_on_real_text_and_says_what_is_missing(home, monkeypatch, figures):
    monkeypatch.setenv(BOOK, "1")
    empty = pages.runs({"source": "hub"}, RECIPES)
    assert empty.records == []
    loss = plain(markdown(rtx.shakespeare.losses(empty, label="tab-a")))
    assert loss.count("| not measured yet |") == 10 and "| 1.4699 | 2.23e-04 | 0.0025 | – |" in loss and "| 1.4697 | – | – | – |" in loss
    for shown in (rtx.shakespeare.comparisons(empty, label="tab-a"), rtx.shakespeare.samples(empty), rtx.shakespeare_figures.curves(empty, label="fig-a"),
                  rtx.shakespeare_figures.latency(empty, label="fig-a")):  # fmt: skip
        assert markdown(shown).startswith("Not measured yet")
    assert markdown(rtx.shakespeare.verdict(empty)).count("is not measured yet") == 4
    assert "shakespeare-report-reduced gpt-1 seed 0, " in plain(markdown(rtx.shakespeare.provenance(empty)))


@pytest.mark.parametrize(("recipes", "said"), [([], "Parameter recipes is \\[\\]"), (["reprot"], "Unknown recipe 'reprot': did you mean 'report'\\?")])
def test_bad_recipes_are_one_sentence(recipes, said):
    with pytest.raises(RtxError, match=said):
        pages.runs({"source": "hub"}, recipes)


# -- paired comparisons -------------------------------------------------------------------------------------------------


def scored(seed: int, *losses: float, last: int = 5) -> dict:
    return {"seed": seed, "test": {"batch_losses": list(losses), "batch_sizes": [10] * (len(losses) - 1) + [last]}}


def test_difference_is_paired_over_seeds_and_whole_batches():
    first = [scored(0, 1.0, 1.2, 1.1, 9.0), scored(1, 1.1, 1.3, 1.3, 9.0), scored(5, 0.0, 0.0, 0.0, 0.0)]
    second = [scored(1, 1.4, 1.4, 1.7, 0.0), scored(0, 1.2, 1.5, 1.3, 0.0)]
    pair = paired(first, second)
    gains = [(-0.2 - 0.3) / 2, (-0.3 - 0.1) / 2, (-0.2 - 0.4) / 2]  # of the three whole batches, mean over both seeds
    mean = sum(gains) / 3
    half = 4.302653 * math.sqrt(sum((g - mean) ** 2 for g in gains) / 2 / 3)  # Student's, two degrees of freedom
    assert pair.value == pytest.approx(mean) and (pair.low, pair.high) == pytest.approx((mean - half, mean + half), rel=1e-5)
    assert pair.by_seed == pytest.approx((-0.7 / 3, -0.8 / 3)) and pair.p is None and pair.sign == -1
    assert paired(first, [scored(7, 1, 1, 1, 1)]) is None and paired(first, [scored(0, 1, 1, 1, 1, last=4)]) is None


@pytest.mark.parametrize(
    ("pair", "sign"),
    [
        (Paired(-0.2, -0.3, -0.1, (-0.1, -0.3), None), -1),
        (Paired(0.2, 0.1, 0.3, (0.2,), None), 0),  # one seed tells nothing of another
        (Paired(0.2, 0.1, 0.3, (0.1, 0.3), None), 1),
        (Paired(-0.2, -0.5, 0.1, (-0.1, -0.3), None), 0),  # the interval holds 0
        (Paired(-0.2, -0.3, -0.1, (0.1, -0.5), None), 0),  # the seeds disagree
        (Paired(-0.2, -0.3, -0.1, (-0.01, -0.5, -0.1), 0.2), 0),  # the seeds vary too much
        (Paired(-0.2, -0.3, -0.1, (-0.19, -0.2, -0.21), 0.003), -1),
    ],
)
def test_who_is_better_by_the_rule(pair, sign):
    assert pair.sign == sign


def test_three_seeds_are_tested_over_seeds():
    noise = ((0.1, 0.2), (0.0, 0.3), (0.2, 0.1))
    first, second = ([scored(s, *(base + x for x in pair), last=10) for s, pair in enumerate(noise)] for base in (1.0, 2.0))
    second[0]["test"]["batch_losses"][0] += 0.01
    assert paired(first, second).p < 1e-4


@pytest.mark.parametrize(("shift", "word"), [(-1.0, "reproduced"), (1.0, "contradicted")])
def test_verdict_follows_the_records(small, shift, word):
    def shifted(record):
        test = record["test"] | {"batch_losses": [loss + shift for loss in record["test"]["batch_losses"]]}
        return LanguageRecord(record.content | {"test": test}, record.path) if record["model"] == "kausik" else record

    one = pages.runs(GIVEN, ["report"])["report"]
    full = replace(one.settings, training=replace(LANGUAGE["shakespeare"].recipes["report"]), budget="full")
    same = {r["seed"]: r["test"]["batch_losses"] for r in one.of("gpt-6")}
    records = [LanguageRecord(r.content | {"test": r["test"] | {"batch_losses": same[r["seed"]]}}, r.path) for r in one]
    said = {budget: markdown(rtx.shakespeare.verdict(Studies({"report": Runs(settings, [shifted(r) for r in records], None)}, "recipe")))
            for budget, settings in (("full", full), ("reduced", one.settings))}  # fmt: skip
    outcome = f"its loss is 1.0000 {'lower' if shift < 0 else 'higher'}"
    assert f"That Recurrent beats Standard, 6 layers is **{word}**: {outcome}" in said["full"]
    assert f"6 layers is not measured at the published budget yet; at this one {outcome}" in said["reduced"] and "**reproduced**" not in said["reduced"]
    assert all(("it is better" if shift < 0 else "it is worse") in each and "Synthetic" in each for each in said.values())


# -- what the models are ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [2, 3, 4])
def test_drawn_windows_are_the_equations(window):
    layer = build_model("kausik", seed=0, **SMALL, dropout=0.0).layers[0]
    x = torch.randn(6, 2, 12, generator=torch.Generator().manual_seed(0))
    drawn, cells = figures_module.windows(6, window), {f"x{i + 1}": x[i] for i in range(6)}
    for kind in ("states", "outputs"):
        for name, seen in drawn[kind].items():
            cells[name] = layer(torch.stack([cells[cell] for cell in seen], dim=1))[:, -1]
    states, outputs = kausik.plain(layer, x, window)
    for i in range(6):
        assert torch.allclose(cells[f"h{i + 1}"], states[i], atol=1e-5) and torch.allclose(cells[f"y{i + 1}"], outputs[i], atol=1e-5)


def test_architecture_is_drawn_from_the_configuration(figures):
    shown = plain(markdown(rtx.shakespeare_figures.architecture(label="fig-a")))
    assert "states: h5 sees h4, x5; outputs: y5 sees h5; standard layer: y5 sees x1, x2, x3, x4, x5" in shown and (figures / "fig-a.svg").exists()


def test_committed_counts_are_those_of_the_models():
    committed = read_json(REPOSITORY / "results" / "characters.json")
    assert committed == {name: describe_character_model(name) for name in LANGUAGE["shakespeare"].models}
    said = plain(markdown(rtx.shakespeare.models(label="tab-a")))
    for text in ("| 1,893,888 | 1.89M |", "| 10,745,088 | 10.74M |", "| 1,795,584 | 1.89M |"):
        assert text in said


@pytest.mark.parametrize("name", ["gpt-2", "kausik"])
def test_flops_are_those_that_torch_counts(name):
    architecture, overrides = LANGUAGE["shakespeare"].models[name]
    model, N = build_model(architecture, seed=0, **overrides).double().eval(), 16
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.zeros(1, N, dtype=torch.long))
    counted = sum(n for kernel_, n in counter.get_flop_counts()["Global"].items() if kernel_ in (torch.ops.aten.mm, torch.ops.aten.addmm))
    flops, d = describe_character_model(name)["flops"], model.config.hidden_size
    unread = 4 * d * d if name == "kausik" else 0  # the last state's keys and values, which no later state reads
    assert counted == N * (flops["blocks"] + flops["head"]) - unread


def test_published_errors_are_corrected_by_the_root_of_the_batch():
    quoted = published()["shakespeare"]
    for printed in quoted["losses"]["report"].values():
        assert printed["corrected_error"] == round(printed["error"] * math.sqrt(quoted["batch_size"]), 4)


def test_notebook_runs_on_the_embedded_play(home):
    said = plain(execute("shakespeare", home, {"models": ["gpt-1", "kausik"], "seeds": [0], "recipes": ["nanogpt"], "source": "embedded", "steps": 1,
                                               "batch_size": 2, "block_size": 32}))  # fmt: skip
    folder = home / "_build/results/language/shakespeare-nanogpt-reduced-steps1-batchsize2-blocksize32"
    records = sorted(folder.glob("*.json"))
    assert [path.name for path in records] == ["gpt-1-seed0.json", "kausik-seed0.json"] and not (home / "results").exists()
    for path in records:
        assert f"| {read_json(path)['test']['loss']:.4f} |" in said and f"{folder.name}/{path.name}" in said
    assert "Synthetic" in said and "~~~~text" in said
    assert len(re.findall(r"^:::\{figure\} /figures/", said, flags=re.MULTILINE)) >= 3
