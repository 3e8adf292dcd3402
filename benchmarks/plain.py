"""The plain way: the models as `rtx_core.models` states them, eager, padded,
with AdamW as its constructor leaves it."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from rtx_core.data.preprocess import clean_all
from rtx_core.models.packed import Packed


def tokenized(tokenizer, texts: list[str], length: int | None) -> tuple[Tensor, Tensor]:
    """(ids, mask), both (B, L): cleaned, tokenized and padded to `length`, or to the longest of the batch."""
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding(length=length)
    encoded = tokenizer.encode_batch(clean_all(texts))
    return torch.tensor([e.ids for e in encoded]), torch.tensor([e.attention_mask for e in encoded])


def padded(ids: Tensor, mask: Tensor | None = None) -> Packed:
    """(B, L) cells as a batch in which padding is computed like tokens; attention skips where `mask` (B, L) is 0."""
    B, L = ids.shape
    positions = torch.arange(L, device=ids.device).repeat(B)
    offsets = torch.arange(0, B * L + 1, L, dtype=torch.int32, device=ids.device)
    batch = Packed(ids.flatten(), positions, offsets, L)
    if mask is not None:
        vars(batch)["mask"] = mask.bool()[:, None, None, :]
    return batch


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
