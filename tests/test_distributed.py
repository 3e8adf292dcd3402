"""Several processes that share each batch take the steps that one takes alone."""

import os

import pytest
import torch
from conftest import shrink
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from rtx_core import records
from rtx_core.__main__ import main
from rtx_core.errors import Busy
from rtx_core.train.distributed import Ranks, ranks

# 61 rows in batches of 8: the last batch has 5, so the shares of two and of three processes are not equal.
COMMANDS = {
    "classifier": "sst2 recurrent source=embedded train_rows=61 batch_size=8 epochs=2 eval_every=3 learning_rate=0.01",
    "language": "shakespeare kausik source=embedded steps=6 batch_size=6 micro_batches=2 block_size=16 eval_every=2"
    " eval_batches=2 warmup_steps=0 learning_rate=0.01",
}


def command(home: str, words: list[str]) -> None:
    """What torchrun starts: each process has a rank of its own in its environment."""
    os.environ["RTX_HOME"] = home
    os.environ.pop("RTX_DATA", None)
    torch.set_num_threads(1)
    patch = pytest.MonkeyPatch()
    shrink(patch)
    patch.setattr("sys.argv", words)
    main()


def made(kind: str, folder, processes: int, monkeypatch):
    """(record, what was said) of a run by so many processes."""
    folder.mkdir()
    words = ["rtx", "run", *COMMANDS[kind].split(), "seed=0", "device=cpu", "dropout=0.0"]
    logs = DefaultLogsSpecs(log_dir=str(folder / "logs"), redirects=Std.OUT)
    ways = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "start_method": "forkserver"}
    torchrun = LaunchConfig(1, 1, processes, logs_specs=logs, **ways)
    elastic_launch(torchrun, command)(str(folder), words)
    monkeypatch.setenv("RTX_HOME", str(folder))
    (record,) = records.records(source="embedded")
    return record, "".join(path.read_text() for path in (folder / "logs").rglob("stdout.log"))


@pytest.mark.parametrize(("kind", "processes"), [("classifier", 3), ("language", 2)])
def test_processes_that_share_batches_give_the_losses_of_one(kind, processes, tmp_path, monkeypatch):
    alone, _ = made(kind, tmp_path / "one", 1, monkeypatch)
    shared, said = made(kind, tmp_path / "many", processes, monkeypatch)
    assert (alone["environment"]["processes"], shared["environment"]["processes"]) == (1, processes)
    assert alone["key"] == shared["key"] and said.count("· test ") == 2  # one speaks while they train
    assert len(alone["history"]) == len(shared["history"]) >= 3
    for a, b in zip(alone["history"], shared["history"]):
        for name in ("train_loss", "validation_loss"):
            assert a[name] == pytest.approx(b[name], abs=2e-5), (a, b)
    losses = [row["train_loss"] for row in alone["history"]]
    assert min(losses) < losses[0] - 1e-3  # it did learn, so agreement is not that of weights at rest
    assert alone["test"]["loss"] == pytest.approx(shared["test"]["loss"], abs=2e-5)


def test_an_error_of_the_first_process_is_the_error_of_all(monkeypatch):
    wire = []

    def share(objects: list) -> None:
        wire.append(list(objects))  # of the first process, whose call comes first
        objects[:] = wire[0]

    def busy() -> None:
        raise Busy("now")

    monkeypatch.setattr(torch.distributed, "broadcast_object_list", share)
    for rank in (0, 1):
        with pytest.raises(Busy, match="now"):
            Ranks(rank, 2).broadcast(busy)


def test_alone_nothing_is_shared():
    world = ranks()
    assert world == Ranks() and world.first and world.seed(7) == 7 and world.broadcast(lambda: 5) == 5
    assert len({Ranks(rank, 3).seed(0) for rank in range(3)}) == 3  # streams of dropout differ
