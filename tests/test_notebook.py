"""Parameters that papermill injects are checked against the notebook's own."""

import json
from types import SimpleNamespace

import pytest

from rtx_core.errors import RtxError
from rtx_core.report import notebook

OWN = "models = ['baseline', 'recurrent']\nepochs = 5\nlearning_rate = 3e-5\n"
FINE = ["models = ['recurrent']", "epochs = 1", "learning_rate = 1", "learning_rate = '1e-4'"]
FINE += [""]
WRONG = [
    ("epoch = 1", "Unknown parameter 'epoch': did you mean 'epochs'?"),
    ("epochs = 1.5", "Parameter epochs is 1.5 of type float; expected int."),
    ("epochs = True", "Parameter epochs is True of type bool; expected int."),
    ("models = 'recurrent'", "expected list.  With papermill: -y 'models: [a, b]'."),
    ("learning_rate = 'fast'", "Parameter learning_rate is 'fast' of type str; expected float."),
]


def test_what_differs_from_the_notebooks_file_is_told(tmp_path, monkeypatch):
    cell = {"source": OWN.splitlines(keepends=True), "metadata": {"tags": ["parameters"]}}
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": [{"source": [], "metadata": {}}, cell]}))
    here = {"models": ["mine"], "epochs": 5, "learning_rate": 1.0, "other": 3}
    monkeypatch.setattr(notebook.IPython, "get_ipython", lambda: SimpleNamespace(user_ns=here))
    changed = notebook.changed_parameters(tmp_path / "n.ipynb")
    assert changed == {"models": ["mine"], "learning_rate": 1.0}


def inject(cell: str, monkeypatch) -> None:
    cells = ["", "import rtx_core as rtx", OWN, f"# Parameters\n{cell}\n", "rtx.check_parameters()"]
    shell = SimpleNamespace(user_ns={"In": cells}, set_custom_exc=lambda kinds, show: None)
    monkeypatch.setattr(notebook.IPython, "get_ipython", lambda: shell)
    notebook.check_parameters()


@pytest.mark.parametrize(("cell", "said"), WRONG)
def test_another_name_or_type_is_one_sentence(cell, said, monkeypatch):
    for fine in FINE:
        inject(fine, monkeypatch)
    with pytest.raises(RtxError) as error:
        inject(cell, monkeypatch)
    assert said in str(error.value) and "\n" not in str(error.value)
