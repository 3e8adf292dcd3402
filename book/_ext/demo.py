"""The scripts of the page *Try it*, put where the page finds them; no other page loads them.

They lie outside `book/_static`, all of whose scripts Jupyter Book loads on every page.
"""

import json
import shutil
from pathlib import Path

from sphinx.application import Sphinx

import rtx_core as rtx
from rtx_core import paths
from rtx_core.models import registry

SOURCE = paths.REPOSITORY / "book" / "demo"


def recorded_shapes() -> list[dict]:
    """Width, layers and passes of every encoder that was run at the full budget, and its mean accuracy over seeds."""
    table = rtx.results(budget="full")
    if not len(table) or "num_labels" not in table:
        return []
    table = table[table["num_labels"].notna()]
    table["task"] = table["name"].str.replace(r"-num(layers|passes)\d+", "", regex=True)
    shape = ["architecture", "hidden_size", "num_layers", "num_passes", "task"]
    means = table.groupby(shape, sort=False).agg(
        parameters=("parameters", "first"), accuracy=("accuracy", "mean"), seeds=("seed", "count")
    )
    return [
        {
            "title": registry.find(architecture).title,
            "width": int(width),
            "layers": int(layers),
            "passes": int(passes),
            "task": task,
            "parameters": int(row.parameters),
            "accuracy": row.accuracy,
            "seeds": int(row.seeds),
        }
        for (architecture, width, layers, passes, task), row in means.iterrows()
    ]


def copy_scripts(app: Sphinx) -> None:
    if app.builder.format != "html":
        return
    target = Path(app.outdir, "_static", "demo")
    shutil.copytree(SOURCE, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.json"))
    runs = json.dumps(recorded_shapes(), indent=1)
    paths.write_atomically(
        target / "runs.js", f"var rtxDemo = rtxDemo || {{}};\nrtxDemo.runs = {runs};\n".encode()
    )


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", copy_scripts)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
