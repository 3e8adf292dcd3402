"""What the page *Try it* says of its models: `demo` is the measurement of its classifier."""

from rtx_core.paths import REPOSITORY
from rtx_core.records import Record
from rtx_core.report.values import Runs, Space
from study import paper
from study.demo.explorer import read_texts
from study.values.common import functions


def demo() -> Record:
    return paper.measurements("demo", of="sst2")[0]


def positive(passes: int) -> list[float]:
    """How likely the classifier finds each recorded sentence positive after so many passes."""
    return [example["passes"][passes - 1]["probabilities"][1] for example in demo()["examples"]]


def cups_right(move: int, passes: int) -> float:
    """The share of answers after so many moves that the layer which tracks three cups gives rightly."""
    name = "state-tracking-letters16-steps12000"
    run = next(r for r in Runs(paper.records(name=name), name).of("1x8") if r["seed"] == 0)
    return 1 - run["test"]["parts"][move - 1]["error_by_passes"][passes - 1]


def hops_part() -> str:
    """A part after pass 1 that the explorer's text of hops cannot do without."""
    text = read_texts(REPOSITORY / "book" / "demo" / "models")["hops"]
    return "head {1} in pass {0}".format(*next(part.split(".") for part in text["serves"] if not part.startswith("1.")))


VALUES = {"demo": demo, "explorer": lambda: Space({"hops": hops_part()})} | functions(positive, cups_right)
