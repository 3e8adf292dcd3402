"""One optimizer step: forward, backward, clip, AdamW."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.models.masks import Dropout
from rtx_core.models.packed import Packed
from rtx_core.training.batches import filled
from rtx_core.training.protocol import Protocol
from rtx_core.training.team import team
from rtx_core.training.words import Words


FILL = 8  # oneDNN compiles a kernel for every number of tokens it meets and keeps it: 1.8 GiB after 400 steps; with this 1.1


def autocast_of(precision: str, device: torch.device) -> torch.autocast:
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


class Step:
    """The step as written.  `model.word` must be `words`; `rate` sets the learning rate of the next step."""

    def __init__(self, model: nn.Module, words: Words, protocol: Protocol, device: torch.device):
        self.team, self.words, self.clip_norm, self.device = team(), words, protocol.clip_norm, device
        words.by_rows &= self.team.size == 1  # processes meet other rows, and average whole gradients
        self.model = self.team.wrapped(model)
        self.autocast = autocast_of(protocol.precision, device)
        self.dense = [p for p in model.parameters() if p is not words.weight]
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=protocol.learning_rate, weight_decay=protocol.weight_decay, fused=True
        )

    def rate(self, value: float) -> None:
        self.optimizer.param_groups[0]["lr"] = value

    def __call__(self, batch: Packed, labels: Tensor, masks: Dropout, of: int) -> Tensor:
        """(2,) float64 on the device: the sum of the losses and the number of right answers.

        `of` sentences make the batch of all processes; alone, they are `labels`.
        """
        return self.run(filled(batch, FILL).to(self.device), labels.to(self.device, non_blocking=True), masks, of)

    def run(self, batch: Packed, labels: Tensor, masks: Dropout, of: int) -> Tensor:
        with self.autocast:
            logits = self.model(batch, masks=masks)[: len(labels)].to(self.words.weight.dtype)
        loss = F.cross_entropy(logits, labels, reduction="sum")
        (loss * self.team.size / of).backward()
        # Clipping to a whole norm c scales the gradient by min(1, c / (norm + 10⁻⁶)).  The fused AdamW divides by
        # `grad_scale` as it reads, so that no pass over the gradient is spent on it, and no host waits for the norm.
        norm = torch.nn.utils.get_total_norm([p.grad for p in (*self.dense, self.words.trained())], foreach=True)
        self.optimizer.grad_scale = ((norm + 1e-6) / self.clip_norm).clamp_(min=1.0).float()
        self.words.write_gradient()
        self.optimizer.step()
        self.words.clear_gradient()
        for parameter in self.dense:
            parameter.grad = None  # the next backward pass brings its own array: nothing to zero-fill, nothing to add to
        with torch.no_grad():
            return self.team.total(torch.stack((loss.double(), (logits.argmax(1) == labels).sum().double())))
