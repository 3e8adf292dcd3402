"""The configurations of this package's models, apart from their classes so that a page can read them without torch."""

from typing import Literal, Self

from pydantic import Field, model_validator

from rtx_core.settings import (
    AtLeastTwo,
    Layers,
    NaturalFloat,
    NaturalInt,
    PositiveFloat,
    PositiveInt,
    Probability,
    Settings,
)


def heads_fit(config: "EncoderConfig | GPTConfig | LoopedConfig"):
    """Heads share the width, and rotary positions turn pairs of a head's coordinates."""
    rotary = "rope_base" in config.names()
    if config.hidden_size % (size := config.num_heads * (2 if rotary else 1)):
        heads = f"{config.num_heads} heads{' with rotary pairs' if rotary else ''}"
        raise ValueError(f"hidden_size is {config.hidden_size}; {heads} need a multiple of {size}")
    return config


def least_parameters(config: Settings) -> int:
    """A lower bound for a model's parameters: its tables, and four matrices of attention and two of an MLP a layer."""
    sizes = config.model_dump()
    d, rows = sizes["hidden_size"], (sizes.get(f"{name}_size", 0) for name in ("vocab", "type_vocab", "block"))
    return sum(rows) * d + sizes["num_layers"] * (4 * d * d + 2 * d * sizes["intermediate_size"])


class EncoderConfig(Settings):
    vocab_size: PositiveInt = Field(default=30_522, description="tokens; bert-base-uncased WordPiece")
    # all tokens here are A, B's row is counted
    type_vocab_size: PositiveInt = Field(default=2, description="segment types; BERT's sentences A and B")
    hidden_size: PositiveInt = Field(default=384, description="width")
    num_layers: Layers = Field(default=6, description="layers that own weights")
    # effective depth num_layers · num_passes
    num_passes: Layers = Field(default=1, description="times the stack is applied")
    num_heads: PositiveInt = Field(default=6, description="attention heads")  # of size 64
    # 4 · hidden, without the 2/3 rule usual for gated FFNs
    intermediate_size: PositiveInt = Field(default=1536, description="width of the feed-forward layer")
    num_labels: PositiveInt = Field(default=2, description="classes")
    residual_scale: NaturalFloat = Field(default=0.5, description="α, the weight of the previous pass's state")
    residual: Literal["code", "paper"] = Field(
        default="code", description='"code": α from the second pass on; "paper": always'
    )
    dropout: Probability = Field(default=0.1, description="probability of dropout")
    rope_base: PositiveFloat = Field(default=10_000.0, description="base of the rotary positions")
    norm_eps: PositiveFloat = Field(default=1e-12, description="ε of the norms")
    # as BERT
    initializer_std: PositiveFloat = Field(default=0.02, description="standard deviation of initial matrices")
    pad_id: NaturalInt = Field(default=0, description="token whose embedding starts at 0")  # packing never reads it

    _heads = model_validator(mode="after")(heads_fit)

    @model_validator(mode="after")
    def _padding(self) -> Self:
        if self.pad_id >= self.vocab_size:
            raise ValueError(f"pad_id is {self.pad_id}; it must be below vocab_size, {self.vocab_size}")
        return self


class GPTConfig(Settings):
    vocab_size: PositiveInt = Field(default=65, description="tokens; the characters of tiny Shakespeare")
    # the longest text that can be read
    block_size: PositiveInt = Field(default=256, description="rows of the position table")
    hidden_size: PositiveInt = Field(default=384, description="width")
    num_layers: Layers = Field(default=6, description="layers")
    num_heads: PositiveInt = Field(default=6, description="attention heads")  # of size 64
    intermediate_size: PositiveInt = Field(default=1536, description="width of the feed-forward layer")  # 4 · hidden
    positions: bool = Field(default=True, description="learned positions, added to the token's embedding")
    dropout: Probability = Field(default=0.2, description="probability of dropout")
    norm_eps: PositiveFloat = Field(default=1e-5, description="ε of the norms")
    # of those that write to the residual stream, over √(2 · layers)
    initializer_std: PositiveFloat = Field(default=0.02, description="standard deviation of initial matrices")

    _heads = model_validator(mode="after")(heads_fit)


class KausikConfig(GPTConfig):
    num_layers: Layers = Field(default=1, description="layers, each with its recurrence")
    positions: bool = Field(default=False, description="learned positions, added to the token's embedding")
    window: AtLeastTwo = Field(default=2, description="positions that a layer sees: window − 1 states and a token")
    checkpoint: Literal[0] = 0  # of records that once could have had another


