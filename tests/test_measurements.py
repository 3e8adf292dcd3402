"""What is measured beside the runs: the yardstick, transfer, number formats, rounded weights, and their displays."""

import json
import re
import sys
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from factory import N, SST2, content, markdown, plain, predictions, saved, tiny

import rtx_core as rtx
from rtx_core.corpora.dataset import dataset
from rtx_core.corpora.tokens import Tokens
from rtx_core.evaluation import bag_of_words, precision, rounding, transfer
from rtx_core.evaluation.command import command, trained
from rtx_core.evaluation.identities import untied
from rtx_core.evaluation.metrics import logits_of
from rtx_core.models import MODELS, build_model, save_model
from rtx_core.models.packed import Packed
from rtx_core.pages import counted, measured
from rtx_core.pages import transfer as transfer_page
from rtx_core.pages.verdicts import CONTRADICTED, REPRODUCED
from rtx_core.parameters import settings
from rtx_core.paths import REPOSITORY
from rtx_core.results import measurement
from rtx_core.results.statistics import compare
from rtx_core.run import work

EMBEDDED = {"source": "embedded", "models": ["baseline", "recurrent"], "max_length": 32}
BATCH = Packed.from_sequences([[2, 9, 30, 41, 3], [2, 7, 3], [2, 5, 6, 8, 9, 11, 3]])


@pytest.fixture
def small(monkeypatch):
    tiny(monkeypatch)


@pytest.fixture
def weights(small):
    """Records and untrained weights of both models on the embedded corpus, as a run leaves them."""
    asked = settings("sst2", EMBEDDED)
    for name in asked.models:
        made = saved(asked, name)
        path = work(asked, made["key"]) / "model.safetensors"
        save_model(build_model(name, seed=0), name, path)
    return asked


# -- yardstick ---------------------------------------------------------------------------------------------------------


def test_counts_are_of_tokens_and_leave_the_tokens_alone():
    tokens = Tokens(np.array([5, 2, 5, 3, 1], dtype=np.int32), np.array([0, 3, 5]), np.array([0, 1]))
    assert bag_of_words.counts(tokens, 6).toarray().tolist() == [[0, 0, 1, 0, 0, 2], [0, 1, 0, 1, 0, 0]]
    assert tokens.ids.tolist() == [5, 2, 5, 3, 1]


def test_bag_of_words_learns_words_and_no_order(tiny_data):
    _, logits = bag_of_words.fit(tiny_data)
    assert (logits.argmax(1) == tiny_data.test.labels).mean() > 0.9  # one of two tokens says it, unless both occur
    np.testing.assert_allclose(np.exp(logits).sum(1), 1, rtol=1e-5)
    turned = [t.ids.copy() for t in (tiny_data.train, tiny_data.test)]
    for ids, part in zip(turned, (tiny_data.train, tiny_data.test)):
        for a, b in zip(part.offsets, part.offsets[1:]):
            ids[a:b] = ids[a:b][::-1]
    backwards = replace(tiny_data, train=replace(tiny_data.train, ids=turned[0]), test=replace(tiny_data.test, ids=turned[1]))
    np.testing.assert_allclose(bag_of_words.fit(backwards)[1], logits, atol=1e-3)


def test_yardstick_is_recorded_and_pairs_with_a_run(small, home):
    bag_of_words.bag_of_words("sst2", EMBEDDED)
    found = measurement.find("embedded", "yardstick", "sst2-maxlength32", "bag-of-words-seed0")
    assert found.synthetic and found.note() == "" and not (home / "results").exists()
    data = dataset(**settings("sst2", EMBEDDED).data)
    assert found["data"] == data.facts and found["test"]["n"] == len(data.test)
    assert found["test"]["accuracy"] == pytest.approx((found.predictions["logits"].argmax(1) == data.test.labels).mean())


# -- the trained weights and the command line --------------------------------------------------------------------------


def test_missing_record_and_missing_weights_are_one_sentence(weights):
    with pytest.raises(rtx.RtxError, match="^There is no record of sst2-maxlength32, baseline, seed 7; run its notebook first.$"):
        trained(weights, "baseline", 7)
    (work(weights, trained(weights, "baseline", 0)[0]["key"]) / "model.safetensors").unlink()
    with pytest.raises(rtx.RtxError, match="are not in _build/runs"):
        trained(weights, "baseline", 0)


