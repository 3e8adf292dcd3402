"""A model of one's own: what is wrong with it is one sentence before it is trained, and what is unusual is welcome."""

import pytest
import torch
from conftest import CPU, refused, small_task
from torch import nn

import rtx_core as rtx
from rtx_core.data import task
from rtx_core.data.config import HopData
from rtx_core.experiments.configure import configure
from rtx_core.experiments.dry_run import dry_run
from rtx_core.models import build_model, count_parameters, registry
from rtx_core.settings import Settings
from rtx_core.train.config import TrainConfig


class Small(Settings):
    hidden_size: int = 8
    num_labels: int = 2


class Plain(nn.Module):
    """The first word's vector, and a linear map."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.word = nn.Embedding(97, config.hidden_size)
        self.head = nn.Linear(config.hidden_size, config.num_labels)

    def forward(self, batch):
        return self.head(self.word(batch.ids[batch.starts]))


class Stepping(Settings):
    steps: int = 3
    hidden_size: int = 8


def test_a_setting_that_model_and_training_have_is_not_given_to_one_of_them(monkeypatch):
    monkeypatch.setitem(registry.MODELS, "mine", registry.Model(Plain, Stepping()))
    assert configure("khop", "mine", hidden_size=9).overrides == {"hidden_size": 9}
    with refused("steps is a setting of mine and of its train, too"):
        configure("khop", "mine", steps=5)


def fault(after=None, **methods):
    """The plain model with other methods, or with something done to it as soon as it is built."""

    def built(self, config):
        Plain.__init__(self, config)
        after(self, config)

    return type("Faulty", (Plain,), ({"__init__": built} if after else {}) | methods)


def given(self, batch):
    return Plain.forward(self, batch)


def scaled_late(self, batch):
    if not hasattr(self, "scale"):
        self.scale = nn.Parameter(torch.ones(()))
    return given(self, batch) * self.scale


def as_long_as_the_texts(self, batch):
    self.mask = torch.ones(batch.max_seqlen)
    return given(self, batch)


def made_anew(self, batch):
    self.head.bias = nn.Parameter(torch.zeros(2))
    return given(self, batch)


def of_one_argument_more(self, config, layers):
    Plain.__init__(self, config)


def of_a_width(self, width):
    nn.Module.__init__(self)
    self.head = nn.Linear(width, 2)


def bare(self, config):
    nn.Module.__init__(self)
    self.config = config


def unlearnt(self, config):
    """A projection that is drawn and is no buffer, so another in every process."""
    self.fixed = torch.randn(config.hidden_size, config.hidden_size)


DRAWN = fault(unlearnt, forward=lambda self, batch: self.head(self.word(batch.ids[batch.starts]) @ self.fixed))
TURN = fault(
    lambda self, config: setattr(self, "turn", nn.Parameter(torch.ones(config.hidden_size, dtype=torch.complex64))),
    forward=lambda self, batch: self.head((self.word(batch.ids[batch.starts]) * self.turn).real),
)
NO_MODULE = type("NoModule", (), {"__init__": lambda self, config: setattr(self, "config", config)})
FAULTS = [  # a model, and what is said of it
    (fault(__init__=bare, forward=lambda self, batch: torch.zeros(len(batch), 2)), "none of which can learn"),
    (fault(lambda self, config: self.requires_grad_(False)), "none of which can learn"),
    (fault(forward=lambda self, batch: given(self, batch).long()), "no parameter can change"),
    (fault(forward=torch.no_grad()(given)), "no parameter can change"),
    (fault(lambda self, config: delattr(self, "config")), "self.config"),
    (NO_MODULE, "torch.nn.Module"),
    (fault(__init__=of_one_argument_more), "layers"),
    (fault(__init__=of_a_width), "TypeError"),
    (
        fault(lambda self, config: setattr(self, "word", nn.Embedding(97, config.hidden_size, sparse=True))),
        "word.weight",
    ),
    (TURN, "turn"),
    (fault(get_extra_state=lambda self: {"version": 1}, set_extra_state=lambda self, state: None), "get_extra_state"),
    (
        fault(state_dict=lambda self, *a, **b: nn.Module.state_dict(self, *a, **b) | {"version": torch.ones(1)}),
        "version",
    ),
    (fault(lambda self, config: self.register_buffer("ones", torch.ones(1).expand(5))), "ones"),
    (fault(lambda self, config: self.register_buffer("mask", torch.ones(1)), forward=as_long_as_the_texts), "mask"),
    (fault(forward=scaled_late), "scale"),
    (fault(forward=made_anew), "head.bias"),
    (DRAWN, "saved and loaded"),
    (fault(forward=lambda self, batch: given(self, batch) / 0), "finite"),
    (fault(forward=lambda self, batch: self.haed(batch)), "haed"),
    (fault(forward=lambda self, batch: self.head(self.word(batch.ids))), "a row a text"),
    (fault(forward=lambda self, batch: given(self, batch if len(batch) > 1 else batch.missing)), "missing"),
]


class Silenced(nn.Module):
    """A decoder that is to write, and cannot."""

    def __init__(self, config):
        super().__init__()
        self.config, self.word, self.head = config, nn.Embedding(97, 8), nn.Linear(8, 97)

    def forward(self, inputs, targets):
        return nn.functional.cross_entropy(self.head(self.word(inputs)).flatten(0, 1), targets.flatten())

    def advance(self, tokens, state):
        return self.head(self.word(tokens))


@pytest.fixture
def own(monkeypatch):
    """name, class -> registered, for this test alone."""
    monkeypatch.setattr(registry, "MODELS", dict(registry.MODELS))
    return lambda cls, name="mine": rtx.register(name, cls, Small())


def tried(examples) -> None:
    dry_run("mine", registry.config_of("mine"), examples, TrainConfig(learning_rate=1e-3), CPU)


@pytest.mark.parametrize(("cls", "said"), FAULTS)
def test_a_fault_is_one_sentence_before_training(cls, said, own):
    own(cls)
    with refused(said):
        tried(small_task())


def test_a_decoder_that_cannot_write_is_one_sentence_before_training(own):
    own(Silenced)
    with refused("start"):
        tried(task(HopData(letters=8, hops=2, eval_texts=16, test_texts=16), 4))


class Unusual(Plain):
    """Frozen words, a mask of infinities, tied and idle parameters, dropout, another type."""

    def __init__(self, config):
        super().__init__(config)
        self.word.requires_grad_(False)
        self.double()
        self.again = self.head
        self.idle = nn.Linear(3, 3)
        self.register_buffer("mask", torch.full((4, 4), -torch.inf).triu(1))
        self.register_buffer("passing", torch.ones(2), persistent=False)

    def forward(self, batch):
        return nn.functional.dropout(super().forward(batch), 0.5, self.training)


def test_what_is_unusual_is_welcome(own):
    own(Unusual)
    tried(small_task())
    assert count_parameters(build_model("mine")) == {"total": 806, "non_embedding": 30, "frozen": 776}


def test_a_name_is_short_enough_for_a_file(own):
    own(Plain, "m" * 60)
    with refused("mmm", "60"):
        own(Plain, "m" * 300)


def test_a_run_tries_its_model_before_it_trains_it(own, home, small_models, monkeypatch):
    own(DRAWN)
    monkeypatch.setattr("rtx_core.train.trainer.train", lambda *_, **__: pytest.fail("it is not to be trained"))
    with refused("saved and loaded"):
        rtx.run("sst2", "mine", source="embedded", train_rows=16, device="cpu")
    assert not list(home.rglob("**/mine-seed0.json"))


class Large(Small):
    vocab_size: int = 30_522


class HalfFrozen(Plain):
    def __init__(self, config):
        super().__init__(config)
        self.word = nn.Embedding(config.vocab_size, config.hidden_size).requires_grad_(False)


def test_parameters_that_do_not_learn_are_counted_apart_and_stay(own, small_models):
    rtx.register("mine", HalfFrozen, Large())
    run = rtx.run("sst2", "mine", source="embedded", train_rows=16, epochs=1, device="cpu")
    assert run.record["parameters"] == {"total": 8 * 30_522 + 18, "non_embedding": 18, "frozen": 8 * 30_522}
    first = build_model("mine", seed=0)
    assert torch.equal(run.model.word.weight, first.word.weight)
    assert not torch.equal(run.model.head.weight, first.head.weight)
