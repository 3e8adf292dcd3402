"""Time the trained models of an experiment again, one after another: `python -m rtx_core.remeasure sst2 [name=value …]`.

A latency taken while the machine was busy with something else is worth little; this replaces it in the records whose
trained weights are still in `_build/runs`, and leaves everything else of them as it is.
"""

import sys

import yaml

from rtx_core.corpora.dataset import dataset
from rtx_core.corpora.sources import resolve
from rtx_core.errors import RtxError
from rtx_core.models import load_model
from rtx_core.parameters import settings
from rtx_core.paths import write_json
from rtx_core.results import record, store
from rtx_core.run import choose_device, measure_latency, work
from rtx_core.training.devices import keep_heap


def remeasure(experiment: str, given: dict[str, object]) -> None:
    """Parameters are those of the experiment's notebook, so that every variant and seed can be named."""
    chosen = settings(experiment, given)
    source, where = resolve(chosen.source), choose_device(chosen.device)
    data = dataset(**chosen.data)
    keep_heap()  # as in a run
    for name in chosen.models:
        for seed in chosen.seeds:
            found = store.find(source, chosen.variant, name, seed)
            weights = work(chosen, found["key"]) / "model.safetensors" if found else None
            if weights is None or not weights.exists():
                raise RtxError(
                    f"The trained weights of {chosen.variant}, {name}, seed {seed}, are not in _build/runs; only where a run was made "
                    f"can it be timed again."
                )
            model = load_model(weights).to(where)
            content = found.content | {"latency": measure_latency(model, data, chosen, where)}
            write_json(found.path, record.check(content, found.path.name))
            for m in content["latency"]["measured"]:
                print(f"{chosen.variant} · {name} · seed {seed} · batch {m['batch']}: {m['median_ms']:.2f} ms", flush=True)


if __name__ == "__main__":
    experiment, *pairs = sys.argv[1:] or sys.exit("usage: python -m rtx_core.remeasure EXPERIMENT [name=value …]")
    try:
        remeasure(experiment, {name: yaml.safe_load(value) for name, _, value in (pair.partition("=") for pair in pairs)})
    except RtxError as error:
        sys.exit(str(error))
