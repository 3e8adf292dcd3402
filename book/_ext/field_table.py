"""The directive `field-table`: one of the two tables of `study/field.py`, its caption the directive's text.

:::{field-table} built
What was built.
:::
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from study import field


class FieldTable(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(field.FILE))
        shown = field.table(self.arguments[0], " ".join(self.content))
        return self.parse_text_to_nodes(shown.markdown)


def setup(app: Sphinx) -> dict:
    app.add_directive("field-table", FieldTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
