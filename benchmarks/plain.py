"""The plain way: the two encoders as most code trains them.  Padded to 128, eager, tokenised on the fly, default AdamW.

Same formulas, same parameters, same sentences as `rtx_core`; `agrees` checks that before anything is timed.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.corpora.preprocess import clean
from rtx_core.models.encoder import Encoder, EncoderConfig


class Norm(nn.Module):
    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (B, H, L, D)
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class Layer(nn.Module):
    def __init__(self, c: EncoderConfig):
        super().__init__()
        d, f = c.hidden_size, c.intermediate_size
        self.heads, self.p = c.num_heads, c.dropout
        self.norm1, self.norm2 = Norm(d, c.norm_eps), Norm(d, c.norm_eps)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(d, f), nn.Linear(d, f), nn.Linear(f, d)
        self.drop = nn.Dropout(c.dropout)

    def forward(self, x: Tensor, mask: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (B, L, d)
        B, L, d = x.shape
        y = self.norm1(x)
        q, k, v = (linear(y).view(B, L, self.heads, -1).transpose(1, 2) for linear in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(
            turn(q, cos, sin), turn(k, cos, sin), v, attn_mask=mask, dropout_p=self.p if self.training else 0.0
        )
        x = x + self.drop(self.drop(self.o(mixed.transpose(1, 2).reshape(B, L, d))))
        y = self.norm2(x)
        return x + self.drop(self.down(self.drop(F.silu(self.gate(y)) * self.up(y))))


class Plain(nn.Module):
    """(ids, mask), both (B, L) -> logits (B, C)."""

    def __init__(self, c: EncoderConfig):
        super().__init__()
        self.c = c
        self.word, self.kind = nn.Embedding(c.vocab_size, c.hidden_size), nn.Embedding(c.type_vocab_size, c.hidden_size)
        self.norm, self.drop = Norm(c.hidden_size, c.norm_eps), nn.Dropout(c.dropout)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.num_layers))
        self.head = nn.Linear(c.hidden_size, c.num_labels)
        size = c.hidden_size // c.num_heads
        self.register_buffer("frequency", c.rope_base ** (-torch.arange(0, size, 2) / size))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        angle = (torch.arange(ids.shape[1], device=ids.device)[:, None] * self.frequency).repeat(1, 2)
        cos, sin = angle.cos(), angle.sin()
        additive = (1.0 - mask[:, None, None, :].float()) * -10_000.0
        h = self.drop(self.norm(self.word(ids) + self.kind(torch.zeros_like(ids))))
        for r in range(self.c.num_passes):
            before = h
            for layer in self.layers:
                h = layer(h, additive, cos, sin)
            if r > 0:
                h = h + self.c.residual_scale * before
        return self.head(self.drop(h[:, 0]))


def plain_copy(model: Encoder) -> Plain:
    """The same weights in the plain model."""
    plain = Plain(model.config)
    with torch.no_grad():
        plain.word.weight.copy_(model.word.weight)
        plain.kind.weight.copy_(model.token_type.weight)
        plain.norm.weight.copy_(model.norm.weight)
        plain.head.load_state_dict(model.head.state_dict())
        for mine, other in zip(plain.layers, model.layers, strict=True):
            mine.norm1.weight.copy_(other.attention_norm.weight)
            mine.norm2.weight.copy_(other.ffn_norm.weight)
            for names, fused in ((("q", "k", "v"), other.attention.qkv), (("o",), other.attention.out),
                                 (("gate", "up"), other.ffn.gate_up), (("down",), other.ffn.down)):  # fmt: skip
                for name, w, b in zip(names, fused.weight.chunk(len(names)), fused.bias.chunk(len(names)), strict=True):
                    getattr(mine, name).weight.copy_(w)
                    getattr(mine, name).bias.copy_(b)
    return plain


def padded(tokenizer, texts: list[str], length: int | None) -> tuple[Tensor, Tensor]:
    """Clean, tokenise and pad, to `length` or to the longest of the batch."""
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding(length=length)
    encoded = tokenizer.encode_batch([clean(text) for text in texts])
    return torch.tensor([e.ids for e in encoded]), torch.tensor([e.attention_mask for e in encoded])


class PlainStep:
    """tokenise → forward → backward → clip → AdamW as its constructor leaves it."""

    def __init__(self, model: nn.Module, tokenizer, length: int | None, device: str = "cpu"):
        self.model, self.tokenizer, self.length, self.device = model.to(device).train(), tokenizer, length, device
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5, weight_decay=0.01)

    def __call__(self, texts: list[str], labels: Tensor) -> None:
        ids, mask = padded(self.tokenizer, texts, self.length)
        self.optimizer.zero_grad()
        out = self.model(ids.to(self.device), mask.to(self.device))
        loss = F.cross_entropy(getattr(out, "logits", out), labels.to(self.device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        loss.item()
