"""The way off Jupyter Book 1 stays open: the newest Sphinx builds the book, from a copy whose links are followed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from check_html import problems
from jupyter_cache import get_cache

from rtx_core.paths import REPOSITORY

OUTPUTS = sorted(REPOSITORY.glob("_build/outputs/*/global.db"))
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not os.environ.get("RTX_LONG"), reason="minutes: RTX_LONG=1"),
    pytest.mark.skipif(not OUTPUTS, reason="the book is not built: run `make book`"),
]
# What Jupyter Book brings along, and the conf.py that it writes loads.
NEW = ["sphinx", "myst-nb", "myst-parser", "sphinx-book-theme", "sphinx-design", "sphinx-copybutton"]
NEW += ["sphinx-togglebutton", "sphinx-thebe", "sphinx-comments", "sphinx-external-toc", "sphinx-multitoc-numbering"]
NEW += ["sphinxcontrib-bibtex"]


def run(root: Path, *words: str, path: tuple[Path, ...] = ()) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RTX_")}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, (*path, root, root / "book/_ext")))}
    return subprocess.run([sys.executable, *words], cwd=root, env=environment, capture_output=True, text=True)


@pytest.fixture
def newest(tmp_path) -> Path:
    """A folder of the newest releases; everything else comes from this environment."""
    folder = tmp_path / "newest"
    done = run(tmp_path, "-m", "pip", "install", "--quiet", "--retries", "1", "--target", str(folder), *NEW)
    if "from versions: none" in done.stderr:
        pytest.skip("no package index is reachable")
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture
def copy(tmp_path) -> Path:
    """Files alone, with what `make book` executed in the notebooks."""
    root = tmp_path / "copy"
    root.mkdir()
    names = [path.name for path in REPOSITORY.iterdir() if not path.name.startswith((".", "_build"))]
    subprocess.run(["cp", "-rL", *names, root], cwd=REPOSITORY, check=True)
    assert not [path for path in root.rglob("*") if path.is_symlink()]
    cache = get_cache(OUTPUTS[0].parent)
    for path in [*root.glob("book/*.ipynb"), *root.glob("book/notebooks/*.ipynb")]:
        try:
            executed = cache.merge_match_into_notebook(nbformat.read(path, 4))[1]
        except KeyError:
            pytest.skip(f"{path.name} has changed since the book was built: run `make book`")
        nbformat.write(executed, path)
    return root


def test_the_newest_sphinx_builds_the_book_without_jupyter_book(copy, newest):
    written = run(copy, "-c", "from jupyter_book.cli.main import main; main()", "config", "sphinx", "book")
    assert written.returncode == 0, written.stderr
    settings = (copy / "conf.py").read_text(encoding="utf-8")
    (copy / "conf.py").unlink()  # it lies beside _config.yml, and Sphinx reads paths from where it lies
    (copy / "book/conf.py").write_text(settings.replace("'jupyter_book', ", ""), encoding="utf-8")
    line = ("-m", "sphinx", "book", "_build/html", "-D", "nb_execution_mode=off", "-W", "-n", "--keep-going")
    built = run(copy, *line, path=(newest,))
    assert built.returncode == 0, built.stderr[-3000:]
    assert int(re.search(r"Running Sphinx v(\d+)", built.stdout)[1]) > 7
    assert problems(copy / "_build/html") == []
