"""Golden runs: tiny runs of every model, plain and fast, whose first losses and gradient norms tell whether the code
gives the same numbers.

`rtx golden` compares them with the recorded ones.  `--accept` repeats them by today's code and by the last accepted
commit on this machine and registers today's as giving the same numbers only if all are equal bit for bit.  `--new`
registers it as new: records made before are stale."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from rtx_core import records
from rtx_core.data.tasks import Classification, Language
from rtx_core.data.tokens import Tokens
from rtx_core.errors import RtxError
from rtx_core.models import build_model, registry
from rtx_core.models.packed import Packed
from rtx_core.paths import PACKAGE, REPOSITORY, write_json
from rtx_core.records import fingerprint
from rtx_core.study import declared
from rtx_core.train.config import TrainConfig
from rtx_core.train.trainer import train

FILE = Path(__file__).with_name("golden.json")
STEPS = 5
TOLERANCE = 2e-3  # relative, between processors that sum in other orders
DO = "undo what changed them, or `golden --new`"
SMALL = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2}


def built_in() -> list[str]:
    return [name for name, model in registry.MODELS.items() if isinstance(model.kind, str)]


def golden_runs(models: list[str] | None = None) -> dict[str, dict]:
    """{model: {"fast": numbers, "plain": numbers}} of `STEPS` steps on random tokens; the data are no corpus's."""
    return {name: {"fast": _run(name, True), "plain": _run(name, False)} for name in models or built_in()}


def _run(name: str, fast: bool) -> dict[str, list[float]]:
    torch.set_num_threads(1)
    known = registry.find(name).config.names()
    model = build_model(name, seed=1, **{k: v for k, v in SMALL.items() if k in known})
    task = _task(model.config)
    ways = {"schedule": "constant", "warmup_steps": 2, "eval_every": 1, "stop_patience": 0}
    ways["decay"] = "all" if task.classes else "matrices"
    config = TrainConfig(epochs=0, steps=STEPS, batch_size=8, learning_rate=1e-3, **ways)
    objective, _ = task.loss(model.eval(), *task.step(1, 0)[0], task.examples(0))  # of the plain model
    objective.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    found = {"gradient_norm": [torch.nn.utils.get_total_norm(gradients).item()]}
    model.zero_grad(set_to_none=True)
    with tempfile.TemporaryDirectory() as folder:
        file, cpu = Path(folder, "c.safetensors"), torch.device("cpu")
        progress, _ = train(model, task, config, 1, cpu, file, say=lambda line: None, fast=fast)
    return found | {k: [row[k] for row in progress.history] for k in ("train_loss", "validation_loss")}


def _task(config):
    """Random tokens in the form that the model reads: labelled texts, packed stories, or rows of characters."""
    random = np.random.RandomState(0)

    def texts(n: int) -> Tokens:
        lengths = random.randint(3, 14, size=n)
        ids = random.randint(4, config.vocab_size, size=lengths.sum()).astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Tokens(ids, offsets, random.randint(0, 2, size=n).astype(np.int64))

    if "num_labels" in config.names():
        parts = {"train": texts(64), "validation": texts(24), "test": texts(24)}
        return Classification(parts, ("no", "yes"), {"sha256": "0" * 64}, batch_size=8)

    packed = "block_size" not in config.names()
    stream = random.randint(0, config.vocab_size, size=(64, 4 * 16 + 1))

    class Rows(Language):
        vocab_size = config.vocab_size

        def _batch(self, row: int):
            ids = torch.from_numpy(stream[row])
            if packed:
                return Packed.from_flat(stream[row][:-1], np.array([10, 30, 24])), ids[1:]
            return ids[:-1].view(4, 16), ids[1:].view(4, 16)

        def micro_batch(self, seed: int, i: int, piece: int):
            return self._batch((seed + i) % 48)

        def evaluation_batches(self, part: str):
            return [self._batch(row) for row in (48, 49)]

    return Rows(batch_size=4, micro_batches=1, block_size=16, eval_batches=2)


