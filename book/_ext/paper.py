"""What makes pages of records a book: notebooks run side by side, formulas offline, folded code, the field's table and
a footer that says what was built."""

import asyncio
import atexit
import os
import shutil
import signal
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from html import escape
from importlib.metadata import files
from pathlib import Path
from threading import Lock

import kernels
import outputs
from docutils import nodes
from jupyter_cache import get_cache
from jupyter_cache.base import ProjectNb
from jupyter_cache.executors.utils import create_cache_bundle
from nbclient import NotebookClient
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style
from pybtex.style.labels import BaseLabelStyle
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ConfigError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from rtx_core import paths, records
from rtx_core.records import fingerprint
from study import field

log = logging.getLogger(__name__)


def look_for_links(app: Sphinx, config: Config) -> None:
    if Path(app.srcdir, "notebooks").is_file():  # that git on Windows, or a zip, left in the place of the link
        raise ConfigError("book/notebooks has to be a link to the folder notebooks, and is a file: type `make whole`.")


def run_notebooks(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Run the notebooks that are to be read, one on each core; MyST-NB finds in its cache what they gave.

    Kernels do not hear Ctrl-C, so they are ended here; a notebook's outputs are stored whole or not at all."""
    if app.config.nb_execution_mode == "off":
        return
    cache, storing = get_cache(app.config.nb_execution_cache_path), Lock()
    pages = [page for page in map(env.doc2path, docnames) if page.endswith(".ipynb")]
    for page in pages:
        cache.add_nb_to_project(page)
    waiting = [cache.get_project_notebook(record.pk) for record in cache.list_unexecuted(filter_uris=pages)]
    clients = {page.uri: client_of(page) for page in waiting}
    kernels.import_first(app.config.warm_imports if len(waiting) > 2 else [])

    def execute(page: ProjectNb) -> None:
        start = time.monotonic()
        asyncio.run(clients[page.uri].async_execute(env=outputs.environment(app, page.uri)))  # closes its event loop
        seconds = time.monotonic() - start
        with storing:
            bundle = create_cache_bundle(page, None, None, seconds, None)
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
        log.info("executed %s in %.0f s", os.path.relpath(page.uri, app.srcdir), seconds)

    # A closed terminal and `kill` end a build as Ctrl-C does.
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    pool = ThreadPoolExecutor(os.cpu_count())
    runs = {pool.submit(execute, page): page.uri for page in waiting}
    try:
        for run in as_completed(runs):
            if error := run.exception():  # MyST-NB runs it once more, and says what is wrong
                log.info("%s could not be run: %s", runs[run], error)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        while not all(run.done() for run in runs):  # one may start as others end
            for client in clients.values():
                if client.km and (process := getattr(client.km.provisioner, "process", None)):
                    process.kill()
            time.sleep(0.1)
        for client in clients.values():  # what nbclient leaves for the end of the process, where a kernel was killed
            atexit.unregister(client._cleanup_kernel)
        for number, handler in before.items():
            signal.signal(number, handler)


def client_of(page: ProjectNb) -> NotebookClient:
    place = {"metadata": {"path": str(Path(page.uri).parent)}}
    # times are metadata of cells, by which the cache would not find the notebook again
    ways = {"timeout": None, "allow_errors": True, "record_timing": False, "kernel_manager_class": kernels.WarmManager}
    return NotebookClient(page.nb, resources=place, **ways)


def copy_mathjax(app: Sphinx) -> None:
    """Put MathJax's one-file build, and the TeX extensions it loads on demand, where `mathjax_path` says."""
    for file in files("sphinx-mathjax-offline") or () if app.builder.format == "html" else ():
        inside = file.as_posix().partition("static/mathjax/")[2]
        if inside == "tex-svg.js" or inside.startswith("input/tex/extensions/"):
            copy = Path(app.outdir, "_static", "mathjax", inside)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), copy)


