"""Trained on one corpus, tested on another: `python -m rtx_core.evaluation.transfer sst2 yelp [name=value …]`.

Both corpora must have the same classes.  The test part is the one of the other corpus' own experiment, so that a transferred
model and one trained there answer the same texts.
"""

from contextlib import nullcontext

from rtx_core.corpora.dataset import dataset
from rtx_core.corpora.sources import CORPORA, resolve
from rtx_core.errors import RtxError
from rtx_core.evaluation.command import command, say, trained
from rtx_core.evaluation.metrics import logits_of, metrics
from rtx_core.parameters import settings
from rtx_core.results import measurement
from rtx_core.training.devices import device, environment, keep_heap


def transfer(trained_on: str, tested_on: str, given: dict[str, object]) -> None:
    """Measure every model and seed that the parameters of the first experiment's notebook name."""
    chosen, target = settings(trained_on, given), settings(tested_on, {name: given[name] for name in ("source", "max_length") if name in given})
    classes = [CORPORA[s.corpus].classes for s in (chosen, target)]
    if classes[0] != classes[1]:
        raise RtxError(f"{trained_on} has classes {', '.join(classes[0])} and {tested_on} {', '.join(classes[1])}; transfer needs the same.")
    if resolve(chosen.source) == "embedded":
        raise RtxError("Embedded corpora have a vocabulary each, so a model reads no other than its own; transfer needs source hub or mirror.")
    data, where, made_by = dataset(**target.data), device(chosen.device), measurement.made_by("transfer")
    keep_heap()
    for name in chosen.models:
        for seed in chosen.seeds:
            run, model = trained(chosen, name, seed, where)
            logits = logits_of(model, data.test, where, nullcontext())
            content = {
                "kind": "transfer",
                "of": f"{chosen.variant}-to-{target.variant}",
                "name": f"{name}-seed{seed}",
                "model": name,
                "seed": seed,
                "protocol": run["protocol"],
                "run": run["key"],
                "trained_on": chosen.variant,
                "tested_on": target.variant,
                "data": data.facts,
                "test": metrics(logits, data.test.labels),
                "environment": environment(where),
                "code": made_by,
            }
            made = measurement.save(content, logits, data.test.labels)
            say(made["of"], name, f"seed {seed}", f"accuracy {made['test']['accuracy']:.4f}")


if __name__ == "__main__":
    command(transfer, "FROM TO")
