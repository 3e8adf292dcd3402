"""Builds that are stopped at any moment or meet another, folders that were moved or copied: the next `make` works."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import build_lock
import paper
import pytest
from nbformat import v4
from nbformat import write as write_notebook
from small_book import build_book
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.errors import ConfigError

from rtx_core import records
from rtx_core.paths import REPOSITORY

# Stands for Python, and for what it puts into an environment; it hangs at the step that $STOP names.
PYTHON = r"""#!/bin/sh
step() {
  echo "$1" >>log; [ "$STOP" = "$1" ] || return 0
  touch reached; i=0; while [ $i -lt 600 ]; do sleep 0.1; i=$((i + 1)); done  # no signal falls between two children
}
here=$(dirname "$0")
case "$*" in
  "-m venv --clear "*)
    rm -rf "$4"; mkdir -p "$4/bin" "$4/lib/python3/site-packages"; cp "$0" "$4/bin/python"
    step venv; touch "$4/bin/pip" ;;
  "-m pip --version") [ -e "$here/pip" ] ;;
  "-m pip install"*-r*) step packages; cp "$0" "$here/papermill" ;;
  "-m pip install"*-e*) step rtx; pwd -P >"$here/../lib/python3/site-packages/rtx_core.pth" ;;
  "-m snakemake"*) mkdir -p _build/paper/.snakemake/locks; touch $LEAVES; exit 1 ;;
  *sys.version\)) echo "VERSION" ;;
  --kernel*) shift 4; trap 'echo half >"$2"; exit 1' INT; step papermill; echo whole >"$2" ;;
esac
"""


@pytest.fixture
def project(tmp_path) -> Path:
    """A project of the Makefile alone."""
    folder = tmp_path / "project"
    for name in ("notebooks", "book", "rtx_core", "study"):
        (folder / name).mkdir(parents=True)
    for name in ("_toc.yml", "requirements.lock", "pyproject.toml", "notebooks/quickstart.ipynb"):
        (folder / name).touch()
    shutil.copy(REPOSITORY / "Makefile", folder)
    return folder


def python(folder: Path, version: str = "3.11.2") -> str:
    path = folder.parent / f"python-{version}"
    path.write_text(PYTHON.replace("VERSION", version))
    path.chmod(0o755)
    return f"PYTHON={path}"


def start(folder: Path, *words: str, **environment: str) -> subprocess.Popen:
    variables = {"PATH": os.environ["PATH"]} | environment
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
    return subprocess.Popen(["make", *words], cwd=folder, env=variables, **pipe)


def make(folder: Path, *words: str) -> tuple[int, str]:
    process = start(folder, *words)
    said, _ = process.communicate(timeout=60)
    return process.returncode, said


def stop(process: subprocess.Popen, reached: Path) -> None:
    """Ctrl-C, which a terminal sends to all of a command's processes, once a file is there."""
    wait_for(reached)
    reached.unlink()
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode != 0


def wait_for(*files: Path) -> None:
    end = time.monotonic() + 60
    while not all(file.exists() for file in files):
        assert time.monotonic() < end, files
        time.sleep(0.02)


def steps(folder: Path) -> list[str]:
    log = folder / "log"
    taken = log.read_text().split() if log.exists() else []
    log.unlink(missing_ok=True)
    return taken


ENVIRONMENT = ["venv", "packages", "rtx"]


@pytest.mark.parametrize("moment", ENVIRONMENT)
def test_an_environment_that_was_stopped_is_made_anew(project, moment):
    line = [".venv/.installed", python(project)]
    stop(start(project, *line, STOP=moment), project / "reached")
    assert not (project / ".venv/.installed").exists() and steps(project)[-1] == moment
    assert make(project, *line)[0] == 0 and steps(project) == ENVIRONMENT
    assert make(project, *line)[0] == 0 and steps(project) == []
    (project / "requirements.lock").touch()
    stop(start(project, *line, STOP="packages"), project / "reached")  # as it was brought up to date
    assert steps(project) == ["packages"]
    assert make(project, *line)[0] == 0 and steps(project) == ENVIRONMENT