def test_command_line(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "argv", ["x", "sst2", "seeds=[0, 1]", "yelp", "epochs=1"])
    command(lambda *given: seen.append(given), "FROM TO")
    assert seen == [("sst2", "yelp", {"seeds": [0, 1], "epochs": 1})]
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", sys.modules["rtx_core"].__spec__)
    monkeypatch.setattr(sys, "argv", ["x", "sst2"])
    with pytest.raises(SystemExit, match="FROM TO .name=value"):
        command(lambda *given: None, "FROM TO")
    monkeypatch.setattr(sys, "argv", ["x", "sst3", "sst2"])
    with pytest.raises(SystemExit, match="Unknown experiment 'sst3'"):
        command(transfer.transfer, "FROM TO")


# -- transfer ----------------------------------------------------------------------------------------------------------


def test_transfer_measures_on_the_other_test_part(weights, monkeypatch, tiny_data):
    monkeypatch.setattr(transfer, "resolve", lambda source: "hub")  # the weights are of the embedded corpus; what matters is the way
    facts = content(SST2)["data"] | {"n_test": len(tiny_data.test)}
    monkeypatch.setattr(transfer, "dataset", lambda **asked: replace(tiny_data, facts=facts | {"split": asked["corpus"]}))
    transfer.transfer("sst2", "yelp", {"source": "embedded", "max_length": 32})
    found = measurement.every("hub", "transfer")
    assert [(m["of"], m["model"], m["data"]["split"]) for m in found] == [
        ("sst2-maxlength32-to-yelp-maxlength32", "baseline", "yelp"), ("sst2-maxlength32-to-yelp-maxlength32", "recurrent", "yelp")]  # fmt: skip
    run, model = trained(weights, "recurrent", 0)
    logits = logits_of(model, tiny_data.test, torch.device("cpu"), nullcontext())
    np.testing.assert_allclose(found[1].predictions["logits"], logits, atol=1e-6)
    assert found[1]["run"] == run["key"] and compare(*found)["n"] == len(tiny_data.test)


def test_transfer_needs_equal_classes_and_one_vocabulary():
    with pytest.raises(rtx.RtxError, match="sst2 has classes negative, positive and multi-domain .*; transfer needs the same"):
        transfer.transfer("sst2", "multi-domain", {"source": "hub"})
    with pytest.raises(rtx.RtxError, match="have a vocabulary each"):
        transfer.transfer("sst2", "yelp", {"source": "embedded"})


# -- number formats ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["baseline", "recurrent", "recurrent-wide"])
@pytest.mark.parametrize(("number_format", "error"), [("fp32", 1e-6), ("bf16", 0.03), ("fp16", 0.004), ("int8", 0.06)])
def test_a_format_stays_within_its_error_and_size(small, name, number_format, error):
    model = build_model(name, seed=0).eval()
    ready = precision.converted(model, number_format)
    with torch.inference_mode():
        exact, got = model(BATCH), ready(BATCH).float()
    assert (got - exact).norm() <= error * exact.norm()
    assert number_format == "fp32" or not torch.equal(got, exact)
    size = precision.stored_mb(ready) / precision.stored_mb(model)
    assert size == pytest.approx({"fp32": 1, "int8": 0.95}.get(number_format, 0.52), abs=0.06)


def test_int8_shrinks_the_layers_fourfold():
    layers = [p.numel() for p in build_model("recurrent", seed=0).layers.parameters()]
    model = build_model("recurrent", seed=0)
    saved_mb = precision.stored_mb(model) - precision.stored_mb(precision.converted(model, "int8"))
    assert saved_mb == pytest.approx(3 * sum(layers) / 2**20, rel=0.03)


