"""Trained on one corpus, tested on another: `measure("transfer", "sst2", to="yelp")`.

Both corpora must have the same classes.  The test part is the one of the other corpus' own experiment, so
that a transferred model and one trained there answer the same texts.
"""

from contextlib import nullcontext

from rtx_core.errors import RtxError
from rtx_core.train.device import environment


def of_run(record, study) -> list[tuple]:
    """The test entry and the predictions of a run on the texts of `study.target`."""
    if study.target is study:
        raise RtxError('Transfer needs the experiment to test on; name it, for example to="yelp".')
    if study.source == "embedded":
        raise RtxError(
            "Synthetic corpora have a vocabulary each, so a model reads no other than its own; use real text."
        )
    (name, classes), (target, expected) = ((s.name, s.task.classes) for s in (study, study.target))
    if classes != expected:
        raise RtxError(
            f"{name} has classes {', '.join(classes)} and {target} {', '.join(expected)}; transfer needs the same."
        )
    model = study.trained(record).to(study.device)
    test, predictions = study.target.task.test(model, study.device, nullcontext())
    content = {"trained_on": name, "tested_on": target, "test": test, "environment": environment(study.device)}
    return [(content, predictions)]
