"""A model from outside this package is tried before it is trained: much of what is wrong with one would else be told by
a traceback, and the worst of it after the last step, when the weights are saved."""

import json
import math
from copy import deepcopy
from typing import cast

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from rtx_core.data.tasks import evaluation_mode
from rtx_core.errors import RtxError, reason
from rtx_core.evaluate.generation import stream
from rtx_core.models.build import build_model, set_weights, untied
from rtx_core.models.packed import Packed
from rtx_core.models.protocols import is_writer
from rtx_core.records import schema
from rtx_core.settings import Settings
from rtx_core.train.config import TrainConfig
from rtx_core.train.trainer import OptimizerStep, autocast_of, optimizer_of


def dry_run(name: str, config: Settings, task, train: TrainConfig, device: torch.device) -> None:
    """An error of one sentence unless a registered model trains, and answers the same once it is saved and loaded.

    One step of a throwaway copy, on a batch of the task.  It reseeds torch's generators, as the trainer does after it.
    """
    try:
        problem = _problem(name, config, task, train, device)
    except (RtxError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        problem = f"fails in a trial step ({reason(error)})"
    if problem:
        raise RtxError(f"The model {name!r} {problem}.")


def _problem(name: str, config: Settings, task, train: TrainConfig, device: torch.device) -> str:
    """What is wrong with a model, as the end of a sentence; "" where nothing is."""
    fields = json.loads(config.model_dump_json())  # as a file of weights has them
    model = build_model(name, seed=0, **fields).to(device).train()
    before, autocast = dict(model.named_parameters()), autocast_of(train.precision, device)
    if not any(p.requires_grad for p in before.values()):
        return f"has {len(before)} parameters, none of which can learn; expected one with requires_grad"
    if names := [key for key, p in before.items() if p.is_complex()]:
        return f"has a complex parameter, {names[0]}; use two real ones"
    optimizer, step_examples = optimizer_of(model, train), task.examples(0)
    inputs, targets = (part.to(device) for part in task.step(0, 0)[0])
    if begin_step := getattr(model, "begin_step", None):
        begin_step(0, 0)
    with autocast:
        objective, _ = task.loss(model, inputs, targets, step_examples)
    if not objective.requires_grad:
        return "gives a loss that no parameter can change; look for integers, argmax, no_grad() or detach() in forward"
    if not math.isfinite(objective.item()):
        return f"begins with a loss of {objective.item()}; expected a finite one"
    objective.backward()
    after = dict(model.named_parameters())
    if names := [key for key, p in after.items() if p is not before.get(key)]:
        return f"makes the parameter {names[0]} in forward, so that it cannot be loaded; make all of them in __init__"
    if names := [key for key, p in after.items() if p.grad is not None and p.grad.is_sparse]:
        return f"has a sparse gradient, of {names[0]}, which AdamW does not take; use sparse=False"
    OptimizerStep().update(model, optimizer, train.clip_norm)

    state = model.state_dict()
    if names := [key for key, value in state.items() if not isinstance(value, Tensor)]:
        return f"saves {names[0]!r}, which is no tensor; keep the state in buffers, not in get_extra_state"
    loaded = build_model(name, seed=1, **fields)
    try:
        set_weights(loaded, load(save(untied(state))))
    except Exception as error:
        return f"cannot be saved and loaded ({reason(error)}); use plain parameters and buffers, made in __init__"

    def answer(model: nn.Module) -> float:
        torch.manual_seed(0)
        with evaluation_mode(model), autocast:
            if task.classes:
                ids, lengths, _ = task.parts["test"].take(np.zeros(1, np.int64))
                model(Packed.from_flat(ids, lengths).to(device))  # a text alone, as it is timed
            elif is_writer(model):
                list(stream(cast("nn.Module", model), torch.zeros(1, dtype=torch.long, device=device), 2))
            if hasattr(task, "evaluate_batches"):
                task.evaluate_batches(model, task.validation[:1], device, autocast)
            return task.loss(model, inputs, targets, step_examples)[0].item()

    before_saving, after_loading = answer(model), answer(loaded.to(device))
    if not math.isclose(before_saving, after_loading, rel_tol=1e-3):
        message = f"has a loss of {before_saving:.4g}, and of {after_loading:.4g} once saved and loaded"
        return f"{message}; keep all that it computes with in parameters and buffers"
    return ""


def try_task(task, model: nn.Module, train: TrainConfig, device: torch.device) -> None:
    """An error of one sentence unless a task from outside this package gives all that a run and its record need: a
    step, an evaluation and a test of a copy of the model, as it is before training."""
    model, autocast = deepcopy(model).to(device).train(), autocast_of(train.precision, device)
    try:
        inputs, targets = (part.to(device) for part in task.step(0, 0)[0])
        with autocast:
            objective, sums = task.loss(model, inputs, targets, step_examples := task.examples(0))
        objective.backward()
        row = task.summary(sums.tolist(), step_examples) | task.evaluate(model, device, autocast)
        test, _ = task.test(model, device, autocast)
        _ = task.unit, row["validation_loss"], row["validation_accuracy"] if task.classes else task.block_size
        schema.check_trial(json.loads(json.dumps({"facts": task.facts, "evaluation": row, "test": test})))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        message = str(error).rstrip(".") if isinstance(error, RtxError) else reason(error)
        raise RtxError(f"The task {type(task).__name__} fails in a trial ({message}).") from error
