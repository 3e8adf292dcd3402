"""Where the [CLS] of a trained encoder looks in a sentence.

    α_j = softmax_j(q_0 · k_j / √D),   for every head, in every application of a layer

The kernels that the models run never form these weights, so they are computed again here, from the inputs
of each attention; a layer that is applied in several passes is seen once in each.
"""

import torch
from torch import Tensor, nn

from rtx_core.data.preprocess import clean
from rtx_core.models.layers import Attention, rotate
from rtx_core.models.packed import Packed

SENTENCE = "The plot is thin, but the acting is a joy to watch."  # our own: no data set's text is distributed


@torch.no_grad()
def cls_attention(model: nn.Module, ids: list[int]) -> tuple[Tensor, Tensor]:
    """(weights (applications, H, T), class probabilities (C,)) for a sentence whose first token is [CLS]."""
    attentions = []

    def watch(attention: Attention, inputs: tuple) -> None:
        x, _, rope = inputs[:3]
        heads = attention.qkv(x).view(len(x), 3, attention.num_heads, attention.head_size)
        q, k = rotate(heads[:, 0], rope), rotate(heads[:, 1], rope)  # each (T, H, D)
        attentions.append((torch.einsum("hd,thd->ht", q[0], k) / attention.head_size**0.5).softmax(-1))

    hooks = [layer.attention.register_forward_pre_hook(watch) for layer in model.layers]
    try:
        probabilities = model.eval()(Packed.from_sequences([ids])).softmax(-1)[0]
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(attentions), probabilities


def of_run(record, study) -> list[tuple]:
    encoded = study.task.tokenizer().encode(clean(SENTENCE))
    model = study.trained(record).cpu()
    weights, probabilities = cls_attention(model, encoded.ids)
    content = {
        "classes": list(study.task.classes),
        "sentence": SENTENCE,
        "tokens": encoded.tokens,
        "probabilities": probabilities.tolist(),
        "num_layers": model.config.num_layers,
        "weights": [[[round(w, 5) for w in head] for head in heads] for heads in weights.tolist()],
    }
    return [(content, None)]
