"""The check of a loop: a sound one passes, and every planted fault is found.  The loops here import torch alone."""

import copy
import json
import threading

import pytest
import torch
import torch.nn.functional as F
from conftest import refused
from torch import Tensor, nn

import rtx_core as rtx
from rtx_core.__main__ import main
from rtx_core.benchmark.check import FAIL, LOOK, PASS, UNKNOWN, check
from rtx_core.benchmark.subject import named
from rtx_core.errors import RtxError

V, D = 17, 16


class Block(nn.Module):
    """One causal layer, with a cache of keys and values for each call."""

    def __init__(self, leak: bool = False):
        super().__init__()
        self.qkv, self.out, self.leak = nn.Linear(D, 3 * D), nn.Linear(D, D), leak
        self.mlp = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))

    def forward(self, x: Tensor, past: list | None = None, slot: int = 0) -> Tensor:
        q, k, v = self.qkv(F.layer_norm(x, (D,))).chunk(3, -1)
        if past is not None:
            if slot < len(past):
                k, v = (torch.cat(pair, 1) for pair in zip(past[slot], (k, v)))
                past[slot] = (k, v)
            else:
                past.append((k, v))
        lower = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1] + 3 * self.leak)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=lower))
        return x + self.mlp(F.layer_norm(x, (D,)))


class Loop(nn.Module):
    """One layer run `passes` times; each fault is one argument."""

    def __init__(self, fault: str = "", passes: int = 3):
        super().__init__()
        self.word, self.block, self.head = nn.Embedding(V, D), Block(leak=fault == "leak"), nn.Linear(D, V)
        self.copies = nn.ModuleList(copy.deepcopy(self.block) for _ in range(2)) if fault == "copied" else None
        self.dead = nn.Parameter(torch.ones(3, 3)) if fault == "dead" else None
        self.norm = nn.BatchNorm1d(D) if fault == "batch norm" else None
        self.fault, self.passes = fault, passes
        nn.init.normal_(self.word.weight, std=1.0 if fault == "large embeddings" else 0.05)

    def forward(self, ids: Tensor, num_passes: int | None = None, cache: list | None = None, use_cache: bool = False):
        x, keep = self.word(ids), [] if use_cache and cache is None else cache
        if self.fault == "position of the last":
            x = x + torch.arange(ids.shape[1])[None, :, None] / ids.shape[1]
        if self.norm:  # which looks at all tokens, but only in training
            x = self.norm(x.transpose(1, 2)).transpose(1, 2)
        if self.fault == "mean over the batch":
            x = x - x.mean(0, keepdim=True)
        for r in range(num_passes or self.passes):
            block = self.copies[r - 1] if self.copies and r else self.block
            slot = 0 if self.fault == "forgetful cache" and keep and len(keep) > r else r
            x = block(x, keep, slot)
            if self.fault == "detached" and r == 0:
                x = x.detach()
            if self.fault == "dropout":
                x = F.dropout(x, 0.2, training=True)
            if self.fault == "divergent":
                x = 2 * x
            if self.fault == "NaN":
                x = x / 0
        logits = self.head(x)
        return (logits, keep) if keep is not None else logits


def verdicts(model: object, **more: object) -> dict[str, str]:
    torch.manual_seed(0)
    return {line.check: line.verdict for line in check(model, **more)}


def test_a_sound_loop_passes_every_check():
    report = check(Loop(), passes=3)
    assert {line.verdict for line in report} == {PASS} and not report.failed and len(report) == 18
    by = {line.check: line.value for line in report}
    assert by["loop"]["applications"]["block.qkv.weight"] == 3 and by["loop"]["applications"]["head.weight"] == 1
    layer = D * 3 * D + D * D + 4 * D * D  # of one token, without attention
    assert 3 * layer + D * V <= by["multiply-adds"] < 3 * layer + D * V + 3 * 2 * 64 * D + 1
    assert by["carried state"] == {"numbers": D, "passes": 3}
    assert by["cache bytes a token"] == 3 * 2 * D * 4
    assert json.loads(report.json())[0]["verdict"] == PASS and str(report).count("\n") == 17


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("copied", "parameters"),
        ("leak", "causality"),
        ("batch norm", "causality"),
        ("forgetful cache", "cached generation"),
        ("detached", "gradient by pass"),
        ("dead", "gradients"),
        ("dropout", "deterministic"),
        ("mean over the batch", "batch neighbours"),
        ("position of the last", "padding"),
        ("NaN", "logits"),
    ],
)
def test_a_planted_fault_is_found(fault, found):
    assert verdicts(Loop(fault))[found] == FAIL


def test_what_to_look_at():
    assert verdicts(Loop("divergent"))["growth of the state"] == LOOK
    assert verdicts(Loop(passes=1))["loop"] == LOOK
    assert verdicts(Loop("large embeddings"))["initialization"] == LOOK
    assert verdicts(Loop("copied"), passes=3)["loop"] == FAIL


