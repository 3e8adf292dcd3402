"""Settings: what a notebook may say, what is refused with which sentence, and what a variant is called."""

import ast
import functools
import pathlib
from dataclasses import fields

import nbformat
import numpy as np
import papermill
import pytest

from rtx_core.errors import RtxError
from rtx_core.parameters import CLASSIFIERS, EXPERIMENTS, Settings, settings
from rtx_core.paths import REPOSITORY
from rtx_core.training.protocol import Protocol

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))


def refusal(given: dict, experiment: str = "sst2") -> str:
    with pytest.raises(RtxError) as error:
        settings(experiment, given)
    return str(error.value)


def test_nothing_given_is_the_experiments_default():
    for name, default in EXPERIMENTS.items():
        assert settings(name, {}) == default and default.variant == default.experiment == name
    assert settings("sst2", {}).protocol == Protocol()


def test_every_setting_can_be_given():
    given = {
        "models": ["recurrent"], "seeds": [3, 1], "source": "embedded", "split": "official", "fraction": 0.5, "length": "short",
        "length_fraction": 0.1, "max_length": 64, "train_rows": 100, "residual": "paper", "num_layers": 2, "num_passes": 3, "device": "cpu", "learning_rate": 1e-4, "weight_decay": 0.1, "batch_size": 8, "epochs": 2, "warmup_steps": 0, "clip_norm": 2.0,
        "plateau_factor": 0.1, "plateau_patience": 1, "stop_min_delta": 0.0, "stop_patience": 1, "eval_every": 10, "precision": "bf16",
    }  # fmt: skip
    made, names = settings("sst2", given), {f.name for f in fields(Protocol)}
    assert {name: getattr(made.protocol if name in names else made, name) for name in given} == given
    assert set(given) == names | {f.name for f in fields(Settings)} - {"experiment", "corpus", "protocol"}


def test_settings_do_not_change_the_defaults():
    settings("sst2", {"models": ["recurrent"], "epochs": 1})
    assert settings("sst2", {}).models == ["baseline", "recurrent"] and settings("sst2", {}).protocol.epochs == 5


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("epoch", "epochs"), ("learning_rat", "learning_rate"), ("seed", "seeds"), ("Models", "models"), ("batchsize", "batch_size")],
)
def test_unknown_name_suggests_the_nearest(wrong, near):
    said = refusal({wrong: 1})
    assert said.startswith(f"Unknown parameter {wrong!r}: ") and "max_length" in said and said.endswith(".")
    assert f"did you mean {near!r}?" in said


def test_what_is_too_far_off_gets_the_choices_without_a_guess():
    said = refusal({"zzz": 1})
    assert "did you mean" not in said and "epochs" in said and "models" in said


@pytest.mark.parametrize("own", ["experiment", "corpus", "protocol"])
def test_what_the_experiment_decides_is_no_parameter(own):
    assert refusal({own: "sst2"}).startswith(f"Unknown parameter {own!r}")


def test_unknown_experiment_suggests_the_nearest():
    assert refusal({}, "ss2").startswith("Unknown experiment 'ss2': did you mean 'sst2'?")
    assert "quickstart" in refusal({}, "imagenet")


@pytest.mark.parametrize(
    ("name", "value", "got", "expected"),
    [
        ("models", "[baseline]", "str", "list"),
        ("seeds", "[0]", "str", "list"),
        ("seeds", 0, "int", "list"),
        ("seeds", (0, 1), "tuple", "list"),
        ("source", 3, "int", "str"),
        ("source", None, "NoneType", "str"),
        ("precision", 16, "int", "str"),
        ("epochs", "2", "str", "int"),
        ("epochs", 2.0, "float", "int"),
        ("epochs", True, "bool", "int"),
        ("train_rows", False, "bool", "int"),
        ("max_length", "true", "str", "int"),
        ("learning_rate", "3e-5", "str", "float"),
        ("learning_rate", True, "bool", "float"),
        ("learning_rate", [3e-5], "list", "float"),
    ],
)
def test_wrong_type_is_named_with_the_right_one(name, value, got, expected):
    said = refusal({name: value})
    assert said.startswith(f"Parameter {name} is {value!r} of type {got}; expected {expected}.")
    assert ("papermill" in said) == (expected == "list")


@pytest.mark.parametrize(
    ("name", "value"),
    [("models", []), ("seeds", []), ("models", ["baseline", "baseline"]), ("seeds", [1, 0, 1]), ("models", ["baseline", 1]), ("models", [["baseline"]]),
     ("seeds", ["0"]), ("seeds", [0.0]), ("seeds", [True]), ("seeds", [None])],
)  # fmt: skip
def test_lists_hold_distinct_values_of_one_type(name, value):
    said = refusal({name: value})
    assert said.startswith(f"Parameter {name} is {value!r}; expected a list of distinct ") and f"-y '{name}: [a, b]'" in said


