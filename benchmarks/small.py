"""What a training step of the language models costs that two cores train to the end: `python -m benchmarks.small`.

Writes results/benchmarks/small-<cpu or cuda>.json.  The models of a study take turns in one process, each with the
trainer's own step, so that their times are of one machine in one hour, which those of their runs are not.  Under a
minute on a quiet core.
"""

import torch

from benchmarks import timing
from rtx_core import data
from rtx_core.experiments.configure import configure
from rtx_core.models import build_model
from rtx_core.models.registry import config_of
from rtx_core.train.device import keep_heap
from study.experiments import EXPERIMENTS

STUDIES = ("shakespeare-small", "tinystories-small")
ROUNDS = 15


def steps(study: str, options: timing.Options) -> dict[str, dict]:
    """Milliseconds of an optimizer step of each model, on the same batches."""
    contestants = {}
    for name in EXPERIMENTS[study].default_models:
        config = configure(study, name, source=options.source)
        task = data.task(config.data, config.train.batch_size)
        fields = config_of(config.architecture).names()
        sizes = {key: value for key, value in task.model_settings.items() if key in fields}
        model = build_model(config.architecture, seed=0, **sizes | config.overrides)
        contestants[name] = timing.stepping(model, task, config.train, options.where)
    return timing.interleaved(contestants, options.rounds(ROUNDS))


def measure(options: timing.Options) -> dict:
    return {"steps": {study: steps(study, options) for study in STUDIES}}


if __name__ == "__main__":
    options = timing.options(__doc__)
    torch.set_num_threads(1)
    keep_heap()
    timing.save("small", measure(options), options)
