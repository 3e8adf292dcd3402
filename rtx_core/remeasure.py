"""Time the trained models of an experiment again, one after another: `python -m rtx_core.remeasure sst2`.

A latency taken while the machine was busy with something else is worth little; this replaces it in the records whose
trained weights are still in `_build/runs`, and leaves everything else of them as it is.
"""

import sys

from rtx_core.corpora.dataset import dataset
from rtx_core.corpora.sources import resolve
from rtx_core.errors import RtxError
from rtx_core.models import load_model
from rtx_core.parameters import settings
from rtx_core.paths import write_json
from rtx_core.results import record, store
from rtx_core.run import choose_device, measure_latency, work


def remeasure(experiment: str, **given: object) -> None:
    chosen = settings(experiment, given)
    source = resolve(chosen.source)
    where = choose_device(chosen.device)
    data = dataset(chosen.corpus, source, chosen.split, chosen.max_length, chosen.train_rows)
    for name in chosen.models:
        for seed in chosen.seeds:
            found = store.find(source, chosen.variant, name, seed)
            if found is None:
                raise RtxError(f"There is no record of {name}, seed {seed}, in {chosen.variant}; run the experiment first.")
            model = load_model(work(chosen, found["key"]) / "model.safetensors").to(where)
            content = found.content | {"latency": measure_latency(model, data, chosen, where)}
            write_json(found.path, record.check(content, found.path.name))
            for m in content["latency"]["measured"]:
                print(f"{chosen.variant} · {name} · seed {seed} · batch {m['batch']}: {m['median_ms']:.2f} ms", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m rtx_core.remeasure EXPERIMENT")
    try:
        remeasure(sys.argv[1])
    except RtxError as error:
        sys.exit(str(error))
