"""The field's table (page Related work) from `field.yaml`: what was built, and what it was compared with."""

from pathlib import Path

import pandas as pd
import yaml

from rtx_core.report import display

FILE = Path(__file__).with_name("field.yaml")
WIDE, NARROW = "iso-parameter wide", "iso-parameter deep and narrow"
CONTROLS = {WIDE: "Wide", NARROW: "Narrow"}  # as field.yaml names them -> head of the column
CONTROLS |= {"iso-compute by depth": "Depth", "iso-compute by tokens": "Tokens", "tuned rate": "Rate"}
BUILT = {"stored": "Stored parameters", "tokens": "Training tokens", "loops": "Passes"}
BUILT |= {"injection": "Input put in again", "halting": "Halting"}
COMPARED = {"claim": "Headline", "read": "We read"}


def rows() -> list[dict]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def frame(part: str) -> pd.DataFrame:
    """How each was `built`, of those of which three cells are told, or what it was `compared` with: ● run, ○ equal
    parameters of untold shape."""
    found = []
    for row in rows():
        cells = {head: row.get(name) for name, head in (BUILT if part == "built" else COMPARED).items()}
        if part == "compared":
            run, unsure = row.get("controls", ()), (WIDE, NARROW) if row.get("equal") else ()
            marks = {head: "●" if c in run else "○" if c in unsure else None for c, head in CONTROLS.items()}
            found.append({"System": row["name"]} | marks | cells)
        elif sum(cell is not None for cell in cells.values()) >= 3:
            found.append({"System": row["name"]} | cells)
    return pd.DataFrame(found).fillna(display.MISSING)


def table(part: str, caption: str) -> display.Displayed:
    """The frame as a numbered table, each system with its citation."""
    shown = frame(part)
    cited = {row["name"]: f" {{cite:p}}`{row['key']}`" if row["key"] else "" for row in rows()}
    marked = [display.markdown(display.escape(name) + cited[name]) for name in shown["System"]]
    return display.table(shown.assign(System=marked), label=f"tab-field-{part}", caption=caption, wide=True, board=True)
