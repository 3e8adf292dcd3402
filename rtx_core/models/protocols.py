"""What parts of the library ask of a model beside an `nn.Module`, as type checkers and editors read it.

A class that has these members fits, whatever it inherits from: `models.looped.Looped` is a `LoopedDecoder` and, as
`models.gpt.GPT`, a `TextWriter`.
"""

from collections.abc import Iterator
from typing import Any, Protocol, Self, TypeGuard

from torch import Tensor, nn

from rtx_core.models.packed import Packed


class Model(Protocol):
    """A model that can be called and evaluated."""

    training: bool

    @property
    def config(self) -> Any: ...  # its settings, a subclass of `Settings`

    def __call__(self, *inputs: Any, **options: Any) -> Any: ...

    def train(self, mode: bool = True) -> Self: ...

    def eval(self) -> Self: ...


class LoopedDecoder(Model, Protocol):
    """A decoder whose state can be read after each pass."""

    @property
    def word(self) -> nn.Embedding: ...

    @property
    def layers(self) -> nn.ModuleList: ...

    @property
    def parts(self) -> tuple[nn.ModuleList, nn.ModuleList, nn.ModuleList]: ...  # prelude, core, coda

    @property
    def head(self) -> Tensor: ...  # (V, d), the output matrix

    def states(self, batch: Packed, num_passes: int | None = None) -> Iterator[Tensor]: ...

    def output_hidden(self, state: Tensor, batch: Packed) -> Tensor: ...

    def grid(self, batch: Packed) -> Any: ...

    def one_pass(self, s: Tensor, e: Tensor, r: int, grid: Any) -> Tensor: ...

    def loss(self, h: Tensor, targets: Tensor) -> Tensor: ...

    def components(self) -> dict[str, int]: ...

    def macs_per_token(self, num_passes: int | None = None) -> int: ...


class TextWriter(Model, Protocol):
    """A decoder that writes token by token."""

    @property
    def max_length(self) -> int | None: ...  # tokens that it can read; None: any number

    def start(self, batch: int) -> Any: ...  # the state before the first token of so many texts

    def advance(self, ids: Tensor, state: Any) -> Tensor: ...  # logits (B, V) after one more token each


def is_writer(model: object) -> TypeGuard[TextWriter]:
    return hasattr(model, "advance")


def is_looped(model: object) -> TypeGuard[LoopedDecoder]:
    return hasattr(model, "states")
