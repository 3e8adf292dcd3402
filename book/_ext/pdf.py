"""The paper on paper: what `make pdf` does to the pages on their way to LaTeX, so that tables fit and the book has parts.

Where chapters have numbers on a screen, they, their tables and their figures have the same here.  What moves on a screen is
left out; a figure that stands still is beside it.
"""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.latex.nodes import thebibliography
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.texescape import escape

# Size of letters -> how many digits of it a line holds.
SIZES = {"small": 100, "footnotesize": 112, "scriptsize": 128}
GAP = 3  # digits that the space around a cell takes, at most
WHOLE = 16  # digits of a cell that is never broken
CALL = re.compile(r"[\w.]+\(.*\)")  # alone on a line
LINES = 40  # of a table that is sure to fit on a page


class Parts(SphinxPostTransform):
    """The start page becomes the preface, and each table of contents in it a part with its caption."""

    default_priority = 700
    builders = ("latex",)

    def run(self, **options: object) -> None:
        root = self.document.next_node(nodes.section)
        trees = [node for node in root if isinstance(node, nodes.compound) and "toctree-wrapper" in node["classes"]]
        for place, tree in zip(trees, self.config.external_site_map.root.subtrees):
            place.insert(0, latex(rf"\part{{{escape(tree.caption or '', self.config.latex_engine)}}}"))
        for section in [node for node in root if isinstance(node, nodes.section)]:
            section.replace_self([nodes.rubric("", "", *section[0].children), *section[1:]])
        root.insert(1, latex(r"\chapter*{Preface}\addcontentsline{toc}{chapter}{Preface}"))


class Calls(SphinxPostTransform):
    """A line that only draws what stands under it is for the screen, where it can be changed."""

    default_priority = 702
    builders = ("latex",)

    def run(self, **options: object) -> None:
        for code in [node for node in self.document.findall(nodes.container) if node.get("nb_element") == "cell_code_source"]:
            if CALL.fullmatch(code.astext().strip()) and len(code.parent) > 1:
                code.parent.remove(code)


class References(SphinxPostTransform):
    """The bibliography, which Sphinx puts at the very end, comes back to its own page and brings the heading."""

    default_priority = 760  # Sphinx moves it at 750
    builders = ("latex",)

    def run(self, **options: object) -> None:
        page = next((page for page in self.document.findall(addnodes.start_of_file) if page["docname"] == "references"), None)
        listed = self.document.next_node(thebibliography)
        if page is not None and listed is not None:
            listed.parent.remove(listed)
            page.children = []
            page.extend([latex(r"\phantomsection\label{\detokenize{references::doc}}"), listed])


class Boxes(SphinxPostTransform):
    """A box with a table in it loses its frame, inside which no page can end."""

    default_priority = 700
    builders = ("latex",)

    def run(self, **options: object) -> None:
        for box in [node for node in self.document.findall(nodes.admonition) if node.next_node(nodes.table)]:
            box.replace_self([nodes.rubric("", "", *box[0].children), *box[1:]])


class Tables(SphinxPostTransform):
    """Numbers under numbers, letters as small as the rows need, and long cells on several lines."""

    default_priority = 701
    builders = ("latex",)

    def run(self, **options: object) -> None:
        for table in list(self.document.findall(nodes.table)):
            rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
            columns = list(zip(*rows))
            size, wanted, shares = layout(columns)
            lines = sum(max(-(-digits(cell) // max(share, 1)) for cell, share in zip(row, shares)) for row in rows)
            if lines > LINES:
                table["classes"].append("longtable")
            spec = ""
            for column, want, share in zip(columns, wanted, shares):
                right = "text-right" in column[-1]["classes"]
                part = rf">{{\ragged{'left' if right else 'right'}\arraybackslash}}p{{{share / SIZES[size]:.4f}\linewidth}}"
                spec += part if share < want else "r" if right else "l"
            table.replace_self([latex(rf"\begingroup\{size}"), addnodes.tabular_col_spec(spec=spec), table, latex(r"\endgroup")])


def layout(columns: list[tuple[nodes.Element]]) -> tuple[str, list[float], list[float]]:
    """(size of letters, width that each column wants, width that it gets).

    The largest letters are taken in which nothing is broken; if there are none, those in which only long cells are.
    """
    wanted = [max(map(digits, column)) for column in columns]
    words = [max(map(longest_word, column)) for column in columns]
    least = [want if want <= WHOLE else word for want, word in zip(wanted, words)]
    rooms = {size: digits - GAP * len(columns) for size, digits in SIZES.items()}
    size = next((size for size, room in rooms.items() if sum(wanted) <= room), None)
    size = size or next((size for size, room in rooms.items() if sum(least) <= 0.8 * room), "scriptsize")
    return size, wanted, shared(wanted, least if sum(least) <= rooms[size] else words, rooms[size])


def shared(wanted: list[float], least: list[float], room: float) -> list[float]:
    """The width of each column: what it wants if there is room, else its least and a part of what is left."""
    if sum(wanted) <= max(room, sum(least)):
        return wanted
    left = max(room - sum(least), 0) / (sum(wanted) - sum(least))
    return [low + left * (want - low) for want, low in zip(wanted, least)]


def digits(cell: nodes.Element, word: str | None = None) -> float:
    """How many digits are as wide as the cell's text, or as a word of it."""
    text = cell.astext() if word is None else word
    wide = sum(0.9 if letter.islower() else 0.6 if letter in " .,:;()'/|" else 1 if letter.isdigit() else 1.3 for letter in text)
    return wide * (1.15 if isinstance(cell.parent.parent, nodes.thead) else 1.03)  # a heading is bold


def longest_word(cell: nodes.Element) -> float:
    return max((digits(cell, word) for word in cell.astext().replace("-", "- ").split()), default=0)


def latex(text: str) -> nodes.raw:
    return nodes.raw("", text, format="latex")


def setup(app: Sphinx) -> dict:
    for transform in (Parts, Boxes, Tables, Calls, References):
        app.add_post_transform(transform)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
