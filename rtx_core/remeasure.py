"""Time the trained models of an experiment again, one after another: `python -m rtx_core.remeasure sst2 [name=value …]`.

A latency taken while the machine was busy with something else is worth little; this replaces it in the records whose
trained weights are still in `_build/runs`, and leaves everything else of them as it is.
"""

from rtx_core.corpora.dataset import dataset
from rtx_core.evaluation.command import command, say, trained
from rtx_core.parameters import settings
from rtx_core.paths import write_json
from rtx_core.results import record
from rtx_core.run import choose_device, measure_latency
from rtx_core.training.devices import keep_heap


def remeasure(experiment: str, given: dict[str, object]) -> None:
    """Parameters are those of the experiment's notebook, so that every variant and seed can be named."""
    chosen = settings(experiment, given)
    where, data = choose_device(chosen.device), dataset(**chosen.data)
    keep_heap()  # as in a run
    for name in chosen.models:
        for seed in chosen.seeds:
            found, model = trained(chosen, name, seed, where)
            content = found.content | {"latency": measure_latency(model, data, chosen, where)}
            write_json(found.path, record.check(content, found.path.name))
            for m in content["latency"]["measured"]:
                say(chosen.variant, name, f"seed {seed}", f"batch {m['batch']}: {m['median_ms']:.2f} ms")


if __name__ == "__main__":
    command(remeasure, "EXPERIMENT")
