"""Related work: how many papers of the field's table ran which control."""

from rtx_core.report.quantities import Quantities
from study import field


def quantities() -> Quantities:
    """Of the rows of `field.yaml`."""

    def papers() -> list[dict]:
        return [row for row in field.rows() if row["key"]]

    def with_control(head: str) -> str:
        (control,) = (control for control, known in field.CONTROLS.items() if known == head)
        return str(sum(control in row.get("controls", ()) for row in papers()))

    numbers = {
        "papers": lambda: str(len(papers())),
        "depth": lambda: with_control("Depth"),
        "narrow": lambda: with_control("Narrow"),
    }
    return Quantities(numbers)
