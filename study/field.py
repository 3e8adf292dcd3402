"""The field's table (page Related work) from `field.yaml`: a row a system, its controls marked."""

from pathlib import Path

import pandas as pd
import yaml

from rtx_core.errors import RtxError
from rtx_core.report import display

FILE = Path(__file__).with_name("field.yaml")
WIDE, NARROW = "iso-parameter wide", "iso-parameter deep and narrow"
CONTROLS = {WIDE: "Wide", NARROW: "Narrow"}  # as field.yaml names them -> as the page does
CONTROLS |= {"iso-compute by depth": "Depth", "iso-compute by tokens": "Tokens", "tuned rate": "Rate"}
COLUMNS = {  # field -> head, after the controls, of which the first letter is the head
    "claim": "Headline",
    "stored": "Stored",
    "effective": "Effective",
    "tokens": "Tokens",
    "loops": "Passes",
    "injection": "Injection",
    "halting": "Halting",
    "seeds": "Seeds",
    "interval": "Interval",
    "code": "Code",
    "read": "Read",
}
NEEDED, FIELDS = {"name", "key", "source", "read", "claim", "where"}, {*COLUMNS, "controls", "equal"}


def rows(path: Path = FILE) -> list[dict]:
    """The systems of a YAML file; no field missing or unknown, each control of the five."""
    found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    for row in found:
        wrong = sorted(NEEDED - row.keys()) + sorted(row.keys() - NEEDED - FIELDS)
        wrong += [control for control in row.get("controls", ()) if control not in CONTROLS]
        if wrong:
            raise RtxError(f"{path.name}, {row.get('name')!r}: missing or unknown: {', '.join(wrong)}.")
    return found


def frame() -> pd.DataFrame:
    """A row a system, a column a control (● run, ○ equal parameters of untold shape) and a field."""
    found = []
    for row in rows():
        run, unsure = row.get("controls", ()), (WIDE, NARROW) if row.get("equal") else ()
        marks = {head[0]: "●" if c in run else "○" if c in unsure else None for c, head in CONTROLS.items()}
        found.append({"System": row["name"], **marks, **{head: row.get(name) for name, head in COLUMNS.items()}})
    return pd.DataFrame(found).fillna(display.MISSING)


def table(caption: str) -> display.Displayed:
    """The frame as a numbered table, each system with its citation, each repository a link."""
    every, shown = rows(), frame()
    cited = {row["name"]: f" {{cite:p}}`{row['key']}`" if row["key"] else "" for row in every}
    shown["System"] = [display.markdown(display.escape(name) + cited[name]) for name in shown["System"]]
    shown["Code"] = [
        display.markdown(f"[code](https://github.com/{row['code']})") if "code" in row else None for row in every
    ]
    return display.table(shown, label="tab-field", caption=caption, wide=True, board=True)