def test_precision_is_recorded(weights, monkeypatch):
    monkeypatch.setattr(precision, "emulated", lambda number_format: number_format == "fp16")
    monkeypatch.setattr(precision, "keep_heap", lambda: None)
    logits, labels = predictions(range(40))
    precision.precision("sst2", EMBEDDED)
    found = measurement.every("embedded", "precision")
    assert [m["name"] for m in found] == [f"{name}-seed0-{kind}" for name in ("baseline", "recurrent") for kind in ("bf16", "fp32", "int8")]
    said = plain(markdown(measured.formats("embedded", label="tab-p")))
    for m in found:
        assert f"| {m['test']['accuracy']:.4f} |" in said and [row["batch"] for row in m["latency"]] == [1, 16]
    assert "| FP16 | – | – | – |" in said and "Synthetic: on the embedded corpus" in said


# -- rounding ----------------------------------------------------------------------------------------------------------


def test_rounding_is_symmetric_a_row_and_within_half_a_step():
    weight = torch.randn(7, 50, generator=torch.Generator().manual_seed(0))
    for bits in rounding.BITS:
        got, step = rounding.rounded(weight, bits), weight.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
        assert ((got - weight).abs() <= step / 2 + 1e-6).all() and torch.equal(rounding.rounded(-weight, bits), -got)
        assert max(len(row.unique()) for row in got) <= 2**bits - 1
    several = torch.stack([rounding.rounded(weight, 3, torch.Generator().manual_seed(seed)) for seed in range(2000)])
    assert torch.allclose(several.mean(0), weight, atol=0.05)  # right on average
    bias = torch.randn(5)
    assert rounding.rounded(bias, 2) is bias


