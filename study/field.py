"""The field's table (page Related work) from `field.yaml`: what was built, and what it was compared with."""

from pathlib import Path

import pandas as pd
import yaml

from rtx_core.errors import RtxError
from rtx_core.report import display

FILE = Path(__file__).with_name("field.yaml")
WIDE, NARROW = "iso-parameter wide", "iso-parameter deep and narrow"
CONTROLS = {WIDE: "Wide", NARROW: "Narrow"}  # as field.yaml names them -> head of the column
CONTROLS |= {"iso-compute by depth": "Depth", "iso-compute by tokens": "Tokens", "tuned rate": "Rate"}
BUILT = {
    "stored": "Stored parameters",
    "tokens": "Training tokens",
    "loops": "Passes",
    "injection": "Input put in again",
    "halting": "Halting",
}
COMPARED = {"claim": "Headline", "read": "We read"}
UNSHOWN = {"effective", "seeds", "interval", "code"}  # told by few
NEEDED, FIELDS = {"name", "key", "source", "read", "claim", "where"}, {*BUILT, *COMPARED, *UNSHOWN, "controls", "equal"}


def rows(path: Path = FILE) -> list[dict]:
    """The systems of a YAML file; no field missing or unknown, each control of the five."""
    found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    for row in found:
        wrong = sorted(NEEDED - row.keys()) + sorted(row.keys() - NEEDED - FIELDS)
        wrong += [control for control in row.get("controls", ()) if control not in CONTROLS]
        if wrong:
            raise RtxError(f"{path.name}, {row.get('name')!r}: missing or unknown: {', '.join(wrong)}.")
    return found


def frame(part: str) -> pd.DataFrame:
    """How each was `built`, of those of which three cells are told, or what it was `compared` with: ● run, ○ equal
    parameters of untold shape."""
    found = []
    for row in rows():
        cells = {head: row.get(name) for name, head in (BUILT if part == "built" else COMPARED).items()}
        if part == "built" and sum(cell is not None for cell in cells.values()) < 3:
            continue
        if part == "compared":
            run, unsure = row.get("controls", ()), (WIDE, NARROW) if row.get("equal") else ()
            marks = {c: "●" if c in run else "○" if c in unsure else None for c in CONTROLS}
            cells = {CONTROLS[control]: mark for control, mark in marks.items()} | cells
        found.append({"System": row["name"], **cells})
    return pd.DataFrame(found).fillna(display.MISSING)


def table(part: str, caption: str) -> display.Displayed:
    """The frame as a numbered table, each system with its citation."""
    shown = frame(part)
    cited = {row["name"]: f" {{cite:p}}`{row['key']}`" if row["key"] else "" for row in rows()}
    marked = [display.markdown(display.escape(name) + cited[name]) for name in shown["System"]]
    return display.table(shown.assign(System=marked), label=f"tab-field-{part}", caption=caption, wide=True, board=True)