class LoopedConfig(Settings):
    """The defaults are the TinyStories study's control; each field from `num_core_layers` on is a way of looping."""

    vocab_size: PositiveInt = Field(default=4096, description="tokens")
    hidden_size: PositiveInt = Field(default=256, description="width")
    num_layers: Layers = Field(default=4, description="layers that own weights")
    num_passes: Layers = Field(default=1, description="times the loop is run in training, and in tests unless set")
    num_heads: PositiveInt = Field(default=8, description="attention heads")  # of size 32
    # 8·⌈(2/3 · 4 · 256) / 8⌉; the paper's 512 does not give its totals
    intermediate_size: PositiveInt = Field(default=688, description="width of the feed-forward layer")
    rope_base: PositiveFloat = Field(default=10_000.0, description="base of the rotary positions")
    norm_eps: PositiveFloat = Field(default=1e-5, description="ε of the norms")
    initializer_std: PositiveFloat = Field(default=0.02, description="standard deviation of initial matrices")
    # half of the other layers, rounded up, are prelude
    num_core_layers: NaturalInt = Field(default=0, description="layers that are looped; 0: all")
    injection: Literal["none", "add", "linear"] = Field(
        default="none", description="of the prelude's output e into the state s before a pass: s, s + e or A [s, e]"
    )
    encoding: Literal["none", "pass", "layer"] = Field(
        default="none", description="a learned vector for each pass, added as it starts or before every layer"
    )
    lora_rank: NaturalInt = Field(default=0, description="rank of each pass's corrections of the matrices; 0: none")
    lora_scale: PositiveFloat = Field(default=1.0, description="γ, the weight of these corrections")
    state_std: NaturalFloat | None = Field(
        default=None, description="σ of a random initial state; null: it starts as e"
    )
    gate: bool = Field(
        default=False, description="a pass changes each coordinate by a learned share of what the core would"
    )
    # the state does not grow by pass
    loop_norm: bool = Field(default=False, description="a norm at the end of each pass")
    state_norm: bool = Field(default=False, description="a norm between the loop and the layers after it")
    random_passes: bool = Field(default=False, description="each training step runs 1 to num_passes passes, at random")
    backprop_passes: NaturalInt | Literal["random"] = Field(
        default=0, description='the last passes, through which gradients flow; 0: all; "random": 1 to all, by step'
    )
    cache: Literal["all", "last"] = Field(
        default="all", description='passes whose keys and values later tokens read; "last": token after token'
    )
    halting: NaturalFloat = Field(
        default=0.0, description="a gate learns when to stop, with an entropy bonus of this weight; 0: no gate"
    )
    # in training the layers' matrices are as far off as rounding to so many bits would put them
    weight_noise: Literal[0, 2, 3, 4, 5, 6, 8] = Field(
        default=0, description="bits whose rounding noise is trained with; 0: no"
    )
    tie_embeddings: Literal[True] = True  # of records that once could have had another output matrix

    @property
    def core(self) -> tuple[int, int]:
        """The layers [begin, end) that are looped."""
        begin = -(-(self.num_layers - self.num_core_layers) // 2) if self.num_core_layers else 0
        return begin, begin + (self.num_core_layers or self.num_layers)

    _heads = model_validator(mode="after")(heads_fit)

    @model_validator(mode="after")
    def _switches(self) -> Self:
        if self.num_core_layers > self.num_layers:
            raise ValueError(f"num_core_layers is {self.num_core_layers} of {self.num_layers} layers; all is the most")
        if self.state_std is not None and self.injection == "none":
            raise ValueError("state_std makes the initial state random: the text must come in by injection")
        if self.lora_rank > self.hidden_size:
            raise ValueError(f"lora_rank is {self.lora_rank}; it must be from 0 to hidden_size, {self.hidden_size}")
        if self.backprop_passes == "random" or 0 < self.backprop_passes < self.num_passes:
            cut = f"backprop_passes is {self.backprop_passes} of {self.num_passes} passes, so gradients do not reach"
            if self.encoding != "none" or self.lora_rank:
                raise ValueError(f"{cut} the encoding or low-rank corrections of the earlier ones; leave one out")
            if self.core[0] and self.injection == "none":
                raise ValueError(f"{cut} the layers before the loop; use an injection, or loop all layers")
        if self.halting and self.num_passes < 2:
            raise ValueError("halting is a gate between passes, and num_passes is 1; it must be 2 or more")
        if self.halting and self.core != (0, self.num_layers):
            raise ValueError("halting reads an answer after each pass: all layers must be in the loop")
        if self.cache == "last" and self.weight_noise:
            raise ValueError("weight_noise is drawn once a step, and cache='last' reads token by token; leave one out")
        return self
