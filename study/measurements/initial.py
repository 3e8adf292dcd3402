"""Losses before training, over many initializations.

The study lists one initial loss a model, 8.369 to 8.390, and concludes that initialization decides which
model ends best.  How far such losses differ between seeds tells whether that order is more than chance.
"""

from contextlib import nullcontext

from rtx_core.data.tasks import losses_of, mean_and_error
from rtx_core.experiments.configure import configure
from rtx_core.models import build_model
from rtx_core.models.registry import config_of
from rtx_core.train.device import environment

SEEDS = 10
BATCHES = 2  # of the evaluation's


def identity(study) -> dict:
    return {"of": study.experiment, "name": "losses", "model": ", ".join(study.models), "seed": 0}


def of_study(study) -> tuple[dict, None]:
    """The loss of every model and initialization on the same validation texts."""
    batches, losses = study.task.evaluation["validation"][:BATCHES], {}
    for name in study.models:
        losses[name], config = [], configure(study.experiment, name, **study.settings)
        fields = config_of(config.architecture).names()
        settings = config.overrides | {k: v for k, v in study.task.model_settings.items() if k in fields}
        for seed in range(SEEDS):
            model = build_model(config.architecture, seed=seed, **settings).to(study.device)
            batch_losses, sizes = losses_of(model, batches, study.device, nullcontext())
            losses[name].append(mean_and_error(batch_losses, sizes)[0])
        print(f"{name}: {min(losses[name]):.4f} to {max(losses[name]):.4f}", flush=True)
    content = {"losses": losses, "n": sum(targets.numel() for _, targets in batches)}
    return content | {"environment": environment(study.device)}, None
