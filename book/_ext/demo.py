"""The scripts of the page *Try it*, put where the page finds them; no other page loads them.

They lie outside `book/_static`, all of whose scripts Jupyter Book loads on every page.
"""

import shutil
from pathlib import Path

from sphinx.application import Sphinx

from rtx_core import paths, records
from rtx_core.models import registry
from study import paper

SOURCE = paths.REPOSITORY / "book" / "demo"
NAMES = {"hidden_size": "width", "num_layers": "layers", "num_passes": "passes"}  # of the records: of the script


def recorded_shapes() -> str:
    """Width, layers and passes of every encoder of the paper at the full budget, and its mean accuracy over seeds."""
    table = records.frame(paper.records(), budget="full")
    if not len(table) or "num_labels" not in table:
        return "[]"
    table = table[table["num_labels"].notna()].rename(columns=NAMES)
    table["task"] = table["name"].str.replace(r"-num(layers|passes)\d+", "", regex=True)
    table["title"] = table["architecture"].map(lambda name: registry.find(name).title)
    means = table.groupby(["title", *NAMES.values(), "task"], sort=False, as_index=False).agg(
        parameters=("parameters", "first"), accuracy=("accuracy", "mean"), seeds=("seed", "count")
    )
    return means.to_json(orient="records", indent=1)


def copy_scripts(app: Sphinx) -> None:
    if app.builder.format != "html":
        return
    target = Path(app.outdir, "_static", "demo")
    shutil.copytree(SOURCE, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.json"))
    runs = f"var rtxDemo = rtxDemo || {{}};\nrtxDemo.runs = {recorded_shapes()};\n"
    (target / "runs.js").write_text(runs, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", copy_scripts)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