def test_of_two_first_builds_one_waits(project):
    line = [".venv/.installed", python(project)]
    first = start(project, *line, STOP="packages")
    wait_for(project / "reached")
    second = start(project, *line)
    assert "waits" in second.stdout.readline()
    stop(first, project / "reached")
    second.communicate(timeout=60)
    assert second.returncode == 0 and steps(project) == ["venv", "packages", *ENVIRONMENT]


def test_an_environment_is_of_the_python_that_is_named_and_of_this_folder(project):
    old, new = python(project), python(project, "3.13.0")
    assert make(project, ".venv/.installed", old)[0] == 0 and steps(project) == ENVIRONMENT
    assert make(project, ".venv/.installed", new)[0] == 0 and steps(project) == ENVIRONMENT
    for words in ([new], []):  # without a name the one that is there
        assert make(project, ".venv/.installed", *words)[0] == 0 and steps(project) == [], words
    moved = project.rename(project.with_name("moved to here"))
    assert make(moved, ".venv/.installed", python(moved, "3.13.0"))[0] == 0 and steps(moved) == ENVIRONMENT
    (moved / ".venv/bin/python").unlink()  # as an update of the system does
    assert make(moved, ".venv/.installed", python(moved))[0] == 0 and steps(moved) == ENVIRONMENT
    (moved / ".venv/.installed").unlink()  # not made here, and usable
    assert make(moved, ".venv/.installed")[0] == 0 and steps(moved) == ENVIRONMENT[1:]


def test_a_quick_start_that_was_stopped_runs_again(project):
    made, line = project / "_build/quickstart.ipynb", ["_build/quickstart.ipynb", python(project)]
    stop(start(project, *line, STOP="papermill"), project / "reached")
    time.sleep(0.1)  # papermill writes what it has, after make is gone
    assert not made.exists() and steps(project)[-1] == "papermill"
    assert make(project, *line)[0] == 0 and made.read_text() == "whole\n" and steps(project) == ["papermill"]
    assert make(project, *line)[0] == 0 and steps(project) == []


def test_a_lock_that_a_killed_workflow_left_has_advice_that_works(project):
    (project / "requirements-workflow.lock").touch()
    line = ["-s", "paper", python(project), "GPUS=0"]
    told = {}
    for lock in ("", "_build/paper/.snakemake/locks/0.input.lock"):
        process = start(project, *line, LEAVES=lock)
        told[lock], _ = process.communicate(timeout=60)
        assert process.returncode
    assert ["UNLOCK=1" in said for said in told.values()] == [False, True]


LINKS = ("_toc.yml", "notebooks")


def test_links_that_a_copy_lost_are_made_and_a_stale_copy_is_named(project):
    (project / "notebooks/quickstart.ipynb").write_text("{}")
    book = project / "book"
    (book / "_toc.yml").write_text("../_toc.yml")  # as git on Windows does, and some programs that unpack
    told = (f"book/{name} was no link to {name}, as after unpacking some zips; now it is a link.\n" for name in LINKS)
    for said in ("".join(told), ""):
        assert make(project, "whole") == (0, said)
        assert (book / "_toc.yml").resolve() == project / "_toc.yml"
        assert (book / "notebooks/quickstart.ipynb").read_text() == "{}"
    (book / "notebooks").unlink()
    shutil.copytree(project / "notebooks", book / "notebooks")
    assert make(project, "whole") == (0, "")
    (project / "notebooks/quickstart.ipynb").write_text("{ }")
    code, said = make(project, "book")
    assert code and said.startswith("book/notebooks is a copy of notebooks, and the two differ") and not steps(project)


def test_a_book_whose_link_is_a_file_is_not_built(tmp_path):
    paper.look_for_links(SimpleNamespace(srcdir=tmp_path), None)
    (tmp_path / "notebooks").write_text("../notebooks")
    with pytest.raises(ConfigError, match="type `make whole`"):
        paper.look_for_links(SimpleNamespace(srcdir=tmp_path), None)


