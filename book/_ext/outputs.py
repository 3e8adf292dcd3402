"""What notebooks gave is kept from build to build, in `_build/outputs`, until something that they were made of changes.

That is the notebook itself (by which jupyter-cache finds it), the code and the versions of libraries (by which the
folder is called), and the files of `results/` and `runs/` that the notebook read (`rtx_core.inputs`), a list of which
lies beside the outputs.  A notebook that imports no `rtx_core` counts as reading all of them.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path

from jupyter_cache import get_cache
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment

from rtx_core import inputs, paths, records
from rtx_core.paths import write_json


def digest(*paths_of: Path) -> str:
    """Of files, and of all files in folders but hidden ones."""
    files = [path for given in paths_of for path in ([given] if given.is_file() else given.rglob("[!.]*"))]
    made_of = hashlib.sha256()
    for path in sorted(path for path in files if path.is_file() and path.suffix != ".pyc"):
        made_of.update(f"{path}\n".encode() + path.read_bytes())
    return made_of.hexdigest()[:16]


def all_records() -> str:
    return digest(records.folder("hub"), records.folder("embedded"))


def look(app: Sphinx, config: Config) -> None:
    """Name the folder of outputs by the code; Sphinx reads all pages anew where code or records have changed."""
    study = paths.REPOSITORY.joinpath(*os.environ.get("RTX_STUDY", "study").split("."))
    code = digest(paths.REPOSITORY / "rtx_core", study, paths.REPOSITORY / "requirements.lock")
    config.made_of = f"{code}-{all_records()}"
    cache = Path(app.outdir).parent / "outputs" / code
    for old in [folder for folder in cache.parent.glob("*") if folder != cache]:
        shutil.rmtree(old)
    config.nb_execution_cache_path = str(cache)


def state(path: str) -> str:
    """The content of a file, or the names in a folder, in short; empty where there is neither."""
    if path.endswith(inputs.IS_THERE):
        return "there" if os.path.isdir(path) else ""
    try:
        if os.path.isdir(path):
            content = "\n".join(sorted(name for name in os.listdir(path) if not name.startswith("."))).encode()
        else:
            content = Path(path).read_bytes()
    except OSError:
        return ""
    return hashlib.sha256(content).hexdigest()[:16]


def reads_of(app: Sphinx, uri: str) -> tuple[Path, Path]:
    """Where the paths that a notebook read are listed, and how they were then."""
    folder = Path(app.config.nb_execution_cache_path) / "reads"
    name = os.path.relpath(uri, app.srcdir).replace(os.sep, "-")
    return folder / f"{name}.txt", folder / f"{name}.json"


def environment(app: Sphinx, uri: str) -> dict[str, str]:
    """Of a kernel that lists what it reads."""
    log, states = reads_of(app, uri)
    log.parent.mkdir(parents=True, exist_ok=True)
    for old in (log, states):
        old.unlink(missing_ok=True)
    return os.environ | {inputs.LOG: str(log)}


def now(log: Path) -> dict[str, str]:
    """How everything that a notebook read is now."""
    if not log.exists():
        return {"all": all_records() + digest(paths.home() / "runs")}
    return {path: state(path) for path in sorted(set(log.read_text(encoding="utf-8").splitlines()))}


def drop_changed(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Notebooks run again, and their pages are read anew, where what they read has changed."""
    cache = get_cache(app.config.nb_execution_cache_path)
    names = {str(Path(env.doc2path(name))): name for name in env.found_docs}
    for record in cache.list_cache_records():
        log, states = reads_of(app, record.uri)
        if states.exists() and json.loads(states.read_text(encoding="utf-8")) == now(log):
            continue
        cache.remove_cache(record.pk)
        if (name := names.get(str(record.uri))) and name not in docnames:
            docnames.append(name)


def remember(app: Sphinx, env: BuildEnvironment) -> None:
    """Runs that the pages themselves made, on generated text, are shown already: the next build finds no change."""
    app.config.made_of = f"{app.config.made_of.partition('-')[0]}-{all_records()}"
    for record in get_cache(app.config.nb_execution_cache_path).list_cache_records():
        log, states = reads_of(app, record.uri)
        if not states.exists():
            write_json(states, now(log))


def setup(app: Sphinx) -> dict:
    app.setup_extension("build_lock")
    app.add_config_value("made_of", "", "env")  # Sphinx reads everything anew where it is another than before
    app.connect("config-inited", look)
    app.connect("env-before-read-docs", drop_changed, priority=400)
    app.connect("env-updated", remember)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
