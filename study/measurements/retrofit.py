"""A trained stack turned into a loop: first layer, shared middle layers, last layer, then trained on for a while.

The middle layers of a stack of six become one layer that runs four times, their mean or the third layer, or two layers
that run twice, the means of every second one.  Each loop is tested at once and after a tenth of the stack's steps, at
two learning rates; beside the stack trained on for as long, and the loop of the first shape trained anew, for a tenth
of the steps at its recipe's rate and for as many as stack and retrofit had together (McLeish et al. 2025 do the same
with pretrained language models).
"""

from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn

from rtx_core.models import build_model
from rtx_core.train.config import TrainConfig
from rtx_core.train.trainer import train

LOOPS = {  # layers of the stack whose mean each looped layer is
    "mean": ((1, 2, 3, 4),),
    "third layer": ((2,),),
    "two layers": ((1, 3), (2, 4)),
}
RATES = (1e-3, 3e-3)
SHARE = 10  # of the stack's steps, one in so many


def looped(stack: nn.Module, sources: tuple[tuple[int, ...], ...]) -> nn.Module:
    """The loop whose core layers are means of the stack's layers, four applications in all."""
    settings = stack.config.model_dump() | {"num_layers": 2 + len(sources), "num_core_layers": len(sources)}
    loop = build_model("looped", seed=0, **settings | {"num_passes": 4 // len(sources)})
    weights = {name: tensor for name, tensor in stack.state_dict().items() if not name.startswith("layers.")}
    layers = [layer.state_dict() for layer in stack.layers]
    for i, indices in enumerate(((0,), *sources, (len(layers) - 1,))):
        for name in layers[0]:
            weights[f"layers.{i}.{name}"] = torch.stack([layers[j][name] for j in indices]).mean(0)
    loop.load_state_dict(weights)
    return loop


def of_run(record, study) -> list[tuple]:
    """Test losses (nats) of every variant: at once (steps 0), and trained for so many steps at a rate."""
    stack, task, cpu = study.trained(record).cpu(), study.task, torch.device("cpu")
    recipe, rows = TrainConfig(**record["config"]["train"]), []
    tenth = recipe.steps // SHARE

    def add(name: str, model: nn.Module, steps: int, rate: float, warmup: int) -> None:
        if steps:
            schedule = {"steps": steps, "eval_every": steps, "warmup_steps": warmup, "learning_rate": rate}
            config = recipe.replace(**schedule, min_learning_rate=rate / 10)
            with TemporaryDirectory() as folder:
                train(model, task, config, record["seed"], cpu, Path(folder) / "checkpoint.safetensors")
        loss = task.test(model.eval(), cpu, nullcontext())[0]["loss"]
        parameters = sum(p.numel() for p in model.parameters())
        rows.append({"model": name, "steps": steps, "learning_rate": rate, "loss": loss, "parameters": parameters})

    add("stack", stack, 0, 0.0, 0)
    for name, sources in LOOPS.items():
        add(name, looped(stack, sources), 0, 0.0, 0)
        for rate in RATES:
            add(name, looped(stack, sources), tenth, rate, 0)
    for rate in RATES:
        add("stack", study.trained(record).cpu(), tenth, rate, 0)
    for steps in (tenth, recipe.steps + tenth):
        settings = looped(stack, LOOPS["mean"]).config.model_dump()
        anew = build_model("looped", seed=record["seed"], **settings)
        add("anew", anew, steps, recipe.learning_rate, min(recipe.warmup_steps, tenth // 2))
    return [({"trained_steps": recipe.steps, "rows": rows}, None)]
