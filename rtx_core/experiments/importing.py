"""Records made elsewhere, copied into `results/` if the doctor's checks find nothing wrong: `rtx import FOLDER`."""

from pathlib import Path

from rtx_core import records
from rtx_core.errors import RtxError
from rtx_core.experiments.doctor import check_records
from rtx_core.paths import write_atomically


def import_records(folder: str, replace: bool = False) -> list[Path]:
    """Copy what is new here; returns the new records' places.  If one record is unsound, none is copied.

    A file that differs from the one of its name here is an error, unless `replace`.
    """
    root = Path(folder, "results") if Path(folder, "results").is_dir() else Path(folder)
    found, new = records.all_paths(root), {}
    if not found:
        raise RtxError(f"{folder} holds no records; name another clone of this project, or its results/.")
    for record in found:
        weights = (root / "weights" / record.relative_to(root)).with_suffix(".safetensors")
        for file in (record.with_suffix(".npz"), weights, record):  # a record is written last
            place = records.folder() / file.relative_to(root)
            content, there = (path.read_bytes() if path.exists() else None for path in (file, place))
            if there not in (None, content) and not replace:
                raise RtxError(f"{records.short_name(place)} differs from the one here; --replace overwrites it.")
            if content not in (None, there):
                new[place] = content
    here, coming = records.folder(), {path.relative_to(root) for path in found}
    staying = [path for path in records.all_paths(here) if path.relative_to(here) not in coming]
    _, problems = check_records([*staying, *found])
    for _, problem in problems:
        raise RtxError(problem)
    for place, content in new.items():
        write_atomically(place, content)
    return [place for place in new if place.suffix == ".json"]
