"""A trained encoder as the book's page runs it: int8 weights, one scale a row, and only the words that training met.

    W ≈ diag(s) · Q,   s_i = max_j |W_ij| / 127,   Q_ij = round(W_ij / s_i) in −127 … 127

Every matrix is stored so, norms and biases stay fp32, and arithmetic is fp32.  An embedding row of a token that no
training text holds was only ever decayed: it is left out, and such a token counts as a row of zeros.
"""

from contextlib import nullcontext
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn

from rtx_core.data.preprocess import clean
from rtx_core.data.tasks import logits_of, loss_and_accuracy
from rtx_core.metrics import classification_metrics
from rtx_core.models.packed import Packed
from study.measurements.attention import cls_attention

PASSES = 6  # that the page offers
EXAMPLES = (  # our own: no data set's text is distributed
    "The plot is thin, but the acting is a joy to watch.",
    "Not a dull moment in two hours.",
    "I wanted to love this film, and I could not.",
    "It is not that the jokes are bad; there are none.",
    "Hardly the masterpiece that it thinks it is.",
    "A quokka of a movie: small, odd and impossible to dislike.",
)


def quantized(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(Q int8 (n, m), s float32 (n,)) of a matrix (n, m); a row of zeros has scale 1."""
    scale = weight.abs().amax(1) / 127
    scale = torch.where(scale > 0, scale, 1.0)
    return (weight / scale[:, None]).round().to(torch.int8), scale


@torch.no_grad()
def reduced(model: nn.Module, met: np.ndarray) -> nn.Module:
    """A copy whose matrices are what int8 leaves of them; `met`: the token ids whose rows are kept."""
    model = deepcopy(model).eval()
    for weight in model.parameters():
        if weight.dim() == 2:
            rows, scale = quantized(weight)
            weight.copy_(rows * scale[:, None])
    unmet = torch.ones(len(model.word.weight), dtype=torch.bool)
    unmet[torch.from_numpy(met)] = False
    model.word.weight[unmet] = 0
    return model


class Unrolled(nn.Module):
    """What an encoder says after each of `passes` passes, from one forward: a batch -> logits (B, passes · C)."""

    def __init__(self, encoder: nn.Module, passes: int):
        super().__init__()
        self.encoder, self.passes = encoder, passes

    def forward(self, batch: Packed) -> Tensor:
        states = self.encoder.states(batch, self.passes)
        return torch.cat([self.encoder.head(h[batch.starts]) for h in states], 1)


def of_run(record, study) -> list[tuple]:
    """The model of the page against the trained one on the test texts, and what it says after each pass."""
    task, trained_model = study.task, study.trained(record).cpu()
    met, labels = np.unique(task.parts["train"].ids), task.parts["test"].labels
    model, config = reduced(trained_model, met), trained_model.config
    logits_of_passes = logits_of(Unrolled(model, PASSES), task.parts["test"], torch.device("cpu"), nullcontext())
    after = np.split(logits_of_passes, PASSES, axis=1)  # of each pass, (N, C)
    logits, trained = after[config.num_passes - 1], record.predictions["logits"]
    examples = []
    for text in EXAMPLES:
        encoded, passes = task.tokenizer().encode(clean(text)), []
        for n in range(1, PASSES + 1):
            model.config = config.replace(num_passes=n)
            weights, answer = cls_attention(model, encoded.ids)
            looked = weights[-config.num_layers :].mean((0, 1))  # over the layers and heads of the last pass
            passes.append({"probabilities": answer.tolist(), "attention": looked.tolist()})
        examples.append({"text": text, "tokens": encoded.tokens, "passes": passes})
    content = {
        "suffix": ["int8"],
        "classes": list(task.classes),
        "trained_passes": config.num_passes,
        "pieces": len(met),
        "test": classification_metrics(logits, labels) | {"loss": loss_and_accuracy(logits, labels)[0]},
        "fp32_accuracy": record["test"]["accuracy"],
        "same_class": float((trained.argmax(1) == logits.argmax(1)).mean()),
        "logit_difference": float(np.abs(trained - logits).mean()),
        "accuracy_after": [float((logits_of_pass.argmax(1) == labels).mean()) for logits_of_pass in after],
        "examples": examples,
    }
    return [(content, {"logits": logits, "labels": labels})]
