"""The directive `field-table`: the table of `study/field.py`, its caption the directive's text.

:::{field-table}
The field.
:::
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from study import field


class FieldTable(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(field.FILE))
        return self.parse_text_to_nodes(field.table(" ".join(self.content)).markdown)


def setup(app: Sphinx) -> dict:
    app.add_directive("field-table", FieldTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
