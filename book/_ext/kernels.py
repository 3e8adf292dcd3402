"""Kernels for pages that are executed side by side, forked from one process that has imported the libraries already.

Of a page's two to three seconds, two are imports.  `python kernels.py SOCKET` imports them once; from then on a line on the
socket, JSON of (arguments, folder, environment), is answered by the number of a process forked to be that kernel.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 60  # seconds for the imports; after them a kernel is started in the ordinary way
PRELOADED = ("ipykernel.kernelapp", "IPython.core.completer", "numpy", "pandas", "scipy.stats", "matplotlib.pyplot", "seaborn")


def serve(path: str) -> None:
    """Until the process that started this one is gone, which its pipe to our input tells."""
    import importlib
    import selectors

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever interrupts the build ends it, and with it this
    os.environ.setdefault("MPLBACKEND", "agg")  # chosen when matplotlib is imported: no page asks for a window
    for name in PRELOADED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system clears kernels that ended
    with socket.socket(socket.AF_UNIX) as server, selectors.DefaultSelector() as ready:
        server.bind(f"{path}.new")
        server.listen(64)
        os.rename(f"{path}.new", path)  # whoever sees it can connect
        ready.register(server, selectors.EVENT_READ)
        ready.register(sys.stdin, selectors.EVENT_READ)
        while all(key.fileobj is server for key, _ in ready.select()):
            connection, _ = server.accept()
            with connection, connection.makefile("rw") as line:
                arguments, folder, environment = json.loads(line.readline())
                if os.fork() == 0:
                    os.setsid()  # before anybody knows it: it is interrupted and ended as a group
                    line.write(f"{os.getpid()}\n")
                    break
        else:
            return
    be(arguments, folder, environment)


def be(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """This process becomes the kernel."""
    from ipykernel.kernelapp import launch_new_instance

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = ""
    sys.argv = ["ipykernel_launcher", *arguments, f"--IPKernelApp.parent_handle={os.getppid()}"]  # it ends when its parent does
    launch_new_instance()


class Forked:
    """What jupyter_client asks of a kernel's process, which is not a child of its own."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int):
        self.pid, self.returncode = pid, None

    def poll(self) -> int | None:
        if self.returncode is None and not Path(f"/proc/{self.pid}").exists():
            self.returncode = 0  # how it ended, only its parent knows
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = time.monotonic() + (timeout if timeout is not None else float("inf"))
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("a kernel", timeout)
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def launcher(path: str, otherwise):
    """A stand-in for `jupyter_client`'s `launch_kernel`, which is `otherwise`, that asks the process at `path` if it answers."""

    def launch_kernel(command: list[str], cwd: str | None = None, env: dict[str, str] | None = None, **options: object):
        end = time.monotonic() + PATIENCE
        while not Path(path).exists() and time.monotonic() < end:  # it is still importing
            time.sleep(0.02)
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                with connection.makefile("rw") as line:
                    arguments = command[command.index("-m") + 2 :]
                    line.write(json.dumps([arguments, str(cwd or Path.cwd()), dict(env or os.environ)]) + "\n")
                    line.flush()
                    return Forked(int(line.readline()))
        except (OSError, ValueError):  # it is not there, or ended before it answered
            return otherwise(command, cwd=cwd, env=env, **options)

    return launch_kernel


if __name__ == "__main__":
    serve(sys.argv[1])