def differing(found: dict, expected: dict, tolerance: float = 0.0) -> list[str]:
    """Which numbers of golden runs differ, relatively by more than `tolerance`."""
    wrong = []
    for model, path in ((model, path) for model, paths in expected.items() for path in paths):
        for kind, values in expected[model][path].items():
            mine = found.get(model, {}).get(path, {}).get(kind, [])
            if len(mine) != len(values) or not np.allclose(mine, values, tolerance, 0):
                wrong.append(f"{model}, {path}, {kind}")
    return wrong


def measuring() -> list[str]:
    """The modules whose code the recorded measurements depend on."""
    return sorted(module for kind, module in declared("MEASUREMENTS").items() if records.measurements(kind))


def changed_since(commit: str, module: str) -> bool:
    """Whether a module of `evaluate` or the study, of which golden runs do not speak, has changed since a commit."""
    path = f"{module.replace('.', '/')}.py"
    then, now = fingerprint.git("show", f"{commit}:{path}"), (REPOSITORY / path).read_text(encoding="utf-8")
    others = [name for name in fingerprint.imports(now) if name.startswith(("rtx_core.evaluate.", "study."))]
    same = then is not None and fingerprint.bare(then) == fingerprint.bare(now)
    return not same or any(changed_since(commit, other) for other in others)


def unregistered() -> list[str]:
    """Models whose code is neither accepted as giving the old numbers nor registered as new."""
    return [name for name in built_in() if fingerprint.registered()["hashes"].get(name) != fingerprint.model_hash(name)]


def main(accept: bool = False, new: bool = False) -> None:
    found = golden_runs()
    if new:
        _register({})
        write_json(FILE, found)
        print("registered as new: records made by the code before are stale now")
        return
    if wrong := differing(found, json.loads(FILE.read_text(encoding="utf-8")), TOLERANCE):
        raise RtxError(f"Golden runs give other numbers than recorded: {'; '.join(wrong)}; {DO}.")
    if not accept:
        waiting = ", ".join(unregistered()) or "none"
        print(f"all golden runs give their recorded numbers; waiting for `golden --accept`: {waiting}")
        return
    before = fingerprint.registered()
    if wrong := differing(found, _runs_at(before["commit"])):
        raise RtxError(f"Not accepted: here commit {before['commit'][:9]} gives other {'; '.join(wrong)}; {DO}.")
    own = [module for module in measuring() if changed_since(before["commit"], module)]
    _register({name: old for name, old in before["hashes"].items() if name not in own})
    print(f"accepted: the golden runs of commit {before['commit'][:9]}, bit for bit")


def _register(before: dict[str, str]) -> None:
    """Today's hashes; those in `before`, by model, give the same numbers."""
    registered, today = fingerprint.registered(), {name: fingerprint.model_hash(name) for name in built_in()}
    today |= {module: fingerprint.module_hash(module) for module in measuring()}
    known, same = registered["same"], {}
    for name, now in today.items():
        old = before.get(name, now)
        same[now] = sorted({*same.get(now, ()), old, *known.get(now, ()), *known.get(old, ())} - {now})
    head = fingerprint.commit()
    commit = head["commit"] if head["clean"] else registered["commit"] or head["commit"]
    write_json(fingerprint.SAME_NUMBERS, {"commit": commit, "hashes": today, "same": same})
    fingerprint.registered.cache_clear()


def _runs_at(commit: str) -> dict:
    """The golden runs of another commit, by a copy of its package and of its study."""
    show = "import json; from rtx_core.records import golden; print(json.dumps(golden.golden_runs()))"
    with tempfile.TemporaryDirectory() as folder:
        packed = str(Path(folder, "then.zip"))
        if fingerprint.git("archive", f"--output={packed}", commit, PACKAGE.name, "study") is None:
            raise RtxError(f"Commit {commit[:9]} cannot be read; fetch the whole history.")
        shutil.unpack_archive(packed, folder)
        environment, command = os.environ | {"PYTHONPATH": folder}, [sys.executable, "-c", show]
        said = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True).stdout
    return json.loads(said.splitlines()[-1])