def test_negative_seed_is_refused():
    assert refusal({"seeds": [0, -1]}) == "Parameter seeds is [0, -1]; seeds are 0 or above."


def test_values_that_no_protocol_can_have_are_refused():
    assert "epochs is 0" in refusal({"epochs": 0})
    assert "learning_rate is nan" in refusal({"learning_rate": float("nan")})
    assert refusal({"precision": "bf-16"}).startswith("Unknown precision 'bf-16': did you mean 'bf16'?")


def test_whole_number_is_accepted_for_a_float():
    made = settings("sst2", {"clip_norm": 2, "learning_rate": 1})
    assert made.protocol.clip_norm == 2.0 and type(made.protocol.clip_norm) is float
    assert settings("sst2", {"clip_norm": 1}) == settings("sst2", {})


@pytest.mark.parametrize("models", [["recurent"], ["baseline", "recurent"]])
def test_unknown_model_suggests_the_nearest(models):
    assert refusal({"models": models}).startswith("Unknown model 'recurent': did you mean 'recurrent'? the choices are baseline, recurrent, ")


def test_models_named_without_torch_are_those_that_exist():
    from rtx_core.models import MODELS

    assert set(CLASSIFIERS) <= set(MODELS)


def test_notebook_may_narrow_the_parameters_and_add_its_own():
    narrow = {"only": ["source", "max_length"], "also": {"splits": list}}
    assert settings("sst2", {"splits": ["seeded"], "max_length": 64}, **narrow) == settings("sst2", {"max_length": 64})
    for given, said in (({"epochs": 1}, "Unknown parameter 'epochs'"), ({"splits": "seeded"}, "Parameter splits is 'seeded' of type str; expected list"),
                        ({"split": "seeded"}, "Unknown parameter 'split': did you mean 'splits'?")):  # fmt: skip
        with pytest.raises(RtxError) as error:
            settings("sst2", given, **narrow)
        assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fraction": 0.0}, "fraction is 0.0; it is a share of the texts, above 0 and at most 1."),
        ({"fraction": float("nan")}, "fraction is nan;"),
        ({"fraction": 10}, "fraction is 10.0;"),
        ({"length_fraction": -0.3}, "length_fraction is -0.3;"),
        ({"length": "shrt"}, "Unknown length 'shrt': did you mean 'short'?"),
    ],
)
def test_subsets_that_cannot_be_are_refused(given, said):
    assert refusal(given).startswith(said)


def test_a_setting_compared_by_a_notebook_is_a_list_there():
    made = settings("sst2", {"fraction": [0.1, 0.5], "epochs": 2}, also={"fraction": list})
    assert made == settings("sst2", {"epochs": 2})
    with pytest.raises(RtxError, match="Parameter fraction is 0.1 of type float; expected list"):
        settings("sst2", {"fraction": 0.1}, also={"fraction": list})


def test_settings_but_for_a_few_are_checked_too():
    made = settings("sst2", {"seeds": [3]}).but(fraction=0.5, epochs=1)
    assert (made.seeds, made.fraction, made.protocol.epochs, made.variant) == ([3], 0.5, 1, "sst2-50pct-epochs1")
    assert settings("multi-domain", {"seeds": [3]}).but(experiment="multi-domain-imdb") == settings("multi-domain-imdb", {"seeds": [3]})
    for changes, said in (({"fraction": "0.5"}, "expected float"), ({"fraction": 2.0}, "at most 1"), ({"experiment": "sst-2"}, "did you mean 'sst2'")):
        with pytest.raises(RtxError, match=said):
            settings("sst2", {}).but(**changes)


# -- a notebook's globals ---------------------------------------------------------------------------------------------


def test_what_is_no_plain_value_is_no_parameter():
    noise = {
        "np": np, "rtx": pathlib, "helper": refusal, "Path": pathlib.Path, "Settings": Settings, "settings": settings("quickstart", {}),
        "here": pathlib.Path("."), "half": functools.partial(max, 1), "open": open, "append": [].append, "array": np.ones(2),
        "In": ["", "x = 1"], "Out": {1: 2}, "exit": object(), "quit": object(), "get_ipython": lambda: None,
        "_": 3, "__": 4, "_i": "x", "_ih": [""], "_1": 2, "__name__": "__main__", "__doc__": None, "__builtins__": {},
    }  # fmt: skip
    assert settings("sst2", noise) == settings("sst2", {})
    assert settings("sst2", noise | {"epochs": 2}) == settings("sst2", {"epochs": 2})


