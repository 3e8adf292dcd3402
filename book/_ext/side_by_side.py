"""Pages are read, and so executed, several at a time, in kernels that start at once: Jupyter Book has an option for neither."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from uuid import uuid4

import jupyter_client
import psutil
from jupyter_client.provisioning import local_provisioner
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from traitlets import CaselessStrEnum, default

import kernels

PAGES = 12  # at once, where memory allows: more than there are cores, for kernels wait a lot
PAGE = 400 << 20  # bytes that one page may need; most take 300 MB
# Jupyter Book's own two extensions do not say whether pages may be read side by side.  They may: the one numbers sections
# when all are read, the other changes the settings before that, and single pages alone.
SILENT = ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex")


class SocketKernels(jupyter_client.AsyncKernelManager):
    """Kernels that are met at a file.  Of free TCP ports, several that start at one moment may be given the same."""

    folder = ""  # of a short path: that of a socket must not exceed 104 bytes
    transport = CaselessStrEnum(["tcp", "ipc"], default_value="ipc", config=True)

    @default("ip")
    def _ip_default(self) -> str:
        return f"{self.folder}/{uuid4().hex[:12]}"  # of which each channel makes a name of its own


def at_once() -> int:
    return max(1, min(PAGES, psutil.virtual_memory().available // PAGE))


def allow(app: Sphinx, config: Config) -> None:
    for name in SILENT:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True


def open_up(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """Before pages are read: where kernels are met and, on Linux, what they are forked from."""
    if not pages:
        return
    SocketKernels.folder = tempfile.mkdtemp(prefix="rtx-", dir="/tmp" if os.access("/tmp", os.W_OK) else None)
    atexit.register(close_down, app, None)  # an interrupted build is not finished
    jupyter_client.AsyncKernelManager = SocketKernels  # where nbclient looks for its default
    if sys.platform == "linux":
        address = f"{SocketKernels.folder}/kernels"
        app.kernels = subprocess.Popen([sys.executable, kernels.__file__, address], stdin=subprocess.PIPE)
        local_provisioner.launch_kernel = kernels.launcher(address, local_provisioner.launch_kernel)


def close_down(app: Sphinx, error: Exception | None) -> None:
    if hasattr(app, "kernels"):
        app.kernels.stdin.close()  # which it waits for
        try:
            app.kernels.wait(timeout=10)
        except subprocess.TimeoutExpired:
            app.kernels.kill()
    if SocketKernels.folder:
        shutil.rmtree(SocketKernels.folder, ignore_errors=True)


def setup(app: Sphinx) -> dict:
    if sys.platform != "win32":  # where Sphinx does not fork, and files are no meeting places
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # so many kernels must not have a thread for each core too
        app.parallel = max(app.parallel, at_once())
        app.connect("config-inited", allow)
        app.connect("env-before-read-docs", open_up)
        app.connect("build-finished", close_down)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
