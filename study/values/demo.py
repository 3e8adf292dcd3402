"""The model that the page *Try it* runs, as measured: `demo.accuracy`, `demo.after.three`."""

from rtx_core.report.evidence import WORDS
from rtx_core.report.values import Model, Space
from study import paper


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
            "logits": measured["logit_difference"],
            "pieces": measured["pieces"],
            "trained": trained,
            "after": {WORDS[n]: accuracy for n, accuracy in after.items()},
            "spread": 100 * (max(after.values()) - min(after.values())),
            "examples": len(sure),
            "positive": sum(shares[trained - 1] > 0.5 for shares in sure),
            "surer": sum(abs(shares[-1] - 0.5) > abs(shares[trained - 1] - 0.5) for shares in sure),
        }
    )


VALUES = {"demo": demo}