def fold_code(app: Sphinx, doctree: nodes.document) -> None:
    """Code is folded unless its cell is tagged `show-input`; one click opens it, with that of the cells before it that
    show nothing."""
    for output in [node for node in doctree.findall(nodes.container) if shows_nothing(node)]:
        output.parent.remove(output)
    for cell in [cell for cell in doctree.findall(nodes.container) if cell.get("nb_element") == "cell_code"]:
        if cell.get("hide_mode") == "output":  # of long tables: what is folded is the output, and no code is left
            title = next((node.astext() for node in cell.findall(nodes.title)), "")
            said = f"Show: {title.partition('. ')[0].rstrip('.')}" if title else "Show more"
            cell.attributes.update(prompt_show=said, prompt_hide="Show less")
            cell.remove(cell[0])
            continue
        if not cell.get("hide_mode") and "tag_show-input" not in cell["classes"]:
            cell.attributes.update(hide_mode="input", prompt_show="Code", prompt_hide="Code")
        at = cell.parent.index(cell)
        before = cell.parent[at - 1] if at else None
        if not isinstance(before, nodes.container) or before.get("nb_element") != "cell_code":
            continue
        if [part.get("nb_element") for part in (*before, cell[0])] == 2 * ["cell_code_source"]:
            cell[0].insert(0, before[0].children)
            cell.parent.remove(before)


def shows_nothing(node: nodes.container) -> bool:
    """Whether it is the output of a cell whose Markdown form is a comment alone, as that of `Quantities` is."""
    if node.get("nb_element") != "cell_code_output":
        return False
    forms = [form for form in node.findall(nodes.container) if form.get("mime_type") == "text/markdown"]
    return bool(forms) and all(isinstance(part, nodes.comment) for form in forms for part in form.children)


class FieldTable(SphinxDirective):
    """The table of `study/field.py`, its caption the directive's text."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(field.table(" ".join(self.content)).markdown)


def say_what_is_built(app: Sphinx) -> None:
    """Version and commit, and how many records are stale."""
    project = tomllib.loads((paths.REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    commit = fingerprint.commit()
    changed = "" if commit["clean"] else " + changes"
    app.built_from = f"Version {project['version']}, commit {(commit['commit'] or 'unknown')[:9]}{changed}"
    every = [records.read_or_none(path, measurement=True) for path in records.paths_in(records.folder())]
    stale = [bool(record.stale_reason()) for record in every if record]
    told = f"{sum(stale)} of {len(stale)} records were made by earlier code"
    app.footer = f"{app.built_from}; {told if any(stale) else 'all records are current'}."
    if app.builder.name == "latex":
        app.builder.context["date"] = app.built_from


def put_footer(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """What was built.  Buttons name a notebook where it lies: `book/notebooks` is a link that no site follows."""
    context["theme_extra_footer"] = f'<div class="built-from">{escape(app.footer)}</div>'
    folder = "" if page.startswith("notebooks/") else "book"
    app.config.html_theme_options["path_to_docs"] = context["doc_path"] = folder


class AuthorYear(BaseLabelStyle):
    """Labels of the bibliography as the text writes them, such as "Bae et al., 2025"."""

    def format_labels(self, entries: list) -> Iterator[str]:
        for entry in entries:
            names = [" ".join(map(str, person.rich_last_names)) for person in entry.persons["author"]]
            known = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
            yield f"{known}, {entry.fields['year']}"


def setup(app: Sphinx) -> dict:
    register_plugin("pybtex.style.formatting", "by_name", type("ByName", (Style,), {"default_label_style": AuthorYear}))
    # Pages show what is recorded and train nothing; figures are written, by a process for every core.
    os.environ |= {"RTX_BOOK": "1", "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    os.environ["MPLCONFIGDIR"] = str(paths.build() / "matplotlib")  # a home may be read-only
    app.config.mathjax_path = "mathjax/tex-svg.js"  # relative to _static/
    app.add_config_value("warm_imports", [], "", list)
    app.add_directive("field-table", FieldTable)
    app.connect("config-inited", look_for_links)
    app.connect("builder-inited", copy_mathjax)
    app.connect("builder-inited", say_what_is_built)
    app.connect("env-before-read-docs", run_notebooks)
    app.connect("doctree-read", fold_code)
    app.connect("html-page-context", put_footer)
    return {"version": "2", "parallel_read_safe": False, "parallel_write_safe": True}
