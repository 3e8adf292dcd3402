"""The configurations of this package's models, apart from their classes so that a page can read them without torch."""

from typing import Literal, Self

from pydantic import Field, model_validator

from rtx_core.settings import NaturalFloat, NaturalInt, PositiveFloat, PositiveInt, Probability, Settings


def even_heads(config: "EncoderConfig | LoopedConfig") -> None:
    """Rotary positions turn pairs of a head's coordinates."""
    if config.hidden_size % (2 * config.num_heads):
        many = f"{config.num_heads} heads with rotary pairs"
        raise ValueError(f"hidden_size is {config.hidden_size}; {many} need a multiple of {2 * config.num_heads}")


class EncoderConfig(Settings):
    vocab_size: PositiveInt = 30_522  # bert-base-uncased WordPiece
    type_vocab_size: PositiveInt = 2  # BERT's sentence A / B; all tokens here are A, B's row is counted
    hidden_size: PositiveInt = 384
    num_layers: PositiveInt = 6  # layers that own weights
    num_passes: PositiveInt = 1  # times the stack is applied; effective depth = num_layers · num_passes
    num_heads: PositiveInt = 6  # of size 64
    intermediate_size: PositiveInt = 1536  # 4 · hidden, without the 2/3 rule usual for gated FFNs
    num_labels: PositiveInt = 2
    residual_scale: NaturalFloat = 0.5  # α
    residual: Literal["code", "paper"] = "code"  # "code": α from the second pass on; "paper": in every pass
    dropout: Probability = 0.1
    rope_base: PositiveFloat = 10_000.0
    norm_eps: PositiveFloat = 1e-12
    initializer_std: PositiveFloat = 0.02  # N(0, 0.02) for matrices, as BERT
    pad_id: NaturalInt = 0  # its embedding row starts at 0; packing never reads it

    @model_validator(mode="after")
    def _heads(self) -> Self:
        even_heads(self)
        return self


class GPTConfig(Settings):
    vocab_size: PositiveInt = 65  # the characters of tiny Shakespeare
    block_size: PositiveInt = 256  # rows of the position table: the longest text, where there are positions
    hidden_size: PositiveInt = 384
    num_layers: PositiveInt = 6
    num_heads: PositiveInt = 6  # of size 64
    intermediate_size: PositiveInt = 1536  # 4 · hidden
    positions: bool = True  # learned, added to the token's embedding
    dropout: Probability = 0.2
    norm_eps: PositiveFloat = 1e-5
    initializer_std: PositiveFloat = 0.02  # of those that write to the residual stream, over √(2 · layers)


class KausikConfig(GPTConfig):
    num_layers: PositiveInt = 1
    positions: bool = False
    window: int = Field(2, ge=2)  # positions that T sees: window − 1 states and a token
    checkpoint: Literal[0] = 0  # of records that once could have had another


class LoopedConfig(Settings):
    """The defaults are the TinyStories study's control; each field from `num_core_layers` on is a way of looping."""

    vocab_size: PositiveInt = 4096
    hidden_size: PositiveInt = 256
    num_layers: PositiveInt = 4  # layers that own weights
    num_passes: PositiveInt = 1  # times the loop is run, in training and unless told otherwise
    num_heads: PositiveInt = 8  # of size 32
    intermediate_size: PositiveInt = 688  # 8·⌈(2/3 · 4 · 256) / 8⌉; the paper's 512 does not give its totals
    rope_base: PositiveFloat = 10_000.0
    norm_eps: PositiveFloat = 1e-5
    initializer_std: PositiveFloat = 0.02  # N(0, 0.02) for every matrix
    num_core_layers: NaturalInt = 0  # of num_layers; half of the others, rounded up, are prelude.  0: all
    injection: Literal["none", "add", "linear"] = "none"  # of the prelude's output e: s, s + e or A [s, e]
    # a vector of each pass, added as it starts, or before every layer
    encoding: Literal["none", "pass", "layer"] = "none"
    lora_rank: NaturalInt = 0  # of the corrections of each layer's matrices in each pass; 0: none
    lora_scale: PositiveFloat = 1.0  # γ
    state_std: NaturalFloat | None = None  # σ of a random initial state; None: it starts as e
    gate: bool = False  # a pass changes each coordinate by a learned share of what the core would
    loop_norm: bool = False  # a norm at the end of each pass: the state does not grow from pass to pass
    state_norm: bool = False  # a norm of its own between core and coda
    random_passes: bool = False  # each training step runs 1 … num_passes of them
    # in training the layers' matrices are as far off as rounding to so many bits would put them; 0: exact
    weight_noise: Literal[0, 2, 3, 4, 5, 6, 8] = 0
    tie_embeddings: Literal[True] = True  # of records that once could have had another output matrix

    @property
    def core(self) -> tuple[int, int]:
        """The layers [begin, end) that are looped."""
        begin = -(-(self.num_layers - self.num_core_layers) // 2) if self.num_core_layers else 0
        return begin, begin + (self.num_core_layers or self.num_layers)

    @model_validator(mode="after")
    def _switches(self) -> Self:
        even_heads(self)
        if self.num_core_layers > self.num_layers:
            raise ValueError(f"num_core_layers is {self.num_core_layers} of {self.num_layers} layers; all is the most")
        if self.state_std is not None and self.injection == "none":
            raise ValueError("state_std makes the initial state random: the text must come in by injection")
        if self.lora_rank > self.hidden_size:
            raise ValueError(f"lora_rank is {self.lora_rank}; it must be from 0 to hidden_size, {self.hidden_size}")
        return self
