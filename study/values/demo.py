"""The model that the page *Try it* runs, as measured: `demo.accuracy`, `demo.after.three`."""

from rtx_core.paths import REPOSITORY
from rtx_core.report.evidence import WORDS
from rtx_core.report.values import Model, Space
from study import paper
from study.demo.explorer_text import read_texts


def demo() -> Space:
    found = paper.measurements("demo", of="sst2")
    model = Model(found, "the model of the page Try it; make it: python -m rtx_core measure demo sst2")
    (measured,) = found
    after = dict(enumerate(measured["accuracy_after"], start=1))
    trained = measured["trained_passes"]
    sure = [[each["probabilities"][1] for each in example["passes"]] for example in measured["examples"]]
    return Space(
        {
            "n": model.n,
            "accuracy": model.accuracy,
            "fp32": measured["fp32_accuracy"],
            "same": measured["same_class"],
            "pieces": measured["pieces"],
            "trained": trained,
            "after": {WORDS[n]: accuracy for n, accuracy in after.items()},
            "spread": 100 * (max(after.values()) - min(after.values())),
            "examples": len(sure),
            "positive": sum(shares[trained - 1] > 0.5 for shares in sure),
            "surer": sum(abs(shares[-1] - 0.5) > abs(shares[trained - 1] - 0.5) for shares in sure),
        }
    )


class Cups:
    """The run whose layer tracks three cups on that page."""

    def __init__(self):
        found = paper.records(name="state-tracking-letters16-steps12000", model="1x8")
        self.record = Model([r for r in found if r["seed"] == 0], "the cups of the page Try it").records[0]
        self.letters = self.record["config"]["data"]["letters"]

    def right(self, move: int, passes: int) -> float:
        return 1 - self.record["test"]["parts"][move - 1]["error_by_passes"][passes - 1]


def explorer() -> Space:
    """A part after pass 1 that the explorer's text cannot do without: `explorer.hops`, `explorer.cups`."""
    named = {}
    for toy, text in read_texts(REPOSITORY / "book" / "demo" / "models").items():
        step, head = next(part.split(".") for part in text["serves"] if not part.startswith("1."))
        named[toy] = f"head {head} in pass {step}"
    return Space(named)


VALUES = {"demo": demo, "cups": Cups, "explorer": explorer}
