"""The field's table (page Related work) from `field.yaml`: a row a system, its controls marked."""

from pathlib import Path

import pandas as pd
import yaml

from rtx_core.report import display

WIDE, NARROW = "iso-parameter wide", "iso-parameter deep and narrow"
CONTROLS = {WIDE: "Wide", NARROW: "Narrow"}  # as field.yaml names them -> as the page does
CONTROLS |= {"iso-compute by depth": "Depth", "iso-compute by tokens": "Tokens", "tuned rate": "Rate"}
COLUMNS = {"claim": "Headline", "loops": "Passes"}  # beside those that are named as in field.yaml
ORDER = ("claim", "stored", "loops", "seeds", "interval", "code")  # fields that are shown
NOTED = ("effective", "tokens", "injection", "halting")  # what field.yaml has besides


def rows() -> list[dict]:
    return yaml.safe_load(Path(__file__).with_name("field.yaml").read_text(encoding="utf-8"))


def frame() -> pd.DataFrame:
    """A row a system, a column a control (● run, ◐ run in part, ○ equal parameters in an unread shape) and a field."""
    systems = []
    for row in rows():
        run, unsure = row.get("controls", ()), (WIDE, NARROW) if row.get("equal") else ()
        marked = {"●": run, "◐": row.get("partly", ()), "○": unsure}
        marks = {head[0]: next((m for m, of in marked.items() if c in of), None) for c, head in CONTROLS.items()}
        cells = {COLUMNS.get(name, name.capitalize()): row.get(name) for name in ORDER}
        systems.append({"System": row["name"]} | marks | cells)
    return pd.DataFrame(systems).fillna(display.MISSING)


def table(caption: str) -> display.Displayed:
    """The frame as a numbered table, each system with its year, which leads to the reference, and its code linked."""
    every, columns = rows(), frame()
    years = [f" {{cite:year}}`{row['key']}`" if row["key"] else "" for row in every]
    names = [display.escape(row["name"]) for row in every]
    columns["System"] = [display.markdown(name + year) for name, year in zip(names, years)]
    links = [f"[code](https://github.com/{row['code']})" if "code" in row else "" for row in every]
    links = [link or "here" * (not row["key"]) for link, row in zip(links, every)]
    columns["Code"] = [display.markdown(link) if link else None for link in links]
    return display.table(columns, label="tab-field", caption=caption, wide=True, board=True)
