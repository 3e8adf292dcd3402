"""A run that is killed, at whatever moment and however often, leaves what one leaves that nobody disturbs."""

import json
import random
import shutil
from functools import partial
from itertools import count

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from survival import COMMANDS, at_step, checkpoints, die, lived, mortal, often, records, result, run, whole

from rtx_core.errors import RtxError
from rtx_core.training import checkpoint

KINDS = pytest.mark.parametrize("kind", COMMANDS)
KILLED = -9


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """kind -> the home of a run that was killed in its 8th step, with the checkpoints of the 7th and the 6th."""
    homes = {kind: tmp_path_factory.mktemp(f"interrupted-{kind}") for kind in COMMANDS}
    for kind, home in homes.items():
        assert lived(home, run(kind), often, partial(at_step, 8, die)).ends() == KILLED
        assert [header(path)["progress"]["step"] for path in checkpoints(home)] == [7, 6] and records(home) == []
    return homes


def header(path, name: str = "state"):
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()[name])


# -- kills ---------------------------------------------------------------------------------------------------------------


@KINDS
def test_killed_at_any_moment_and_started_again(kind, whole, tmp_path):
    listed = [line.removeprefix("moment: ") for line in lived(tmp_path / "0", run(kind), mortal).said.splitlines() if line.startswith("moment: ")]
    assert result(tmp_path / "0") == whole[kind]
    record = records(tmp_path / "0")[0].name
    assert {"step", "half of checkpoint.safetensors", "os.rename checkpoint.previous.safetensors", f"half of {record}", f"os.rename {record}"} <= set(listed)
    assert listed[-1] == "os.remove checkpoint.previous.safetensors"  # after the record
    draw = random.Random(f"moments of a {kind}")
    for name in dict.fromkeys(listed):  # of each kind of moment, one
        at = draw.choice([i for i, other in enumerate(listed, start=1) if other == name])
        home = tmp_path / str(at)
        assert lived(home, run(kind), partial(mortal, at)).ends() == KILLED, name
        assert bool(records(home)) == (at > len(listed) - 2), name
        again = lived(home, run(kind))
        assert again.ends() == 0 and result(home) == whole[kind], (name, again.said)


@KINDS
def test_killed_again_and_again(kind, whole, tmp_path):
    draw, resumed = random.Random(f"lives of a {kind}"), 0
    for lives in count():
        life = lived(tmp_path, run(kind), partial(mortal, draw.randint(5, 9) + lives))
        resumed += "resumed at step" in life.said
        if life.ends() != KILLED:
            break
    assert life.ends() == 0 and lives >= 4 and resumed >= 3
    assert result(tmp_path) == whole[kind]


# -- damage --------------------------------------------------------------------------------------------------------------


def flipped(content: bytes) -> bytes:
    """One bit of the tensors."""
    at = len(content) - 1000
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


DAMAGES = {"flipped": flipped, "truncated": lambda content: content[: len(content) // 2], "empty": lambda content: b""}


@KINDS
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_checkpoint_is_told_and_the_one_before_is_used(kind, damage, whole, interrupted, tmp_path):
    home = shutil.copytree(interrupted[kind], tmp_path / "home")
    newest = checkpoints(home)[0]
    newest.write_bytes(DAMAGES[damage](newest.read_bytes()))
    life = lived(home, run(kind))
    assert life.ends() == 0 and "the checkpoint checkpoint.safetensors is damaged" in life.said and "resumed at step 6" in life.said
    assert result(home) == whole[kind]


def test_flipped_bit_of_a_header_is_told_or_harmless(interrupted, tmp_path):
    model, fresh = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    optimizers = [torch.optim.AdamW(m.parameters()) for m in (model, fresh)]
    model(torch.ones(3)).sum().backward()
    optimizers[0].step()
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.save(path, model, optimizers[0], {"weight": model.weight.detach().clone()}, {"step": 7})
    content, told, draw = path.read_bytes(), 0, random.Random("headers")
    for at in draw.sample(range(8 + int.from_bytes(content[:8], "little")), 200):
        path.write_bytes(content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :])
        try:
            best, state = checkpoint.load(path, fresh, optimizers[1], lambda line: None)
        except RtxError:
            told += 1
        else:
            assert state == {"step": 7} and best["weight"].equal(model.weight) and fresh.weight.equal(model.weight)
    assert told > 150


@KINDS
def test_two_damaged_checkpoints_are_one_sentence_and_stay(kind, interrupted, tmp_path):
    home = shutil.copytree(interrupted[kind], tmp_path / "home")
    for path, damage in zip(checkpoints(home), (flipped, DAMAGES["truncated"]), strict=True):
        path.write_bytes(damage(path.read_bytes()))
    before = [path.read_bytes() for path in checkpoints(home)]
    life = lived(home, run(kind))
    said = life.said.splitlines()[-1]
    assert life.ends() == 1 and "Traceback" not in life.said and records(home) == []
    assert said.startswith("No checkpoint of this run can be read (") and said.endswith("; delete them to start the run anew.")
    assert [path.read_bytes() for path in checkpoints(home)] == before


def rewritten(path, **metadata: str) -> None:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() | metadata
    save_file(load_file(path), path, metadata=metadata)


@KINDS
def test_checkpoint_of_another_version_is_one_sentence(kind, interrupted, tmp_path):
    home = shutil.copytree(interrupted[kind], tmp_path / "home")
    for path in checkpoints(home):
        rewritten(path, version="0")
    life = lived(home, run(kind))
    assert life.ends() == 1 and "Traceback" not in life.said
    assert "it is of version 0, and this code reads version 1" in life.said.splitlines()[-1]


def test_checkpoint_of_another_model_is_one_sentence(interrupted, tmp_path):
    home = shutil.copytree(interrupted["classifier"], tmp_path / "home")
    for mine, other in zip(checkpoints(home), checkpoints(interrupted["language"]), strict=True):
        shutil.copy(other, mine)
    life = lived(home, run("classifier"))
    said = life.said.splitlines()[-1]
    assert life.ends() == 1 and "Traceback" not in life.said
    assert said.startswith("The checkpoint checkpoint.safetensors is of another model (") and said.endswith("; delete it to start that run anew.")
