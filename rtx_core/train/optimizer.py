"""The optimizers: AdamW, or Muon for the matrices of the layers with AdamW for all else."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from rtx_core.errors import RtxError
from rtx_core.train.config import TrainConfig


def optimizer_of(model: nn.Module, config: TrainConfig) -> "torch.optim.AdamW | MuonAndAdamW":
    """AdamW (Loshchilov & Hutter 2019) over all that learns, or with decay of matrices and tables alone; or Muon
    (Jordan et al. 2024) of the layers' matrices, with updates as large as AdamW's (Liu et al. 2025, eq. 4)."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if config.optimizer == "adamw":
        return adamw(parameters, config)
    layers = getattr(model, "layers", None)
    matrices = [p for p in layers.parameters() if p.requires_grad and p.dim() == 2] if layers is not None else []
    if not matrices:
        got = f"optimizer='muon' got a model {type(model).__name__} without matrices in `layers`"
        raise RtxError(f"{got}; expected layers in an attribute `layers`, or optimizer='adamw'.")
    names = {id(p) for p in matrices}
    muon = torch.optim.Muon(
        matrices, lr=config.learning_rate, weight_decay=config.weight_decay, adjust_lr_fn="match_rms_adamw"
    )
    return MuonAndAdamW(muon, adamw([p for p in parameters if id(p) not in names], config))


def adamw(parameters: list[nn.Parameter], config: TrainConfig) -> torch.optim.AdamW:
    groups: list[dict[str, Any]] = [{"params": parameters, "weight_decay": config.weight_decay}]
    if config.decay == "matrices":
        groups[0]["params"] = [p for p in parameters if p.dim() >= 2]
        groups.append({"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0})
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(config.beta1, config.beta2), fused=True)


class MuonAndAdamW:
    """Two optimizers as one; the state counts the parameters of the first, then those of the second."""

    def __init__(self, muon: torch.optim.Muon, adamw: torch.optim.AdamW):
        self.parts = (muon, adamw)
        self.first = sum(len(group["params"]) for group in muon.param_groups)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return [group for part in self.parts for group in part.param_groups]

    def step(self, closure: Callable[[], float] | None = None) -> None:
        for part in self.parts:
            part.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        one, two = (part.state_dict() for part in self.parts)
        later = {self.first + i: moments for i, moments in two["state"].items()}
        return {"state": one["state"] | later, "param_groups": one["param_groups"] + two["param_groups"]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        one = {i: moments for i, moments in state["state"].items() if i < self.first}
        two = {i - self.first: moments for i, moments in state["state"].items() if i >= self.first}
        groups, cut = state["param_groups"], len(self.parts[0].param_groups)
        self.parts[0].load_state_dict({"state": one, "param_groups": groups[:cut]})
        self.parts[1].load_state_dict({"state": two, "param_groups": groups[cut:]})
