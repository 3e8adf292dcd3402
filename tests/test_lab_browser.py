"""In JupyterLab a reader changes `seeds`, runs all cells, and text, caption and figure follow; opt-in, in Chromium."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from urllib.request import urlopen

import pytest
from chromium import BROWSER, DRIVER, WebDriverWait, driver, sized, wait  # noqa: F401

from rtx_core.paths import REPOSITORY

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not os.environ.get("RTX_LONG"), reason="set RTX_LONG=1 to run it"),
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="there is no chromium with its chromedriver"),
    pytest.mark.skipif(not find_spec("jupyterlab_myst"), reason="jupyterlab-myst is not installed: make lab"),
]
PAGES = {  # page -> parameters of a reader's own, and a sentence's part that follows them
    "facts": ({"seeds": [1], "hops_seeds": [0, 1, 2]}, "Means over one seed"),
    "looping": ({"seeds": [10, 11, 12]}, ""),
    "state-tracking": ({"seeds": [0, 1]}, ""),
}
PANEL = "const panel = window.jupyterapp && [...jupyterapp.shell.widgets('main')].find(one => one.context); "
OPENED = PANEL + "if (panel) jupyterapp.shell.activateById(panel.id); return !!window.jupyterapp?.shell.currentWidget"
RUN_ALL = "const done = arguments[0]; jupyterapp.commands.execute('notebook:run-all-cells').then(() => done(1))"
NOT_RUN = (
    PANEL
    + """return panel.content.widgets.filter(
  cell => cell.model.type == 'code' && (!cell.model.executionCount || cell.prompt == '*')).length"""
)
TEXTS = (
    PANEL
    + """panel.content.scrollToItem(arguments[0]);
return panel.content.widgets.map(cell => cell.node.innerText)"""
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab, and its folder."""
    folder = tmp_path_factory.mktemp("lab")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--port-retries=0"]
    command += [f"--notebook-dir={folder}", "--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True"]
    with open(folder / "log", "w") as log:
        environment = os.environ | {"RTX_BOOK": "1"}  # nothing is trained
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    for _ in range(120):
        with suppress(OSError):
            urlopen(f"{address}/api").read()
            break
        time.sleep(0.5)
    yield address, folder
    server.terminate()
    server.wait(30)


def with_parameters(page: str, parameters: dict) -> dict:
    """The notebook with these lines at the end of its parameters."""
    notebook = json.loads((REPOSITORY / "notebooks" / f"{page}.ipynb").read_text(encoding="utf-8"))
    cell = next(cell for cell in notebook["cells"] if "parameters" in cell["metadata"].get("tags", ()))
    cell["source"] += [f"\n{name} = {value!r}" for name, value in parameters.items()]
    return notebook


def texts(driver) -> list[str]:  # noqa: F811
    """Of all cells, each when it is in view: what is out of it has no text."""
    count = len(driver.execute_script(TEXTS, 0))
    seen = [""] * count
    for at in range(count):
        driver.execute_script(TEXTS, at)
        time.sleep(0.3)
        seen = [new or old for new, old in zip(driver.execute_script(TEXTS, at), seen)]
    return seen


@pytest.mark.parametrize("page", PAGES)
def test_text_and_figure_follow_the_parameters(page, lab, driver):  # noqa: F811
    (address, folder), (parameters, part) = lab, PAGES[page]
    notebook = with_parameters(page, parameters)
    (folder / f"{page}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    driver.get(f"{address}/lab/tree/{page}.ipynb?reset")
    sized(driver, 1400, 1400)
    wait(driver, lambda d: d.execute_script(OPENED))
    time.sleep(3)
    driver.set_script_timeout(300)
    driver.execute_async_script(RUN_ALL)
    WebDriverWait(driver, 300).until(lambda d: d.execute_script(NOT_RUN) == 0)
    time.sleep(3)
    shown = texts(driver)
    quoted = [text for text, cell in zip(shown, notebook["cells"]) if "{eval}" in "".join(cell["source"])]
    assert quoted and not [text for text in quoted if "q." in text or "{eval}" in text or "u202f" in text]
    assert part in " ".join(quoted)
    pictures = driver.execute_script("return document.querySelectorAll('.jp-OutputArea-output img').length")
    assert pictures and "Error" not in " ".join(shown)