def test_states_are_those_of_the_forward_pass(small):
    model = build_model("recurrent", seed=0)
    found = rounding.states(model, BATCH)
    c = model.config
    assert len(found) == c.num_layers * c.num_passes
    last = found[-1] + c.residual_scale * found[c.num_layers - 1]
    with torch.inference_mode():
        assert torch.allclose(model.head(last[BATCH.starts]), model(BATCH), atol=1e-6)
    for a, b in zip(found, rounding.states(untied(model), BATCH), strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_error_falls_with_bits_and_shared_rounding_is_one_draw(small):
    model = build_model("recurrent", seed=0)
    before = {name: w.clone() for name, w in model.state_dict().items()}
    ends = [c["errors"][-1] for c in rounding.curves(model, BATCH, arm="x")]
    assert ends == sorted(ends, reverse=True) and 0 < ends[-1] < ends[0]
    assert all(torch.equal(before[name], w) for name, w in model.state_dict().items())
    chance = torch.Generator().manual_seed(0)
    apart = rounding.with_rounded_layers(untied(model), 2, chance).layers[0].copies
    assert not torch.equal(apart[0].ffn.down.weight, apart[1].ffn.down.weight)
    pair = rounding.random_pair(BATCH, 0)
    assert {(c["arm"], c["bits"]) for c in pair} == {(arm, b) for arm in ("shared", "unshared") for b in rounding.BITS}
    assert all(len(c["errors"]) == model.config.num_layers * model.config.num_passes for c in pair)


def test_rounding_is_recorded_and_drawn(weights, figures, monkeypatch):
    monkeypatch.setattr(rounding, "BITS", (3, 8))
    monkeypatch.setattr(rounding, "SEEDS", range(3))
    rounding.rounding("sst2", EMBEDDED)
    (found,) = measurement.every("embedded", "rounding")
    assert set(found["runs"]) == {"baseline", "recurrent"} and found["texts"] > 1
    assert {c["comparison"] for c in found["curves"]} == {"random", "trained", "draws"}
    said = plain(markdown(measured.ratios("embedded", label="tab-r")) + markdown(measured.trained_errors("embedded", label="tab-t")))
    assert "| fresh pairs | – | 3 |" in said and "| Recurrent, trained | sst2-maxlength32 | 8 |" in said and "Synthetic" in said
    measured.rounding("embedded", label="fig-rounding")
    assert (figures / "fig-rounding.svg").exists()
    worse = [c | {"errors": [2 * e for e in c["errors"]]} if c.get("arm") == "shared" and "model" in c else c for c in found["curves"]]
    measurement.save({k: v for k, v in found.content.items() if k not in ("schema", "finished")} | {"of": "sst2-10pct-maxlength32", "curves": worse})
    said = plain(markdown(measured.ratios("embedded", label="tab-r")) + markdown(measured.trained_errors("embedded", label="tab-t")))
    assert said.count("| fresh pairs | – | 3 |") == 1 and "| Recurrent, trained | sst2-10pct-maxlength32 | 8 |" in said
    assert all(said.count(f"| {name} | {of} |") == 1 for name in ("Baseline", "Recurrent") for of in ("sst2-maxlength32", "sst2-10pct-maxlength32"))
    shown = markdown(measured.rounding("embedded", label="fig-rounding"))
    assert all(f"Recurrent ({of}), 8 bits, shared" in shown for of in ("sst2-maxlength32", "sst2-10pct-maxlength32"))


def curve(comparison: str, arm: str, seed: int, error: float, **more) -> dict:
    return {"comparison": comparison, "arm": arm, "seed": seed, "bits": 4, "errors": [0.01, error], **more}


def test_amplification_is_judged_by_the_ratio_of_errors():
    curves = [curve("random", arm, seed, size * (1 + seed / 50)) for arm, size in (("shared", 0.04), ("unshared", 0.03)) for seed in range(3)]
    curves += [curve("draws", c["arm"], c["seed"], c["errors"][-1], model="recurrent") for c in curves]
    said = {"kind": "rounding", "of": "sst2", "name": "errors", "model": "recurrent-wide", "seed": 0, "protocol": "report",
            "data": {"source": "hub"}, "environment": {}, "code": measurement.made_by("rounding")}  # fmt: skip
    measurement.save(said | {"curves": curves})
    verdict = counted.amplifies([4])
    assert verdict.called == "Reproduced (one seed)" and verdict.statistic.count(": 1.33 (1.33 to 1.33, 3 ") == 2 and "trained on sst2" in verdict.statistic
    assert counted.error_ratio(curves, "random", 4)[0] == pytest.approx(4 / 3)
    turned = [c | {"arm": {"shared": "unshared", "unshared": "shared"}[c["arm"]]} for c in curves if c["comparison"] == "draws"]
    measurement.save(said | {"of": "sst2-10pct", "protocol": "reduced", "curves": curves[:6] + turned})
    verdict = counted.amplifies([4])  # of all that is recorded, and the fresh pairs that both have once
    assert (verdict.word, verdict.at) == (CONTRADICTED, "one seed, reduced budget") and verdict.statistic.count("fresh pairs") == 1
    assert "trained on sst2-10pct, rounded at random, 4 bits: 0.75 (0.75 to 0.75, 3 draws)" in verdict.statistic
    measurement.save(said | {"of": "sst2-10pct", "curves": [c for c in curves if c["comparison"] == "random"][::-1]})
    assert counted.amplifies([4]).word == REPRODUCED


# -- displays and the store --------------------------------------------------------------------------------------------


def test_nothing_measured_is_said(home):
    for draw in (transfer_page.accuracies, measured.formats, measured.rounding, measured.ratios, measured.trained_errors):
        said = markdown(draw("real", label="tab-a"))
        assert said.startswith("Not measured yet: ") and re.search(r"`python -m rtx_core\.evaluation\.\w+ sst2[ a-z]* fraction=0\.1`", said)
    assert "A dash: not measured yet." in markdown(measured.yardstick("real", label="tab-y"))


def test_yardstick_table_shows_the_paired_difference(home):
    saved(SST2, "baseline", wrong=range(10))
    logits, labels = predictions(range(30))
    measurement.save({"kind": "yardstick", "of": "sst2", "name": "bag-of-words-seed0", "model": "bag-of-words", "seed": 0, "protocol": "report",
                      "data": content(SST2)["data"], "test": {"n": N, "accuracy": 0.85}, "environment": {},
                      "code": measurement.made_by("yardstick")}, logits, labels)  # fmt: skip
    said = plain(markdown(measured.yardstick("real", label="tab-y")))
    assert "| SST-2, pooled split | 200 | 0.8500 | 0.7939 to 0.8929 | full | 0.9500 | +10.00 | 1.9e-06 | – | – | – |" in said
    assert "| Yelp | – | – | – | – |" in said and "the bag of words always reads the whole training part" in said


def test_the_budget_of_models_is_told_in_words(home):
    small = settings("yelp", {"epochs": 1, "train_rows": 10_000})
    saved(small, "baseline"), saved(SST2, "recurrent")
    for of, name in (("sst2-to-yelp", "baseline-seed0"), ("yelp-to-sst2", "recurrent-seed0")):
        trained_on, tested_on = of.split("-to-")
        logits, labels = predictions(range(30))
        measurement.save({"kind": "transfer", "of": of, "name": name, "model": name.removesuffix("-seed0"), "seed": 0, "protocol": "report",
                          "trained_on": trained_on, "tested_on": tested_on, "data": content(SST2)["data"], "environment": {},
                          "test": content(SST2, wrong=range(30))["test"], "code": measurement.made_by("transfer")}, logits, labels)  # fmt: skip
    said = plain(markdown(transfer_page.accuracies("real", label="tab-t")))
    assert "| 0.8000 (epochs 1, train rows 10,000) |" in said and "| 0.8000 (full) |" in said
    said = plain(markdown(measured.yardstick("real", label="tab-y")))
    assert "| Yelp | – | – | – | epochs 1, train rows 10,000 | 0.8000 |" in said and "| SST-2, pooled split | – | – | – | full |" in said
    assert "epochs1" not in said


def test_misplaced_measurement_is_one_sentence(home):
    test_yardstick_table_shows_the_paired_difference(home)
    path = measurement.path_of("hub", "yardstick", "sst2", "bag-of-words-seed0")
    moved = path.parent.with_name("yelp") / path.name
    moved.parent.mkdir()
    path.rename(moved)
    with pytest.raises(rtx.RtxError, match="yelp/bag-of-words-seed0.json holds the measurement yardstick/sst2/bag-of-words-seed0; move it"):
        measurement.find("hub", "yardstick", "yelp", "bag-of-words-seed0")
    moved.write_text(json.dumps({"schema": 1}))
    with pytest.raises(rtx.RtxError, match="lacks kind, of, name"):
        measurement.find("hub", "yardstick", "yelp", "bag-of-words-seed0")


LOSS = {"bf16": 0.01, "fp16": 0.01, "int8": 0.02}  # of accuracy against fp32, at most
PRECISION = sorted((REPOSITORY / "results" / "precision").glob("*/*.json"))


@pytest.mark.skipif(not PRECISION, reason="results/precision holds no measurement")
def test_committed_formats_keep_their_accuracy():
    found = {(m["of"], m["model"], m["seed"], m["format"]): m["test"]["accuracy"] for m in map(measurement.read, PRECISION)}
    for (*model, kind), accuracy in found.items():
        if kind in LOSS:
            assert abs(accuracy - found[*model, "fp32"]) <= LOSS[kind], (*model, kind)


def test_looped_model_of_random_pairs_has_the_baselines_width():
    wide, base = MODELS[rounding.LOOPED][1], MODELS["baseline"][1]
    assert (wide.hidden_size, wide.num_layers * wide.num_passes) == (base.hidden_size, base.num_layers)


COMMITTED = sorted(path for kind in measurement.MADE_BY for path in (REPOSITORY / "results" / kind).glob("*/*.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: "/".join(path.parts[-3:]))
def test_committed_measurement_is_proven_by_its_predictions(path):
    made = measurement.read(path)
    assert not made.synthetic and made["protocol"] in ("report", "reduced")
    if made["kind"] == "initial":
        assert all(len(losses) >= 5 and np.isfinite(losses).all() for losses in made["losses"].values())
    elif made["kind"] not in ("rounding", "attention", "judge"):
        guesses, labels = made.predictions["logits"].argmax(1), made.predictions["labels"]
        assert len(labels) == made["test"]["n"] == made["data"]["n_test"]
        assert made["test"]["accuracy"] == pytest.approx(float((guesses == labels).mean()), abs=1e-12)
        assert sum(map(sum, made["test"]["confusion"])) == len(labels)
