"""What `make pdf` does on the way to LaTeX: numbers as they are on a screen, and wide tables that fit."""

from pathlib import Path

import vl_convert
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.latex.nodes import thebibliography
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.transforms.post_transforms.images import ImageConverter
from sphinx.util.texescape import escape

ON_A_SCREEN = ("Run it yourself",)  # parts that a paper does without
LONGEST = 30  # letters of a cell for which a column of a long table is made wider


class Parts(SphinxPostTransform):
    """The start page becomes the preface, each table of contents in it a part; the bibliography comes back to
    its own section; what is folded on a screen is left out, and pages that are of use on one alone."""

    default_priority = 760  # Sphinx moves the bibliography to the end at 750
    builders = ("latex",)

    def run(self, **options: object) -> None:
        root = self.document.next_node(nodes.section)
        trees = [node for node in root if "toctree-wrapper" in node.get("classes", ())]
        for place, tree in zip(trees, self.config.external_site_map.root.subtrees):
            if tree.caption in ON_A_SCREEN:
                self.leave_out(place)
            elif tree.caption:  # else it goes on with the part before
                place.insert(0, latex(rf"\part{{{escape(tree.caption, self.config.latex_engine)}}}"))
        for section in [node for node in root if isinstance(node, nodes.section)]:
            section.replace_self([nodes.rubric("", "", *section[0].children), *section[1:]])
        root.insert(1, latex(r"\chapter*{Preface}\addcontentsline{toc}{chapter}{Preface}"))
        for node in list(self.document.findall(nodes.Element)):
            kinds = node.get("nb_element"), node.get("design_component"), *node.get("classes", ())
            is_code = "cell_code_source" in kinds and "tag_show-input" not in node.parent["classes"]
            if is_code or "dropdown" in kinds:  # folded on a screen
                node.parent.remove(node)
        listed = self.document.next_node(thebibliography)
        for section in self.document.findall(nodes.section):
            if section[0].astext() == "References" and listed is not None:
                listed.parent.remove(listed)
                section.replace_self(listed)  # it has a heading
                break

    def leave_out(self, part: nodes.Element) -> None:
        """Take these pages out; what links to them keeps its words."""
        pages = {page["docname"] for page in part.findall(addnodes.start_of_file)}
        part.parent.remove(part)
        for link in list(self.document.findall(nodes.reference)):
            if link.get("refuri", "").lstrip("%").partition("#")[0] in pages:
                link.replace_self(link.children)


class Tables(SphinxPostTransform):
    """Numbers under numbers, and columns that share the line (tabulary's L and R), of letters as small as their
    number needs; a table that may not fit on a page goes on over the next, its columns as wide as their longest
    cells ask.  A box around a table is taken off, because no page can end in it."""

    default_priority = 701
    builders = ("latex",)

    def run(self, **options: object) -> None:
        for box in [node for node in self.document.findall(nodes.admonition) if node.next_node(nodes.table)]:
            if "dropdown" not in box["classes"]:
                box.replace_self([nodes.rubric("", "", *box[0].children), *box[1:]])
        for table in list(self.document.findall(nodes.table)):
            rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
            columns = list(zip(*rows))
            size = "footnotesize" if len(columns) < 7 else "scriptsize"
            made = [latex(rf"\begingroup\{size}\setlength{{\tymin}}{{{0.75 / len(columns):.3f}\linewidth}}")]
            if len(rows) > 30 or len(table.astext()) > 2500:
                table["classes"] = [*(set(table["classes"]) - {"colwidths-auto"}), "longtable", "colwidths-given"]
                for spec, column in zip(table.findall(nodes.colspec), columns):
                    spec["colwidth"] = max(min(len(cell.astext()), LONGEST) for cell in column) + 3
            else:
                kinds = ["R" if "text-right" in column[-1]["classes"] else "L" for column in columns]
                made.append(addnodes.tabular_col_spec(spec="".join(kinds)))
            table.replace_self([*made, table, latex(r"\endgroup")])


class Figures(ImageConverter):
    """Figures are drawn as SVG; LaTeX takes them as PDF."""

    conversion_rules = [("image/svg+xml", "application/pdf")]

    def is_available(self) -> bool:
        return True

    def handle(self, node: nodes.image) -> None:
        super().handle(node)
        node["width"] = "78%" if "broad" in node["classes"] else "56%"  # of the line

    def convert(self, _from: str, _to: str) -> bool:
        Path(_to).write_bytes(vl_convert.svg_to_pdf(Path(_from).read_text(encoding="utf-8")))
        return True


def latex(text: str) -> nodes.raw:
    return nodes.raw("", text, format="latex")


def setup(app: Sphinx) -> dict:
    app.add_post_transform(Parts)
    app.add_post_transform(Tables)
    app.add_post_transform(Figures)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