class Lstm(nn.Module):
    """A recurrence along the sequence, one cell a token."""

    def __init__(self, vocab_size: int, max_length: int):
        super().__init__()
        self.word, self.cell, self.head = nn.Embedding(vocab_size, D), nn.LSTMCell(D, D), nn.Linear(D, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        state, outputs = None, []
        for x in self.word(ids).unbind(1):
            state = self.cell(x, state)
            outputs.append(state[0])
        return self.head(torch.stack(outputs, 1))


def test_a_recurrence_along_the_sequence_is_told_from_a_loop_and_is_not_asked_for_what_it_lacks():
    report = check(Lstm)  # a class that takes MAD-Lab's arguments
    by = {line.check: line for line in report}
    assert by["loop"].verdict == LOOK and "along the sequence" in by["loop"].says
    assert by["cached generation"].verdict == by["passes at test time"].verdict == UNKNOWN
    assert by["causality"].verdict == PASS


class Positions(Loop):
    """Its table of positions has more rows than there are tokens."""

    def __init__(self):
        super().__init__()
        self.position = nn.Embedding(4 * V, D)

    def forward(self, ids: Tensor, num_passes: int | None = None) -> Tensor:
        positions = self.position(torch.arange(ids.shape[1])).sum(-1)
        return super().forward(ids, num_passes) + positions[:, None]


def test_a_table_of_positions_is_not_taken_for_the_vocabulary():
    assert FAIL not in verdicts(Positions).values()


def test_the_multiply_adds_of_a_fused_layer_of_torch_are_counted():
    class Fused(nn.Module):
        def __init__(self):
            super().__init__()
            self.word, self.head = nn.Embedding(V, D), nn.Linear(D, V)
            self.layer = nn.TransformerEncoderLayer(D, 2, 2 * D, dropout=0.0, batch_first=True)

        def forward(self, ids: Tensor) -> Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
            return self.head(self.layer(self.word(ids), src_mask=mask, is_causal=True))

    by = {line.check: line.value for line in check(Fused())}
    assert by["multiply-adds"] >= D * V + 4 * D * D + 2 * D * 2 * D


def test_models_of_this_library_pass():
    small = {"vocab_size": 31, "hidden_size": 32, "num_heads": 2, "intermediate_size": 48}
    looped = rtx.build_model("looped", seed=0, num_layers=2, num_passes=3, **small)
    before = {name: value.clone() for name, value in looped.state_dict().items()}
    assert {line.verdict for line in rtx.check(looped, passes=3)} == {PASS}
    assert all(torch.equal(value, before[name]) for name, value in looped.state_dict().items())
    assert all(p.grad is None for p in looped.parameters())
    assert verdicts(rtx.build_model("gpt", seed=0, num_layers=2, **small))["cached generation"] == PASS


def test_bad_input_ends_in_one_sentence():
    with pytest.raises(RtxError, match="expected an nn.Module"):
        check(3)
    with pytest.raises(RtxError, match="needs width"):
        check(lambda width: Loop())
    with pytest.raises(RtxError, match="give vocab_size"):
        check(nn.Linear(3, 3))
    shapes = check(nn.Sequential(nn.Embedding(V, D), nn.Linear(D, V), nn.Flatten(1)))
    assert shapes.failed == ["logits"] and [line.verdict for line in shapes].count(UNKNOWN) == 1 and len(shapes) < 5
    assert "expected logits (B, N, V)" in shapes[0].says
    with torch.no_grad():
        stopped = {line.check: line for line in check(Loop().requires_grad_(False))}
    assert stopped["gradients"].verdict == FAIL and "No gradient leaves the loss" in stopped["gradients"].says


def test_the_command_takes_a_file_or_a_registered_name(tmp_path, monkeypatch, capsys):
    def said(*words: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["rtx", "check", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr().out

    file = tmp_path / "mine.py"
    file.write_text(
        "from test_check import Lstm, Loop\nclass Leaky(Loop):\n    def __init__(self): super().__init__('leak')"
    )
    code, text = said(f"{file}:Leaky", "--json", "length=16")
    assert code == 1 and {row["check"] for row in json.loads(text) if row["verdict"] == FAIL} >= {"causality"}
    code, text = said("looped", "hidden_size=32", "num_heads=2", "intermediate_size=48", "vocab_size=9000", "passes=4")
    assert code == 0 and "applied 4 times" in text
    with pytest.raises(RtxError, match="cannot be found"):
        named(f"{file}:Nothing")


class Locked(Loop):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


WRONG = [
    ({"passes": "x"}, "passes"),
    ({"passes": -1}, "passes"),
    ({"passes": 1.5}, "passes"),
    ({"length": 1}, "length"),
]
WRONG += [({"length": 10**11}, "length"), ({"vocab_size": "x"}, "vocab_size"), ({"vocab_size": True}, "vocab_size")]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_an_option_that_cannot_be_is_refused_and_no_verdict_on_the_model(options, said):
    with refused(said, "expected a whole number"):
        check(Loop(), **options)


FILES = {"def f(:": "SyntaxError", "1 / 0": "ZeroDivisionError", "raise KeyError('x')": "KeyError", "pass": "found"}
FILES |= {"class Name:\n    def __init__(self): raise KeyError('x')": "KeyError"}
FILES |= {"class Name:\n    def __init__(self, width=1): pass": "expected an nn.Module", "Name = 5": "Got 5"}


@pytest.mark.parametrize("source", FILES)
def test_a_file_that_cannot_be_run_is_one_sentence(tmp_path, source):
    (file := tmp_path / "model.py").write_text(source)
    with refused(FILES[source]):
        check(named(f"{file}:Name"))
    if "Name" in source:
        with refused("depth" if "class" in source else "Got 5"):
            check(named(f"{file}:Name", depth=3))


def test_a_model_that_cannot_be_copied_is_one_sentence():
    with refused("cannot be copied", "lock"):
        check(Locked())
