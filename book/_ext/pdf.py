"""What `make pdf` does on the way to LaTeX: numbers as they are on a screen, and wide tables that fit."""

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.latex.nodes import thebibliography
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.texescape import escape

SIZES = {"small": 100, "footnotesize": 112, "scriptsize": 128}  # size of letters -> digits that a line holds
GAP = 3  # digits that the space around a cell takes, at most
WHOLE = 16  # digits of a cell that is never broken


class Parts(SphinxPostTransform):
    """The start page becomes the preface, each table of contents in it a part; the bibliography comes back to
    its own page, and code that is folded on a screen is left out."""

    default_priority = 760  # Sphinx moves the bibliography to the end at 750
    builders = ("latex",)

    def run(self, **options: object) -> None:
        root = self.document.next_node(nodes.section)
        trees = [node for node in root if "toctree-wrapper" in node.get("classes", ())]
        for place, tree in zip(trees, self.config.external_site_map.root.subtrees):
            place.insert(0, latex(rf"\part{{{escape(tree.caption or '', self.config.latex_engine)}}}"))
        for section in [node for node in root if isinstance(node, nodes.section)]:
            section.replace_self([nodes.rubric("", "", *section[0].children), *section[1:]])
        root.insert(1, latex(r"\chapter*{Preface}\addcontentsline{toc}{chapter}{Preface}"))
        for cell in list(self.document.findall(nodes.container)):
            if cell.get("nb_element") == "cell_code_source":
                cell.parent.remove(cell)
        listed = self.document.next_node(thebibliography)
        for page in self.document.findall(addnodes.start_of_file):
            if page["docname"] == "references" and listed is not None:
                listed.parent.remove(listed)
                page.children = []
                page.extend([latex(r"\phantomsection\label{\detokenize{references::doc}}"), listed])
                break


class Tables(SphinxPostTransform):
    """Numbers under numbers, letters as small as the rows need, long cells on several lines; a box around a
    table is taken off, because no page can end in it."""

    default_priority = 701
    builders = ("latex",)

    def run(self, **options: object) -> None:
        for box in [node for node in self.document.findall(nodes.admonition) if node.next_node(nodes.table)]:
            box.replace_self([nodes.rubric("", "", *box[0].children), *box[1:]])
        for table in list(self.document.findall(nodes.table)):
            rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
            columns = list(zip(*rows))
            size, wanted, shares = layout(columns)
            lines = sum(max(-(-width(cell) // max(n, 1)) for cell, n in zip(row, shares)) for row in rows)
            if lines > 40:  # those of a table that is sure to fit on a page
                table["classes"].append("longtable")
            spec = ""
            for column, want, share in zip(columns, wanted, shares):
                side = "left" if "text-right" in column[-1]["classes"] else "right"  # ragged
                broken = rf">{{\ragged{side}\arraybackslash}}p{{{share / SIZES[size]:.4f}\linewidth}}"
                spec += broken if share < want else "r" if side == "left" else "l"
            spec = addnodes.tabular_col_spec(spec=spec)
            table.replace_self([latex(rf"\begingroup\{size}"), spec, table, latex(r"\endgroup")])


def layout(columns: list[tuple[nodes.Element]]) -> tuple[str, list[float], list[float]]:
    """(size of letters, digits that each column wants, digits that it gets).

    The largest letters in which nothing is broken; if there are none, those in which only long cells are.
    Where the line is too short for what columns want, each gets its least and a part of what is left.
    """
    wanted = [max(map(width, column)) for column in columns]
    words = [max(width(c, word) for c in column for word in c.astext().split() or [""]) for column in columns]
    least = [want if want <= WHOLE else word for want, word in zip(wanted, words)]
    rooms = {size: digits - GAP * len(columns) for size, digits in SIZES.items()}
    fitting = [size for size, room in rooms.items() if sum(wanted) <= room]
    breaking = [size for size, room in rooms.items() if sum(least) <= 0.8 * room]
    size = [*fitting, *breaking, "scriptsize"][0]
    if sum(least) > rooms[size]:
        least = words
    if sum(wanted) <= max(rooms[size], sum(least)):
        return size, wanted, wanted
    part = max(rooms[size] - sum(least), 0) / (sum(wanted) - sum(least))
    return size, wanted, [low + part * (want - low) for want, low in zip(wanted, least)]


def width(cell: nodes.Element, word: str | None = None) -> float:
    """How many digits are as wide as the cell's text, or as a word of it."""
    text = cell.astext() if word is None else word
    wide = sum(0.9 if x.islower() else 0.6 if x in " .,:;()'/|" else 1 if x.isdigit() else 1.3 for x in text)
    return wide * (1.15 if isinstance(cell.parent.parent, nodes.thead) else 1.03)  # a heading is bold


def latex(text: str) -> nodes.raw:
    return nodes.raw("", text, format="latex")


def setup(app: Sphinx) -> dict:
    app.add_post_transform(Parts)
    app.add_post_transform(Tables)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
