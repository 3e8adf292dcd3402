"""Files that others may have written or damaged: whatever is wrong with one is one kind of error, and reading ends."""

import errno
import hashlib
import io
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from rtx_core.errors import RtxError

MAX_JSON_BYTES = 2**25  # bytes of a record: of tens of thousands of evaluations
MAX_ARRAY_BYTES = 2**30  # bytes of all arrays of a compressed archive
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class InvalidFile(RtxError):
    """A file that is not what it should be."""


@contextmanager
def invalid_file_errors() -> Iterator[None]:
    """Any error inside is `InvalidFile`, with its reason: damaged bytes reach every corner of a parser."""
    try:
        yield
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise InvalidFile(reason) from error
    except Exception as error:
        raise InvalidFile(str(error) if isinstance(error, RtxError) else f"{error!r:.200}") from error


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes; a pipe is not waited for, and no link is followed."""
    with invalid_file_errors():
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise InvalidFile("it is no regular file")
            if status.st_size > most:
                raise InvalidFile(f"it has {status.st_size:,} bytes; at most {most:,} are read")
            with open(handle, "rb", buffering=0, closefd=False) as file:
                return file.read()
        finally:
            os.close(handle)


def read_json(path: Path) -> dict:
    """What a JSON file holds; `loads` says what is refused."""
    return loads(read_bytes(path, MAX_JSON_BYTES))


def loads(content: bytes) -> dict:
    """JSON in UTF-8 without repeated keys, NaN, infinity and halves of characters."""
    with invalid_file_errors():
        value = DECODER.decode(content.decode("utf-8"))
        if SURROGATE.search(content):
            json.dumps(value, ensure_ascii=False).encode()
        return value


def _distinct(pairs: list[tuple[str, object]]) -> dict:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise InvalidFile(f"it repeats one of its keys {', '.join(value)}"[:200])
    return value


def _refuse(number: str) -> None:
    raise InvalidFile(f"it holds the number {number}")


DECODER = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_refuse)


def read_arrays(path: Path, most: int | None = None, key: str = "") -> dict[str, np.ndarray]:
    """The arrays of a .npz file; together they have at most `most` bytes, or as many as the file.

    With a `key` the file must be what `dump_arrays` gave for it.  No size that a header claims is believed: memory is
    taken for what is there.
    """
    content = read_bytes(path, MAX_ARRAY_BYTES if most else 2**40)
    with invalid_file_errors(), ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        if len(set(archive.namelist())) < len(entries) or (key and archive.comment != _seal(archive, key)):
            raise InvalidFile("its arrays are not those that were written")
        if (size := sum(entry.file_size for entry in entries)) > min(most or len(content), 2**40):
            raise InvalidFile(f"its arrays claim {size:,} bytes")
        return {entry.filename.removesuffix(".npy"): _array(archive.read(entry)) for entry in entries}


def _array(content: bytes) -> np.ndarray:
    file = io.BytesIO(content)
    shape, columns_first, kind = HEADERS[np.lib.format.read_magic(file)](file)
    if kind.kind not in "biuf" or not kind.isnative or len(content) != file.tell() + math.prod(shape) * kind.itemsize:
        raise InvalidFile(f"an array claims to be of {kind} and {shape}")
    return np.ndarray(shape, kind, bytearray(content), file.tell(), order="F" if columns_first else "C")


def dump_arrays(arrays: Mapping[str, np.ndarray], key: str) -> bytes:
    """A .npz file that `read_arrays` takes for this key alone, and only with every array under its name."""
    buffer = io.BytesIO()
    entries: dict[str, Any] = dict(arrays)  # none is an option of `savez`
    np.savez(buffer, **entries)
    with ZipFile(buffer, "a") as archive:
        archive.comment = _seal(archive, key)
    return buffer.getvalue()


def _seal(archive: ZipFile, key: str) -> bytes:
    """Of the key, and name and checksum of each array: `zipfile` compares the checksums as it reads."""
    parts = [(entry.filename, entry.CRC, entry.file_size) for entry in archive.infolist()]
    return hashlib.sha256(json.dumps([key, sorted(parts)]).encode()).hexdigest().encode()
