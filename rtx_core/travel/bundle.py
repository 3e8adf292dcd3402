"""One file that travels: a plain tar with a manifest, the same bytes for the same content."""

import hashlib
import io
import json
import os
import re
import tarfile
from pathlib import Path

from rtx_core.errors import RtxError

MANIFEST = "MANIFEST.json"
BUNDLE, RECORDS = "rtx-bundle", "rtx-records"  # the folder that everything in such a tar is in
NAME = re.compile(r"\w[\w.+-]*(/\w[\w.+-]*)*", re.ASCII)  # no hidden file, nothing absolute, no ".."
LARGEST = 64 * 2**20  # bytes of a file among records; the predictions of 7,000 texts take some 60,000
MOST = 10_000  # files


def write(path: Path, folder: str, about: dict, files: dict[str, bytes | Path]) -> int:
    """Write the files, by their names, with a manifest that says `about` and each one's SHA-256; returns the tar's size."""
    files = dict(sorted(files.items()))
    manifest = about | {"files": {name: _sha256(content) for name, content in files.items()}}
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with tarfile.open(temporary, "w", format=tarfile.USTAR_FORMAT) as tar:
            for name, content in {MANIFEST: json.dumps(manifest, indent=1).encode(), **files}.items():
                entry = tarfile.TarInfo(f"{folder}/{name}")  # owner, mode and time are the same everywhere
                entry.size = content.stat().st_size if isinstance(content, Path) else len(content)
                with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as file:
                    tar.addfile(entry, file)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RtxError(f"{path} cannot be written ({error}); make room, or name another file with -o.") from error
    return path.stat().st_size


def read(path: Path, folder: str) -> tuple[dict, dict[str, bytes]]:
    """(what the manifest says, the files by their names) of a tar from elsewhere; nothing of it touches the disk.

    What no such tar holds is refused: links, devices, names that lead elsewhere, huge files, anything that the manifest does not list.
    """
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(path, "r:") as tar:
            for entry in tar:
                if entry.isdir():
                    continue
                name = entry.name.removeprefix(f"{folder}/")
                if not entry.isreg():
                    raise RtxError(f"{path.name} holds {entry.name!r}, which is no plain file but a link or a device; nothing of it was taken.")
                if name == entry.name or not NAME.fullmatch(name) or name in files:
                    raise RtxError(f"{path.name} holds {entry.name!r}, expected distinct names inside {folder}/; nothing of it was taken.")
                if entry.size > LARGEST or len(files) == MOST:
                    raise RtxError(
                        f"{path.name} holds {entry.name!r} of {entry.size:,} bytes as file {len(files) + 1:,}; records are {MOST:,} files of "
                        f"{LARGEST:,} bytes at most, so nothing of it was taken."
                    )
                files[name] = tar.extractfile(entry).read()
    except (OSError, EOFError, tarfile.TarError, ValueError) as error:
        if isinstance(error, RtxError):
            raise
        raise RtxError(f"{path} cannot be read as a tar ({error}); copy it anew.") from error
    try:
        about = json.loads(files.pop(MANIFEST))
        listed = dict(about.pop("files"))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise RtxError(f"{path.name} has no readable {folder}/{MANIFEST}; it must be a file that `python -m rtx_core away` wrote.") from error
    if wrong := sorted(name for name in listed.keys() | files.keys() if name not in files or _sha256(files[name]) != listed.get(name)):
        raise RtxError(f"{path.name} is damaged: {wrong[0]} is not what its manifest says; copy it anew.")
    return about, files


def check_tree(root: Path) -> dict:
    """What the manifest of an unpacked bundle says; an error if a file of it is missing or was changed."""
    try:
        about = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RtxError(f"{root.name}/ is no unpacked bundle (it has no readable {MANIFEST}); `python -m rtx_core pack` makes one.") from error
    for name, sha256 in about.pop("files").items():
        if not (root / name).is_file() or _sha256(root / name) != sha256:
            raise RtxError(f"The bundle is damaged: {name} is not what its manifest says; unpack it anew.")
    return about


def _sha256(content: bytes | Path) -> str:
    if isinstance(content, Path):
        with content.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(content).hexdigest()
