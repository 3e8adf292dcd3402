"""The plain way: the two encoders as most code trains them, padded, eager, with AdamW as its constructor leaves it.

Same formulas, same parameters, same sentences as `rtx_core`, which the benchmarks check before anything is timed.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.data.preprocess import clean_all
from rtx_core.models.encoder import Encoder
from rtx_core.models.layers import EncoderBlock, rotary_table, rotate


class Norm(nn.Module):
    def __init__(self, norm: nn.Module):
        super().__init__()
        self.weight, self.eps = nn.Parameter(norm.weight.detach().clone()), norm.eps

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def linears(fused: nn.Linear, n: int = 1) -> list[nn.Linear]:
    """The n matrices that lie in one."""
    found = [nn.Linear(fused.in_features, fused.out_features // n) for _ in range(n)]
    for linear, weight, bias in zip(found, fused.weight.chunk(n), fused.bias.chunk(n)):
        linear.load_state_dict({"weight": weight, "bias": bias})
    return found


class PlainBlock(nn.Module):
    def __init__(self, block: EncoderBlock):
        super().__init__()
        self.heads, self.drop = block.attention.num_heads, nn.Dropout(block.dropout)
        self.norm1, self.norm2 = Norm(block.attention_norm), Norm(block.ffn_norm)
        self.q, self.k, self.v = linears(block.attention.qkv, 3)
        self.gate, self.up = linears(block.ffn.gate_up, 2)
        [self.o], [self.down] = linears(block.attention.out), linears(block.ffn.down)

    def forward(self, x: Tensor, mask: Tensor, rope: tuple[Tensor, Tensor]) -> Tensor:  # (B, L, d)
        B, L, d = x.shape
        y, p = self.norm1(x), self.drop.p if self.training else 0.0
        q, k, v = (linear(y).view(B, L, self.heads, -1) for linear in (self.q, self.k, self.v))
        q, k, v = (z.transpose(1, 2) for z in (rotate(q, rope), rotate(k, rope), v))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
        x = x + self.drop(self.drop(self.o(mixed.transpose(1, 2).reshape(B, L, d))))
        y = self.norm2(x)
        return x + self.drop(self.down(self.drop(F.silu(self.gate(y)) * self.up(y))))


class PlainEncoder(nn.Module):
    """(ids, mask), both (B, L) -> logits (B, C), with the weights of a model."""

    def __init__(self, model: Encoder):
        super().__init__()
        self.config, tables = model.config, (model.word.weight, model.token_type.weight)
        self.word, self.kind = (
            nn.Embedding.from_pretrained(t.detach().clone(), freeze=False) for t in tables
        )
        self.norm, self.drop = Norm(model.norm), nn.Dropout(model.config.dropout)
        self.layers, [self.head] = nn.ModuleList(map(PlainBlock, model.layers)), linears(model.head)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        c, positions = self.config, torch.arange(input_ids.shape[1], device=input_ids.device)
        rope = rotary_table(positions, c.hidden_size // c.num_heads, c.rope_base)
        additive = (1.0 - attention_mask[:, None, None, :].float()) * -10_000.0
        h = self.drop(self.norm(self.word(input_ids) + self.kind(torch.zeros_like(input_ids))))
        for r in range(c.num_passes):
            before = h
            for layer in self.layers:
                h = layer(h, additive, rope)
            h = h + c.residual_scale * before if r > 0 else h
        return self.head(self.drop(h[:, 0]))


def tokenized(tokenizer, texts: list[str], length: int | None) -> tuple[Tensor, Tensor]:
    """(ids, mask), both (B, L): cleaned, tokenized and padded to `length`, or to the longest of the batch."""
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding(length=length)
    encoded = tokenizer.encode_batch(clean_all(texts))
    return torch.tensor([e.ids for e in encoded]), torch.tensor([e.attention_mask for e in encoded])


def plain_step(model: nn.Module, loss: Callable[[int], Tensor]) -> Callable[[int], None]:
    """forward → backward → clip → AdamW as its constructor leaves it; `loss(i)` is that of batch i."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5, weight_decay=0.01)

    def work(i: int) -> None:
        optimizer.zero_grad()
        value = loss(i)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value.item()

    return work
