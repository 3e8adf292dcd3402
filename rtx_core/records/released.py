"""The weights of small models that come with a clone: where they lie, and whether they are those of their record.

A record names them by `tensors_sha256`, a hash of what the file holds.  Older records have `weights`, the hash of the
file as it was written, which differs from save to save: safetensors writes the header in random order.
"""

import hashlib
import json
from pathlib import Path

from rtx_core.foreign import InvalidFile, invalid_file_errors, loads, read_bytes
from rtx_core.paths import home
from rtx_core.reads import Entries

MAX_BYTES = 2**26


def released_weights(record: Path) -> Path:
    """Where the weights of the run that is recorded in this file lie, if they are kept beside it."""
    return record.parents[1] / "weights" / record.parent.name / f"{record.stem}.safetensors"


def tensors_sha256(content: bytes) -> str:
    """SHA-256 of a safetensors file's metadata and of the name, type, shape and bytes of each tensor, sorted: of equal
    models the same."""
    with invalid_file_errors():
        header, data = _parts(content)
        digest = hashlib.sha256(json.dumps(header.pop("__metadata__", {}), sort_keys=True).encode())
        for name, tensor in sorted(header.items()):
            start, end = tensor["data_offsets"]
            digest.update(json.dumps([name, tensor["dtype"], tensor["shape"]]).encode())
            digest.update(data[start:end])
        return digest.hexdigest()


def _parts(content: bytes) -> tuple[dict, memoryview]:
    """(header, tensors one after the other) of a safetensors file, which begins with the header's length."""
    begin = 8 + int.from_bytes(content[:8], "little")
    return loads(content[8:begin]), memoryview(content)[begin:]


def matches_record(record: Entries, path: Path) -> bool | None:
    """Whether a file of weights is the one that a record names; None where the record names none."""
    try:
        if expected := record.get("tensors_sha256"):
            return tensors_sha256(read_bytes(path, MAX_BYTES)) == expected
        if expected := record.get("weights"):
            return hashlib.sha256(read_bytes(path, MAX_BYTES)).hexdigest() == expected
    except InvalidFile:
        return False
    return None


def name_tensors(content: dict) -> dict:
    """A step of `rtx migrate`: a run names the tensors of its weights.  Without a hash before, they are vouched for by
    the run's key in their header; the tests load them all and compare losses."""
    if "kind" in content or "tensors_sha256" in content:
        return content
    path = released_weights(home() / "results" / content["name"] / f"{content['model']}-seed{content['seed']}.json")
    try:
        weights = read_bytes(path, MAX_BYTES)
        sha256 = tensors_sha256(weights)
        with invalid_file_errors():
            of_this_run = content["key"] in _parts(weights)[0].get("__metadata__", {}).get("about", "")
    except InvalidFile:  # there are none
        return content
    if not of_this_run or matches_record(content, path) is False:
        return content
    return {key: value for key, value in content.items() if key != "weights"} | {"tensors_sha256": sha256}
