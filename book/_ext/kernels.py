"""Kernels that start warm: each is a copy of one process that has imported what pages import, which takes seconds.

Where processes cannot be copied safely (macOS, Windows) a kernel starts as it does elsewhere.
"""

import os
import sys
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

SERVER = get_context("forkserver" if sys.platform == "linux" else "spawn")
IMPORTED = ["jupyter_book.cli.main", "ipykernel.kernelapp", "ipykernel.ipkernel", "matplotlib_inline.backend_inline"]


def import_first(modules: list[str]) -> None:
    """What every kernel will have imported; a process that makes kernels already stays as it is."""
    if sys.platform == "linux":
        SERVER.set_forkserver_preload([*IMPORTED, *modules])


def be_kernel(command: list[str], env: dict[str, str], cwd: str) -> None:
    """What the copy does, instead of running the command of an IPython kernel."""
    from ipykernel.kernelapp import IPKernelApp

    from rtx_core.inputs import log_reads

    os.setsid()
    os.environ.clear()
    os.environ |= env
    os.chdir(cwd)
    sys.path = [place for place in sys.path if place != str(Path(__file__).parent)]
    sys.argv = command[command.index("ipykernel_launcher") :]
    log_reads()
    Thread(target=end_with, args=(parent_process(),), daemon=True).start()
    IPKernelApp.launch_instance(sys.argv[1:], parent_handle=os.getppid())


def end_with(build: BaseProcess) -> None:
    """The original lives as long as its copies, so these look themselves whether the build is gone."""
    build.join()
    os._exit(1)


class Copy:
    """A copy as the process that Jupyter expects, which is none of a group: to signal one would end its original."""

    stdin = stdout = stderr = None

    def __init__(self, *arguments: object):
        self.made = SERVER.Process(target=be_kernel, args=arguments)
        self.made.start()
        self.pid, self.kill, self.terminate = self.made.pid, self.made.kill, self.made.terminate

    def poll(self) -> int | None:
        return self.made.exitcode

    def wait(self) -> int | None:
        self.made.join()
        return self.made.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


class WarmProvisioner(LocalProvisioner):
    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        if sys.platform != "linux" or cmd[0] != sys.executable or "ipykernel_launcher" not in cmd:
            return await super().launch_kernel(cmd, **kwargs)
        self.cwd = kwargs.get("cwd") or os.getcwd()
        self.process = Copy(cmd, dict(kwargs["env"]), str(self.cwd))
        self.pid = self.process.pid
        return self.connection_info


class WarmManager(AsyncKernelManager):
    async def _async_pre_start_kernel(self, **kw: Any) -> tuple[list[str], dict[str, Any]]:
        if self.provisioner is None:
            self.provisioner = WarmProvisioner(kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self)
        return await super()._async_pre_start_kernel(**kw)