@pytest.mark.parametrize("value", [1, "x", None, [], {}, 1.5, (1,), {1}, True])
def test_every_plain_value_must_have_a_known_name(value):
    assert refusal({"leftover": value}).startswith("Unknown parameter 'leftover'")


# -- variants ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "sst2"),
        ({"models": ["recurrent"], "seeds": [1, 2], "device": "cpu", "source": "embedded"}, "sst2"),
        ({"epochs": 5, "learning_rate": 3e-5}, "sst2"),
        ({"epochs": 1}, "sst2-epochs1"),
        ({"split": "official"}, "sst2-official"),
        ({"max_length": 64}, "sst2-maxlength64"),
        ({"train_rows": 48}, "sst2-trainrows48"),
        ({"residual": "paper"}, "sst2-residualpaper"),
        ({"learning_rate": 1e-5}, "sst2-learningrate1e-05"),
        ({"split": "grouped"}, "sst2-grouped"),
        ({"fraction": 0.1}, "sst2-10pct"),
        ({"fraction": 0.5, "epochs": 1}, "sst2-50pct-epochs1"),
        ({"fraction": 1, "length_fraction": 0.1}, "sst2"),
        ({"length": "short"}, "sst2-short"),
        ({"length": "long", "length_fraction": 0.1}, "sst2-long10pct"),
        ({"length": "short", "fraction": 0.125, "split": "official"}, "sst2-official-short-12.5pct"),
        ({"precision": "bf16", "epochs": 2, "split": "published", "train_rows": 10}, "sst2-published-trainrows10-epochs2-precisionbf16"),
    ],
)
def test_variant_names_every_setting_that_decides_numbers(given, name):
    assert settings("sst2", given).variant == name


def test_variants_are_counted_from_the_experiments_own_default():
    assert settings("quickstart", {"epochs": 1}).variant == "quickstart"
    assert settings("quickstart", {"epochs": 5}).variant == "quickstart-epochs5"


def test_reduced_is_what_differs_from_the_report():
    assert settings("sst2", {}).reduced == {}
    assert settings("sst2", {"seeds": [7], "source": "embedded", "split": "official", "residual": "paper"}).reduced == {}
    assert settings("sst2", {"epochs": 1, "train_rows": 48}).reduced == {"epochs": 1, "train_rows": 48}
    assert settings("sst2", {"max_length": 64}).reduced == {"max_length": 64} and settings("sst2", {"max_length": 256}).reduced == {}
    assert settings("sst2", {"fraction": 0.1, "length": "short", "length_fraction": 0.1}).reduced == {}  # the experiment, not its budget
    assert settings("yelp", {"max_length": 512, "fraction": 0.5, "train_rows": 9}).reduced == {"train_rows": 9}
    assert settings("quickstart", {}).reduced == {"learning_rate": 3e-4, "epochs": 1, "eval_every": 55}


# -- the notebooks ----------------------------------------------------------------------------------------------------


def asked_by(path) -> tuple[str, dict, dict]:
    """(experiment, all tagged parameters with their annotations, the limits given to `rtx.settings`) of a notebook."""
    cells = nbformat.read(path, as_version=4).cells
    (tagged,) = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    values = {node.target.id: (node.annotation.id, ast.literal_eval(node.value)) for node in ast.parse(tagged.source).body}
    calls = [node for cell in cells if "rtx.settings(" in cell.source for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
    (call,) = [node for node in calls if ast.unparse(node.func) == "rtx.settings"]
    assert ast.unparse(call.args[1]) == "globals()"
    limits = {word.arg: eval(ast.unparse(word.value)) for word in call.keywords}  # of `only` and `also`: literals and types
    return call.args[0].value, values, limits


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_as_it_stands_renders_the_record_named_after_its_experiment(path):
    experiment, values, limits = asked_by(path)
    given = {name: value for name, (_, value) in values.items()}
    assert settings(experiment, given, **limits) == (EXPERIMENTS[experiment] if experiment in EXPERIMENTS else settings(experiment, {}))
    with pytest.raises(RtxError, match="Unknown parameter 'eposh'"):
        settings(experiment, given | {"eposh": 1}, **limits)
    for annotation, value in values.values():
        assert type(value).__name__ == annotation


def test_there_are_notebooks():
    assert {"data", "quickstart", "sst2"} <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_papermill_offers_every_parameter_with_its_default(path):
    offered = papermill.inspect_notebook(str(path))
    assert {name: (entry["inferred_type_name"], ast.literal_eval(entry["default"])) for name, entry in offered.items()} == asked_by(path)[1]


def test_a_known_name_is_never_ignored():
    with pytest.raises(RtxError, match="Parameter epochs is .* of type int64; expected int"):
        settings("sst2", {"epochs": np.int64(2)})
