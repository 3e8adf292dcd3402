"""Where the [CLS] of trained models looks in a sentence: `python -m rtx_core.evaluation.attention sst2 [name=value …]`.

    α_j = softmax_j(q_0 · k_j / √D),   for every head, in every application of a layer

The kernels that the models run never form these weights, so they are computed again here, from the inputs of each
attention; a layer that is applied in several passes is seen once in each.
"""

import torch
from torch import Tensor, nn

from rtx_core.corpora.dataset import dataset
from rtx_core.corpora.preprocess import clean
from rtx_core.corpora.splits import parts
from rtx_core.corpora.tokens import vocabulary
from rtx_core.evaluation.command import command, say, trained
from rtx_core.models.layers import Attention, rotate
from rtx_core.models.packed import Packed
from rtx_core.parameters import settings
from rtx_core.results import measurement
from rtx_core.training.devices import environment

SENTENCE = "The plot is thin, but the acting is a joy to watch."  # our own, so that no text of a data set is distributed


@torch.no_grad()
def cls_attention(model: nn.Module, ids: list[int]) -> tuple[Tensor, Tensor]:
    """(weights (applications, H, T), class probabilities (C,)) for one sentence whose first token is [CLS]."""
    seen = []

    def watch(attention: Attention, inputs: tuple) -> None:
        x, _, rope = inputs[:3]
        q, k, _ = attention.qkv(x).view(len(x), 3, attention.num_heads, attention.head_size).unbind(1)  # each (T, H, D)
        q, k = rotate(q, rope), rotate(k, rope)
        seen.append((torch.einsum("hd,thd->ht", q[0], k) / attention.head_size**0.5).softmax(-1))

    hooks = [layer.attention.register_forward_pre_hook(watch) for layer in model.layers]
    try:
        probabilities = model.eval()(Packed.from_sequences([ids])).softmax(-1)[0]
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(seen), probabilities


def attention(experiment: str, given: dict[str, object], sentence: str = SENTENCE) -> None:
    """Record it for every model and seed that the parameters of the experiment's notebook name."""
    chosen = settings(experiment, given)
    made_by, data = measurement.made_by("attention"), dataset(**chosen.data)
    source = data.facts["source"]
    texts = list(parts(chosen.corpus, source, chosen.split)["train"]["text"]) if source == "embedded" else []  # its vocabulary is made of them
    encoded = vocabulary(source, texts).encode(clean(sentence))
    for name in chosen.models:
        for seed in chosen.seeds:
            run, model = trained(chosen, name, seed)
            weights, probabilities = cls_attention(model, encoded.ids)
            measurement.save({
                "kind": "attention", "of": chosen.variant, "name": f"{name}-seed{seed}", "model": name, "seed": seed,
                "protocol": run["protocol"], "run": run["key"], "data": data.facts, "classes": list(data.classes),
                "sentence": sentence, "tokens": encoded.tokens, "probabilities": probabilities.tolist(),
                "num_layers": model.config.num_layers, "weights": [[[round(w, 5) for w in head] for head in heads] for heads in weights.tolist()],
                "environment": environment(torch.device("cpu")), "code": made_by,
            })  # fmt: skip
            best = int(probabilities.argmax())
            say(chosen.variant, name, f"seed {seed}", f"{data.classes[best]} with probability {probabilities[best]:.3f}")


if __name__ == "__main__":
    command(attention, "EXPERIMENT")
