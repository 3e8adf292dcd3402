"""Where things lie.  All is inside the repository; `RTX_HOME` moves what runs write (tests use it)."""

import json
import os
import tempfile
from pathlib import Path

from rtx_core.errors import RtxError

PACKAGE = Path(__file__).resolve().parent
REPOSITORY = PACKAGE.parent
BOOK = "RTX_BOOK"  # set while the book is built: pages show what is recorded, and train nothing on real text


def home() -> Path:
    """The folder that holds `results/` and `_build/`: `RTX_HOME`, or the repository, or where one stands."""
    if name := os.environ.get("RTX_HOME"):
        if str(place := user_path(name)).startswith("~"):
            raise RtxError(f"RTX_HOME is {name}, and there is no such user; name a folder.")
        return place
    return REPOSITORY if (REPOSITORY / "pyproject.toml").exists() else Path.cwd()


def user_path(name: object) -> Path:
    """A path that a user names, "~" being the folder of a user, where there is that user."""
    return Path(os.path.expanduser(str(name)))


def build() -> Path:
    """Everything that can be made again: caches, checkpoints, weights, quick runs, the html."""
    return home() / "_build"


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new and nothing between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: object) -> None:
    """Write JSON atomically, one value a line, so that it reads well in a diff."""
    write_atomically(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())
