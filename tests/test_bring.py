"""Records made elsewhere: what proves them, and the sentence that refuses each that is not proven; then nothing is written."""

from dataclasses import asdict

import numpy as np
import pytest
from factory import N, SST2, content, tiny

import rtx_core as rtx
from rtx_core.corpora.dataset import dataset, profile
from rtx_core.errors import RtxError
from rtx_core.evaluation.metrics import metrics
from rtx_core.language import LANGUAGE
from rtx_core.language import settings as language_settings
from rtx_core.models import model_config
from rtx_core.results.code import fingerprint
from rtx_core.results.measurement import made_by
from rtx_core.results.record import run_key
from rtx_core.training.protocol import Seeds
from rtx_core.travel import bring as bringing
from rtx_core.travel import bundle
from rtx_core.travel.bring import bring

pytest.register_assert_rewrite("brought")
from brought import deep, record, refused, wrote

OTHER_CODE = {"commit": "0ld0ld0ld0ld", "clean": True, "fingerprints": ["0" * 64]}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    tiny(monkeypatch)


# -- what is brought --------------------------------------------------------------------------------------------------


def test_proven_records_are_brought_and_said(home, there, capsys):
    for model, seed in (("baseline", 0), ("recurrent", 0), ("baseline", 1)):
        wrote(there, f"results/sst2/{model}-seed{seed}", *record(model=model, seed=seed, latency=record()[0]["latency"]))
    bring([str(there / "results")])
    out = capsys.readouterr().out
    assert "sst2 · baseline · seed 1 · test accuracy 0.8000, data not at hand to compare\n" in out
    assert out.endswith("3 brought.  Next: jupyter-book build book\n") and out.count("\n") == 4
    for path in (there / "results").glob("sst2/*"):
        assert (home / "results" / "sst2" / path.name).read_bytes() == path.read_bytes()
    assert not [path for path in home.glob("results/**/.*")]
    assert len(rtx.runs(rtx.settings("sst2", {"seeds": [0], "source": "hub"})).records) == 2
    bring([str(there)])
    assert capsys.readouterr().out == "0 brought, 3 were here already.  Next: jupyter-book build book\n"


@pytest.mark.parametrize("given", [
    {"split": "official"}, {"fraction": 0.1}, {"length": "short", "length_fraction": 0.2}, {"train_rows": 64, "epochs": 2}, {"residual": "paper"},
    {"max_length": 64, "learning_rate": 1e-4, "precision": "bf16"},
])  # fmt: skip
def test_every_setting_is_read_back_from_its_record(home, there, given, capsys):
    asked = rtx.settings("sst2", given)
    made, arrays = record(asked)
    taken = {k: getattr(asked, k) for k in ("fraction", "length", "length_fraction") if k in given}
    made = deep(made, "data", to=made["data"] | taken | {"n_train": asked.train_rows or 1600})
    bring([wrote(there, f"results/{asked.variant}/baseline-seed0", made, arrays)])
    assert (home / "results" / asked.variant / "baseline-seed0.json").exists()


def test_pages_are_rebuilt_when_asked(there, monkeypatch):
    calls = []
    monkeypatch.setattr(bringing.subprocess, "run", lambda command, **_: calls.append(command) or type("Done", (), {"returncode": len(calls) - 1}))
    path = wrote(there, "results/sst2/baseline-seed0", *record())
    bring([path, "--book"])
    assert calls[0][1:] == ["build", "book"] and calls[0][0].endswith("jupyter-book")
    with pytest.raises(RtxError, match=r"^The records are in results/, but jupyter-book did not build the pages; .*`make book`\.$"):
        bring([path, "--book"])


# -- a record that is not proven ----------------------------------------------------------------------------------------