def test_a_book_that_was_stopped_as_its_index_was_written_is_whole_the_next_time(tmp_path, monkeypatch):
    (tmp_path / "index.md").write_text("# A page")

    def stopped(self):
        self.app.build_lock.close()  # as the end of a process does
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(StandaloneHTMLBuilder, "dump_search_index", stopped)
        build_book(tmp_path, "build_lock")
    made = build_book(tmp_path, "build_lock")
    assert (made / "searchindex.js").exists() and (made.parent / "book.lock").read_text() == ""
    before = (made / "index.html").stat().st_mtime_ns
    build_book(tmp_path, "build_lock")
    assert (made / "index.html").stat().st_mtime_ns == before


def test_of_two_builds_of_a_book_one_waits(tmp_path):
    app = SimpleNamespace(outdir=tmp_path / "html", doctreedir=tmp_path / ".doctrees")
    with open(tmp_path / "book.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = Thread(target=build_lock.begin, args=(app, None))
        second.start()
        second.join(0.2)
        assert second.is_alive()
    second.join(20)
    app.build_lock.close()
    assert app.was_stopped is False and (tmp_path / "book.lock").read_text() == build_lock.UNFINISHED


def test_half_of_a_stopped_build_s_outputs_are_none(tmp_path):
    cache = tmp_path / "outputs"
    cache.mkdir()
    (cache / "global.db").write_bytes(b"SQLite format 3\0 and no more")
    app = SimpleNamespace(config=SimpleNamespace(nb_execution_cache_path=cache), was_stopped=True)
    build_lock.drop_half_outputs(app, None, [])
    assert not cache.exists()


RUN_NOTEBOOKS = """
import sys, types
from pathlib import Path
import paper
folder = Path(sys.argv[1])
config = types.SimpleNamespace(nb_execution_cache_path=folder / "outputs", nb_execution_mode="cache", warm_imports=[])
app = types.SimpleNamespace(config=config, srcdir=folder)
env = types.SimpleNamespace(doc2path=lambda name: str(folder / f"{name}.ipynb"))
paper.run_notebooks(app, env, sys.argv[2:])
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


LONG = [pytest.mark.long, pytest.mark.skipif(not os.environ.get("RTX_LONG"), reason="seconds more: RTX_LONG=1")]


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=LONG)], ids=["ctrl-c", "kill"])
def test_notebooks_that_are_stopped_leave_no_kernel_and_no_half_outputs(tmp_path, kernel, number):
    wait = "import os, time, pathlib\npathlib.Path('{0}.new').write_text(str(os.getpid()))\nos.rename('{0}.new', '{0}')"
    for name in "abc":  # one more than may run at once
        cell = v4.new_code_cell(wait.format(name) + "\ntime.sleep(60)")
        write_notebook(v4.new_notebook(cells=[cell]), tmp_path / f"{name}.ipynb")
    line = [sys.executable, "-c", RUN_NOTEBOOKS, str(tmp_path), "a", "b", "c"]
    os.environ["PYTHONPATH"] += f"{os.pathsep}{REPOSITORY / 'book/_ext'}"
    first = subprocess.Popen(line, start_new_session=True, stderr=subprocess.PIPE, text=True)
    wait_for(tmp_path / "a")
    os.killpg(first.pid, number)
    _, said = first.communicate(timeout=30)
    assert first.returncode != 0 and said.splitlines()[-1] == "KeyboardInterrupt"
    assert not any(alive(int((tmp_path / name).read_text())) for name in "abc" if (tmp_path / name).exists())
    assert not list((tmp_path / "outputs").rglob("*.ipynb"))


def test_a_run_that_a_page_made_does_not_make_the_next_build_run_it_again(tmp_path, kernel, home):
    folder = records.folder("embedded")
    code = f"import pathlib\nfolder = pathlib.Path({str(folder)!r})\nfolder.mkdir(parents=True, exist_ok=True)\n"
    code += "(folder / str(len(list(folder.glob('*'))))).touch()"
    cells = [v4.new_markdown_cell("# Page"), v4.new_code_cell(code)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    write_notebook(v4.new_notebook(cells=cells, metadata=metadata), tmp_path / "index.ipynb")
    for _ in range(2):
        build_book(tmp_path, "sentences", nb_execution_mode="cache")
        assert len(list(folder.iterdir())) == 1
    (folder / "another").touch()
    build_book(tmp_path, "sentences", nb_execution_mode="cache")
    assert len(list(folder.iterdir())) == 3
