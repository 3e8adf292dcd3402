"""Records of runs: what they hold, where they lie, which code made them, and all of them as one table."""

from rtx_core.records.store import (
    DECIDED_BY_DATA,
    NAMES,
    SOURCES,
    Record,
    all_paths,
    at,
    find,
    folder,
    frame,
    measurements,
    now,
    odd,
    path_of,
    paths,
    read,
    read_json,
    records,
    results,
    save,
    save_measurement,
    save_predictions,
    short_name,
    sound,
    verify,
)

__all__ = [
    "DECIDED_BY_DATA", "NAMES", "SOURCES", "Record", "all_paths", "at", "find", "folder", "frame", "measurements",
    "now", "odd", "path_of", "paths", "read", "read_json", "records", "results", "save", "save_measurement",
    "save_predictions", "short_name", "sound", "verify",
]  # fmt: skip
