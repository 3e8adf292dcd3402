"""A trained model as a folder that others can load: weights, configuration, tokenizer and a card, as the hub lays models out.

An encoder is written as ONNX too where `onnx` and `onnxscript` are installed (`pip install -e .[onnx]`).
"""

import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core import records
from rtx_core.errors import RtxError
from rtx_core.experiments.weights import load_weights, weights_of
from rtx_core.models.encoder import Encoder
from rtx_core.models.layers import rotary_table, rotate
from rtx_core.paths import write_atomically, write_json

CARD = """---
library_name: rtx-core
tags: [recurrent-depth, {run[config][architecture]}]
---

# {run[name]}: {run[model]}, seed {run[seed]}

Trained on {run[data][name]} ({run[data][n_train]:,} training {unit}), {run.score} on {run[test][n]:,}.
Every setting stands in `config.json`, which is the record of the run.

```python
import rtx_core as rtx

rtx.load("this folder").classify(["a film of great charm"])  # of a language model: rtx.load_model("model.safetensors")
```
"""
OPSET = 18
LONGEST = 512  # tokens of a text that the ONNX form takes
ONNX_CARD = f"""
`model.onnx` (opset {OPSET}) takes `input_ids` and `attention_mask`, int64 of any shape (batch, length) up to length {LONGEST},
with mask 1 on tokens and 0 on padding, and gives `logits` (batch, classes).  `tokenizer.json` makes the ids.
"""


def export(address: str, folder: str, source: str = "hub") -> Path:
    """Write the model of a record, "sst2/recurrent-seed0", into an empty or new folder."""
    record, target = records.at(address, source), Path(folder)
    model, weights = load_weights(record), weights_of(record)
    if target.exists() and any(target.iterdir()):
        raise RtxError(f"{folder} is not empty; name a new folder, so that nothing in it is overwritten.")
    target.mkdir(parents=True, exist_ok=True)
    for file in ("model.safetensors", "tokenizer.json"):
        if weights.with_name(file).exists():
            shutil.copyfile(weights.with_name(file), target / file)
    write_json(
        target / "config.json",
        {k: record[k] for k in ("config", "data", "parameters", "test", "code", "key")},
    )
    as_onnx = isinstance(model, Encoder) and bool(find_spec("onnx") and find_spec("onnxscript"))
    if as_onnx:
        to_onnx(model, target / "model.onnx")
    card = CARD.format(run=record, unit=record["data"].get("unit", "texts"))
    write_atomically(target / "README.md", (card + ONNX_CARD * as_onnx).encode())
    return target


class Padded(nn.Module):
    """An encoder on padded texts: ids (B, L) and mask (B, L), 1 on tokens, -> logits (B, C); its layers are the encoder's."""

    def __init__(self, encoder: Encoder):
        super().__init__()
        c = encoder.config
        self.encoder = encoder
        cos, sin = rotary_table(torch.arange(LONGEST), c.hidden_size // c.num_heads, c.rope_base)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        encoder, c = self.encoder, self.encoder.config
        length = input_ids.shape[1]
        rope = self.cos[:length], self.sin[:length]  # (L, 1, D/2)
        seen = attention_mask[:, None, None, :] > 0
        h = encoder.norm(encoder.word(input_ids) + encoder.token_type.weight[0])  # (B, L, d)
        for r in range(c.num_passes):
            before = h
            for layer in encoder.layers:
                attention, x = layer.attention, layer.attention_norm(h)
                # each (B, L, H, D)
                q, k, v = attention.qkv(x).unflatten(-1, (3, attention.num_heads, -1)).unbind(2)
                q, k, v = (part.transpose(1, 2) for part in (rotate(q, rope), rotate(k, rope), v))
                mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
                h = h + attention.out(mixed.transpose(1, 2).flatten(2))
                h = h + layer.ffn(layer.ffn_norm(h))
            if r > 0 or c.residual == "paper":
                h = h + c.residual_scale * before
        return encoder.head(h[:, 0])


def to_onnx(encoder: Encoder, path: Path) -> None:
    """Write an encoder for any batch size and length; everything is in the one file."""
    ids, mask = torch.zeros(2, 8, dtype=torch.int64), torch.ones(2, 8, dtype=torch.int64)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=LONGEST)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's about its own calls, and that both inputs share their axes
        torch.onnx.export(
            Padded(encoder).eval(),
            (ids, mask),
            path,
            input_names=["input_ids", "attention_mask"],
            output_names=["logits"],
            dynamic_shapes={"input_ids": axes, "attention_mask": axes},
            opset_version=OPSET,
            external_data=False,
            verbose=False,
        )
