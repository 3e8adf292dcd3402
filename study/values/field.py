"""How many of the papers in the field's table ran which control, as far as we could read them."""

from rtx_core.report.values import Space
from study import field


def counted() -> Space:
    papers = [row for row in field.rows() if row["key"]]
    ran = {name: sum(name in row.get("controls", ()) for row in papers) for name in field.CONTROLS}
    return Space(
        {
            "papers": len(papers),
            "abstract": sum(row["read"].startswith("abstract") for row in papers),
            **{field.CONTROLS[name].lower(): number for name, number in ran.items()},
        }
    )


VALUES = {"field": counted}