LIES = {
    "schema": (lambda m: {k: v for k, v in m.items() if k != "test"}, "is no record of schema 1: at $, 'test' is a required property"),
    "key": (lambda m: m | {"key": "0" * 24}, "its key does not follow from its configuration, data and seed"),
    "data under the old key": (lambda m: m | {"data": m["data"] | {"sha256": "e" * 64}}, "its key does not follow"),
    "other seed": (lambda m: deep(m, "seed", to=1), "holds what belongs at results/sst2/baseline-seed1.json"),
    "other model": (lambda m: deep(m, "model", to="recurrent"), "holds what belongs at results/sst2/recurrent-seed0.json"),
    "unknown model": (lambda m: deep(m, "model", to="../../x"), "holds what belongs at results/sst2/../../x-seed0.json"),
    "embedded": (lambda m: deep(m, "data", "source", to="embedded"), "holds what belongs at _build/results/sst2/baseline-seed0.json"),
    "setting": (lambda m: deep(m, "config", "training", "clip_norm", to=2.0), "is called sst2, but its configuration is that of sst2-clipnorm2"),
    "reduced": (lambda m: deep(m, "config", "training", "epochs", to=1), "is called sst2, but its configuration is that of sst2-epochs1"),
    "reduced by its word": (lambda m: m | {"protocol": "reduced"}, "says that its protocol is 'reduced', but that of its settings is 'report'"),
    "unknown setting": (lambda m: deep(m, "config", "training", "momentum", to=1), "settings that today's code does not have: Unknown parameter 'momentum'"),
    "missing setting": (lambda m: deep(m, "config", "training", to={"seeds": {}}), "has learning_rate None in its training, where a run of that name has 3e-05"),
    "seeds": (lambda m: deep(m, "config", "training", "seeds", to=asdict(Seeds.of(3))), "has seeds {'initialization': 3,"),
    "architecture": (lambda m: deep(m, "config", "model", "hidden_size", to=32), "has hidden_size 32 in its model, where a run of that name has 16 today"),
    "corpus": (lambda m: deep(m, "data", "name", to="yelp"), "was made on 'yelp' with 1,600 training rows, expected 'stanfordnlp/sst2'"),
    "test size": (lambda m: deep(m, "data", "n_test", to=199), "has predictions of 200 texts, and its test part has 199"),
    "accuracy": (lambda m: deep(m, "test", "accuracy", to=0.81), "says that its test accuracy is 0.81, and its predictions give 0.8;"),
    "loss": (lambda m: deep(m, "test", "loss", to=0.5), "says that its test loss is 0.5, and its predictions give 0.64"),
    "confusion": (lambda m: deep(m, "test", "confusion", to=[[79, 21], [20, 80]]), "says that its test confusion is [[79, 21], [20, 80]]"),
    "choice": (lambda m: deep(m, "selected", to={"step": 200, "validation_loss": 0.5432}), "selects a validation loss of 0.5432, and the best of its history is 0.4321"),
    "code": (lambda m: m | {"code": OTHER_CODE}, "was made by another version of the code (commit 0ld0ld0ld); run it again with today's code, or bring it with --older"),
    "shape": (lambda m: deep(m, "history", to=[m["history"][0], m["history"][1] | {"validation_loss": "low"}]), "is not made as records are (TypeError:"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_record_that_lies_is_refused(home, there, lie):
    made, arrays = record()
    false, said = LIES[lie][0](made), LIES[lie][1]
    refused(home, wrote(there, "results/sst2/baseline-seed0", false, arrays), said)
    bring([wrote(there, "results/sst2/baseline-seed0", made, arrays)])  # only the lie was wrong


@pytest.mark.parametrize(("arrays", "said"), [
    (None, "came without its predictions, baseline-seed0.npz"),
    ({"logits": np.full((N, 2), np.nan)}, "expected finite numbers, a row a label"),
    ({"logits": np.zeros((N - 1, 2))}, "has predictions of shape (199, 2) with labels of shape (200,)"),
    ({"labels": np.full(N, 2)}, "has predictions of 2 classes and labels from 2 to 2"),
    ({"labels": np.arange(N) // 100}, "says that its test loss is"),
    ({"logits": np.array([{}] * N)}, "baseline-seed0.npz beside its record cannot be read (Object arrays cannot be loaded when allow_pickle=False)"),
    ({"logits": np.zeros((N, 2**16))}, "has predictions of more than 67,108,864 bytes"),
])  # fmt: skip
def test_predictions_that_do_not_prove_are_refused(home, there, arrays, said):
    made, good = record()
    wrote(there, "results/sst2/baseline-seed0", made, good | arrays if arrays else None)
    if arrays and "logits" in arrays and arrays["logits"].nbytes > bundle.LARGEST:
        np.savez_compressed(there / "results/sst2/baseline-seed0.npz", **good | arrays)
    refused(home, there, said)


def test_rows_in_the_name_are_those_of_the_data(home, there):
    asked = rtx.settings("sst2", {"train_rows": 64})
    refused(home, wrote(there, "results/sst2-trainrows64/baseline-seed0", *record(asked)), "with 1,600 training rows")


# -- data, devices, records that are here ---------------------------------------------------------------------------------


def test_todays_data_must_be_the_same(home, there):
    asked = rtx.settings("sst2", {"source": "embedded"})
    data = dataset(**asked.data)
    logits = np.eye(2, dtype=np.float32)[data.test.labels] * 2
    made = deep(content(asked, test=metrics(logits, data.test.labels)), "data", to=data.facts)
    name, files = "_build/results/sst2/baseline-seed0", {}

    def packed(made, labels):
        root = there / "tree"
        wrote(root, name, made, {"logits": logits, "labels": labels})
        files.update({f"{name}{end}": (root / f"{name}{end}").read_bytes() for end in (".json", ".npz")})
        bundle.write(there / "records.tar", bundle.RECORDS, {}, files)
        return there / "records.tar"

    swapped = data.test.labels.copy()
    first = int(np.flatnonzero(swapped != swapped[0])[0])
    swapped[[0, first]] = swapped[[first, 0]]
    refused(home, packed(deep(made, "data", "sha256", to="e" * 64), data.test.labels), "was made on other data than today's: its sha256 is 'eeeeeeee")
    refused(home, packed(deep(made, "data", "n_train", to=7), data.test.labels), "its n_train is 7, expected 288")
    logits = logits[[first, *range(1, first), 0, *range(first + 1, len(logits))]]
    refused(home, packed(made, swapped), "has predictions for other labels than those of the test part")
    logits = np.eye(2, dtype=np.float32)[data.test.labels] * 2
    bring([str(packed(made, data.test.labels))])
    assert (home / f"{name}.json").exists() and not (home / "results").exists()


def test_runs_of_a_variant_share_their_data(home, there):
    wrote(there, "results/sst2/baseline-seed0", *record())
    made, arrays = record(seed=1)
    refused(home, wrote(there, "results/sst2/baseline-seed1", deep(made, "data", "sha256", to="e" * 64), arrays), "was made on other data (eeeeeeeeeeee…) than results/sst2/baseline-seed0.json (dddddddddddd…)")
    for path in there.glob("results/sst2/baseline-seed1.*"):
        path.unlink()
    bring([str(there)])
    wrote(there, "results/sst2/baseline-seed1", deep(made, "data", "sha256", to="e" * 64), arrays)  # the other half is here already
    refused(home, there, "the runs of a variant must share theirs")
    flipped = {"logits": arrays["logits"][:, ::-1].copy(), "labels": 1 - arrays["labels"]}
    for seed in (2, 3):
        made = record(seed=seed)[0]
        wrote(there, f"results/sst2/baseline-seed{seed}", made | {"test": metrics(flipped["logits"], flipped["labels"].astype(int))} if seed == 2 else made, flipped if seed == 2 else arrays)
    (there / "results/sst2/baseline-seed1.json").unlink(), (there / "results/sst2/baseline-seed1.npz").unlink()
    refused(home, there, "has predictions for other labels than the runs of its variant")


def test_other_record_of_that_name_is_replaced_only_when_told(home, there, capsys):
    bring([wrote(there, "results/sst2/baseline-seed0", *record())])
    path = wrote(there, "results/sst2/baseline-seed0", *record(wrong=range(20)))
    refused(home, path, "results/sst2/baseline-seed0.json is another record than the one of that name here; --replace puts it in its place.")
    bring([path, "--replace"])
    assert "test accuracy 0.9000" in capsys.readouterr().out
    assert (home / "results/sst2/baseline-seed0.npz").read_bytes() == (there / "results/sst2/baseline-seed0.npz").read_bytes()


def test_older_code_is_brought_with_a_note(there, capsys):
    bring([wrote(there, "results/sst2/baseline-seed0", *record(code=OTHER_CODE)), "--older"])
    assert "· made by another version of the code (commit 0ld0ld0ld)\n" in capsys.readouterr().out


def test_runs_of_a_variant_are_timed_on_one_device(home, there):
    bring([wrote(there, "results/sst2/baseline-seed0", *record())])
    made, arrays = record(model="recurrent")
    path = wrote(there, "results/sst2/recurrent-seed0", deep(made, "latency", "environment", "device", to="Test GPU"), arrays)
    refused(home, path, "results/sst2/recurrent-seed0.json was timed on 'Test GPU' and results/sst2/baseline-seed0.json on 'Test CPU'; ")
    bring([path, "--mixed"])


# -- language models, measurements ----------------------------------------------------------------------------------------


def language_record(model="gpt-1", variant_of=None, **given) -> dict:
    asked = language_settings("shakespeare", {"recipe": "report", "steps": 20} | given)
    architecture, overrides = asked.build_arguments(model, 65)
    losses, sizes = [2.0, 2.5], [100, 50]
    base = content(SST2)
    made = {k: base[k] for k in ("schema", "seed", "size_mb", "parameters", "environment", "seconds", "peak_memory_mib", "finished")} | {
        "experiment": asked.variant, "model": model, "protocol": "reduced", "samples": [],
        "config": {"model": {"architecture": architecture, **asdict(model_config(architecture, **overrides))},
                   "training": {"recipe": "report", "budget": asked.budget, **asdict(asked.training_of(model)), "seeds": asdict(Seeds.of(0))}},
        "data": {"name": "tiny", "source": "hub", "sha256": "c" * 64, "vocabulary": 65, "n_train": 900, "n_validation": 150, "n_test": 150},
        "history": [{"step": 20, "tokens": 9, "seconds": 1.0, "learning_rate": 1e-3, "train_loss": 2.0, "validation_loss": 2.2, "validation_error": 0.1}],
        "selected": {"step": 20, "validation_loss": 2.2},
        "test": {"n": 150, "loss": (200 + 125) / 150, "error": 0.1, "last_loss": 2.2, "batch_losses": losses, "batch_sizes": sizes},
        "latency": {"measured": [{"length": 8, "median_ms": 1.0, "p10_ms": 1.0, "p90_ms": 1.0, "tokens": 3, "threads": 1}], "environment": base["environment"]},
        "code": {"commit": "c0ffee", "clean": True, "fingerprints": [fingerprint(LANGUAGE["shakespeare"].files)]},
    }  # fmt: skip
    return made | {"key": run_key(made["config"], made["data"]["sha256"], 0)}


LANGUAGE_NAME = "results/language/shakespeare-report-reduced-steps20/gpt-1-seed0"


@pytest.mark.parametrize(("lie", "said"), [
    (lambda m: deep(m, "test", "loss", to=2.0), "has a test loss that its test batches do not give"),
    (lambda m: deep(m, "config", "training", "steps", to=30), "its configuration is that of shakespeare-report-reduced-steps30"),
    (lambda m: deep(m, "config", "model", "num_layers", to=2), "has num_layers 2 in its model, where a run of that name has 1 today"),
    (lambda m: deep(m, "model", to="kausik"), "holds what belongs at results/language/shakespeare-report-reduced-steps20/kausik-seed0.json"),
    (lambda m: deep(m, "config", "training", "recipe", to="none"), "Unknown recipe 'none'"),
    (lambda m: deep(m, "data", to={k: v for k, v in m["data"].items() if k != "vocabulary"}), "is not made as records are (KeyError: 'vocabulary')"),
    (lambda m: m | {"code": OTHER_CODE}, "made by another version of the code (commit 0ld0ld0ld)"),
])  # fmt: skip
def test_language_records_are_proven_too(home, there, lie, said, capsys):
    refused(home, wrote(there, LANGUAGE_NAME, lie(language_record())), said)
    bring([wrote(there, LANGUAGE_NAME, language_record())])
    assert "shakespeare-report-reduced-steps20 · gpt-1 · seed 0 · test loss 2.1667, data not at hand to compare\n" in capsys.readouterr().out


def test_longer_training_is_that_of_its_model(there):
    """`control-long` is trained for more steps than the others of its variant."""
    from rtx_core.travel.proof import Today, prove

    asked = language_settings("tinystories", {"models": ["control-long"], "steps": 20})
    architecture, overrides = asked.build_arguments("control-long", 4096)
    made = language_record() | {"experiment": asked.variant, "model": "control-long"}
    made["config"] = {"model": {"architecture": architecture, **asdict(model_config(architecture, **overrides))},
                      "training": {"recipe": "report", "budget": "reduced", **asdict(asked.training_of("control-long")), "seeds": asdict(Seeds.of(0))}}  # fmt: skip
    made["data"]["vocabulary"] = 4096
    assert made["config"]["training"]["steps"] == 65
    name = f"results/language/{asked.variant}/control-long-seed0.json"
    wrote(there, name, made | {"key": run_key(made["config"], "c" * 64, 0)})
    assert prove(there, name, Today()).said.startswith(f"{asked.variant} · control-long")


def test_measurements_come_by_their_own_check(home, there, capsys):
    made, arrays = record()
    base = {k: made[k] for k in ("schema", "model", "seed", "protocol", "data", "environment", "finished")}
    yardstick = base | {"kind": "yardstick", "of": "sst2", "name": "bag-of-words-seed0", "test": made["test"], "code": made_by("yardstick")}
    attention = base | {"kind": "attention", "of": "sst2", "name": "baseline-seed0", "run": made["key"], "code": made_by("attention")}
    wrote(there, "results/attention/sst2/baseline-seed0", attention)
    refused(home, there, f"measures the run {made['key']}, of which there is no record here; bring that too.")
    wrote(there, "results/sst2/baseline-seed0", made, arrays)
    name = "results/yardstick/sst2/bag-of-words-seed0"
    refused(home, wrote(there, name, yardstick | {"test": made["test"] | {"accuracy": 0.9}}, arrays), "says that its test accuracy is 0.9, and its predictions give 0.8;")
    refused(home, wrote(there, name, yardstick | {"of": "yelp"}, arrays), "sst2/bag-of-words-seed0.json holds the measurement yardstick/yelp/bag-of-words-seed0")
    refused(home, wrote(there, name, yardstick | {"code": OTHER_CODE}, arrays), "made by another version of the code")
    refused(home, wrote(there, name, yardstick | {"data": made["data"] | {"sha256": "e" * 64}}, arrays), "the runs of a variant must share theirs")
    wrote(there, name, yardstick, arrays)
    benchmark = {"benchmark": "latency", "environment": made["environment"], "code": {}, "finished": ""}
    refused(home, wrote(there, "results/benchmarks/latency-cuda", benchmark), "holds what belongs at results/benchmarks/latency-cpu.json")
    (there / "results/benchmarks/latency-cuda.json").rename(there / "results/benchmarks/latency-cpu.json")
    refused(home, wrote(there, "results/benchmarks/startup-cpu", {"benchmark": "startup"}), "startup-cpu.json lacks environment, code, finished")
    (there / "results/benchmarks/startup-cpu.json").unlink()
    found = profile("sst2", "embedded", "official", 128, 0.5)
    found["data"] |= {"source": "hub", "name": "stanfordnlp/sst2"}
    refused(home, wrote(there, "results/data/sst2-official-128", found), "holds the profile of 'stanfordnlp/sst2', which has another name")
    (there / "results/data/sst2-official-128.json").rename(there / "results/data/sst2-official-50pct-128.json")
    bring([str(there)])
    assert "5 brought" in capsys.readouterr().out
    refused(home, wrote(there, "results/architectures", {}), "results/architectures.json is neither the record of a run nor a measurement; only these travel.")
