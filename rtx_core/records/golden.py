"""Golden runs: tiny runs that tell whether the code gives the same numbers, and so which records are current.

There is one of every way through the code that a record takes: a model with its switches, a task, a way of training
(`fingerprint.way`).  `golden.json` holds their settings and numbers, on the plain and on the fast path.

A record says by hashes which code made it (`fingerprint.run_hash`).  It is current if that is today's code, or if the
golden run that goes the same way has run on that code and on every one since, with equal numbers bit for bit.  So after
a change of code that is hashed:

1. `python -m rtx_core golden` compares today's numbers with the recorded ones, as far as processors agree.
2. `python -m rtx_core golden --accept` repeats all runs by the last accepted commit and by today's code, on this
   machine.  If all are equal it adds today's hashes to those that give the same numbers (`same_numbers.json`), and
   records of before stay current.  Else it names the runs that differ: undo the change, or
3. `python -m rtx_core golden --new` registers today's code as new: every record made before is stale.

Records of a new switch need a golden run: `--accept` adds those that are missing, and a test fails until it has."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import torch

from rtx_core import records
from rtx_core.data import characters, stories
from rtx_core.data.synthetic import play
from rtx_core.data.tasks import Classification, Task
from rtx_core.data.tokens import Tokens
from rtx_core.errors import RtxError
from rtx_core.models import build_model, registry
from rtx_core.paths import PACKAGE, REPOSITORY, write_atomically, write_json
from rtx_core.records import fingerprint
from rtx_core.study import declaration
from rtx_core.train.config import TrainConfig
from rtx_core.train.trainer import autocast_of, train

PATHS = ("fast", "plain")
TOLERANCE, ROUNDED = 2e-3, 2e-2  # relative, between processors that sum in other orders, in 32 and in 16 bits
ADVICE = "undo what changed them, or `golden --new`"
LIMITS = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "num_layers": 2}
LIMITS |= {"num_passes": 3, "num_core_layers": 2, "lora_rank": 2, "block_size": 8, "letters": 16, "hops": 3, "stage": 2}
LIMITS |= {"facts": 10, "keys": 8, "values": 8, "eval_texts": 16, "test_texts": 16, "eval_batches": 2, "steps": 3}
LIMITS |= {"epochs": 5, "batch_size": 4, "eval_every": 3, "warmup_steps": 2, "plateau_patience": 2}
CPU = torch.device("cpu")


def built_in_models() -> list[str]:
    return [name for name, model in registry.MODELS.items() if isinstance(model.kind, str)]


def golden_runs(runs: Mapping[str, dict]) -> dict[str, dict]:
    """{name: {"fast": numbers, "plain": numbers}} of these runs."""
    torch.set_num_threads(1)
    return {name: {path: _run(run, path == "fast") for path in PATHS} for name, run in runs.items()}


def _run(run: Mapping, fast: bool) -> dict[str, list[float]]:
    """The norm of the first gradient of the plain model, the losses of the history, and those of the test."""
    config, task = TrainConfig(**run["config"]["train"]), task_of(run)
    model = build_model(run["config"]["architecture"], seed=1, **_model_settings(run, task))
    objective, _ = task.loss(model.eval(), *task.step(1, 0)[0], task.examples(0))
    objective.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    numbers = {"gradient_norm": [torch.nn.utils.get_total_norm(gradients).item()]}
    model.zero_grad(set_to_none=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "c.safetensors")
        progress, _ = train(model, task, config, 1, CPU, file, say=lambda line: None, fast=fast)
    numbers |= {k: [row[k] for row in progress.history] for k in ("train_loss", "validation_loss")}
    entry, _ = task.test(model, CPU, autocast_of(config.precision, CPU))
    of_passes = [sum(part.get("error_by_passes", ())) for part in entry.get("parts", ())]
    if hasattr(model, "advance"):
        numbers["written"] = _decode_norms(model)
    numbers["test"] = [entry["loss"], entry.get("accuracy", 0.0), float(sum(of_passes))]
    return numbers


@torch.inference_mode()
def _decode_norms(model) -> list[float]:
    """The norms of the logits when two texts are read token by token."""
    state = model.eval().start(2)
    return [model.advance(torch.tensor([i, 3]), state).norm().item() for i in range(4)]


def shrink(task: str, config: Mapping) -> dict:
    """A record's `config`, as small as it can be without going another way."""
    parts = {}
    for part in ("model", "data", "train"):
        numbers = {k: v for k, v in config[part].items() if k in LIMITS and isinstance(v, int) and v not in (0, 1)}
        parts[part] = config[part] | {k: min(v, LIMITS[k]) for k, v in numbers.items()}
    if core := parts["model"].get("num_core_layers"):
        parts["model"]["num_layers"] = core + 2
    parts["train"]["learning_rate"] = 1e-2
    parts["data"] = {} if task == fingerprint.TEXTS else parts["data"]
    return {"architecture": config["architecture"], **parts}


def declared_models() -> list[str]:
    """The study's recurrences, as far as they are registered (`benchmark.bench.register_declared`)."""
    return [name for name in declaration("RECURRENCES") if name in registry.MODELS]


def _belongs_to_study(record: records.Record) -> bool:
    return record.path.is_relative_to(records.folder())


def _is_covered(record: records.Record) -> bool:
    """Whether a golden run goes the way of a record: of the study's runs of built-in models, and of all runs of its
    recurrences with their own settings, which the bench records elsewhere."""
    architecture = record["config"]["architecture"]
    if architecture in declared_models():
        return not record["config"]["model"].get("settings")
    return architecture in built_in_models() and _belongs_to_study(record)


def missing_runs(runs: Mapping[str, dict]) -> dict[str, dict]:
    """The golden runs that records need and `runs` lacks, each without numbers."""
    ways, required = {fingerprint.way(run["task"], run["config"]) for run in runs.values()}, {}
    for record in filter(_is_covered, records.records()):
        task, config = record.task, record["config"]
        # no other module is imported for a record
        if not task or fingerprint.is_elsewhere(task.partition(":")[0]):
            continue
        if (way := fingerprint.way(task, config)) not in ways:
            ways.add(way)
            required[str(record).removesuffix(".json")] = {"task": task, "config": shrink(task, config)}
    return required


def _model_settings(run: Mapping, task: Task) -> dict:
    """The settings of a golden run's model, some of which the task decides."""
    settings = run["config"]["model"]
    return settings | {k: v for k, v in task.model_settings.items() if k in settings}


def task_of(run: Mapping) -> Task:
    data, train = run["config"]["data"], run["config"]["train"]
    return _task(run["task"], json.dumps(data), train["batch_size"], train["micro_batches"])


def _embedded(fields: dict) -> SimpleNamespace:
    return SimpleNamespace(**fields | {"source": "embedded"})


def _is_task(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Task)


@cache
def _task(name: str, data: str, batch_size: int, micro_batches: int) -> Task:
    """A task on few data: made by a rule as it is, else on generated texts."""
    kind, config = resolve_name(name), json.loads(data, object_hook=_embedded)
    if not _is_task(kind):
        raise RtxError(f"A record names {name} as its task, which is none; take out that record.")
    if kind is Classification:
        return _random_texts(batch_size, micro_batches)
    if issubclass(kind, characters.Characters):
        kind = type(kind.__name__, (kind,), {"load": staticmethod(lambda source: play(1000))})
    with patch.dict(stories.EMBEDDED, train=24, validation=6):
        return kind(config, batch_size, micro_batches)


def _random_texts(batch_size: int, micro_batches: int) -> Classification:
    """Labelled texts of random tokens."""
    random = np.random.RandomState(0)

    def texts(n: int) -> Tokens:
        lengths = random.randint(3, 14, size=n)
        ids = random.randint(4, 97, size=lengths.sum()).astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Tokens(ids, offsets, random.randint(0, 2, size=n).astype(np.int64))

    parts = {"train": texts(7), "validation": texts(10), "test": texts(10)}
    return Classification(parts, ("no", "yes"), {"sha256": "0" * 64}, batch_size, micro_batches)


def differences(actual: dict, expected: dict, tolerance: float = 0.0) -> list[str]:
    """Which numbers of golden runs differ, relatively by more than `tolerance`."""
    messages = []
    for name, path in product(expected, PATHS):
        for kind, values in expected[name][path].items():
            numbers = actual.get(name, {}).get(path, {}).get(kind, [])
            if len(numbers) != len(values) or not np.allclose(numbers, values, tolerance, 0):
                messages.append(f"{name}, {path}, {kind}")
    return messages


def unlike(actual: dict, recorded: dict) -> list[str]:
    """Which numbers differ from those that were recorded on another processor.  What is written after steps in 16 bits
    differs by a tenth between two of them, and does not count."""
    messages = []
    for name, run in recorded.items():
        rounded = run["config"]["train"]["precision"] == "bf16"
        wrong = differences(actual, {name: run}, ROUNDED if rounded else TOLERANCE)
        messages += [each for each in wrong if not (rounded and each.endswith("written"))]
    return messages


def measurement_modules() -> list[tuple[str, str]]:
    """(the module, the task) of the recorded measurements."""
    kinds = declaration("MEASUREMENTS").items()
    pairs = set()
    for kind, module in kinds:
        pairs |= {(module, record.task) for record in filter(_belongs_to_study, records.measurements(kind))}
    return sorted((module, task) for module, task in pairs if task)


def changed_since(commit: str, module: str) -> bool:
    """Whether a module of `evaluate` or the study, of which golden runs do not speak, has changed since a commit, by
    more than the names of local variables."""
    path = f"{module.replace('.', '/')}.py"
    before, now = fingerprint.git("show", f"{commit}:{path}"), (REPOSITORY / path).read_text(encoding="utf-8")
    modules_used = {name for name, _ in fingerprint.imports(now) if name.startswith(("rtx_core.evaluate.", "study."))}
    if before is None or fingerprint.compiled(before) != fingerprint.compiled(now):
        return True
    return any(changed_since(commit, module_used) for module_used in modules_used)


def codes_of(runs: Mapping[str, dict]) -> dict[str, str]:
    """{a model, or a module that measures, on a task: the hash of today's code}"""
    pairs = {(run["config"]["architecture"], run["task"]) for run in runs.values()}
    codes = {fingerprint.code_of(*pair): fingerprint.run_hash(*pair) for pair in sorted(pairs)}
    return codes | {f"{module} {task}": fingerprint.module_hash(module, task) for module, task in measurement_modules()}


def unregistered() -> list[str]:
    """Models, and modules that measure, on tasks, whose code is neither accepted nor registered as new."""
    codes = fingerprint.registered()["codes"]
    today = codes_of(fingerprint.golden_runs())
    return [name for name, code_hash in today.items() if code_hash not in codes.get(name, [])[-1:]]


def main(accept: bool = False, new: bool = False) -> None:
    reference, registered = fingerprint.golden_runs(), fingerprint.registered()
    new_runs = missing_runs(reference)
    runs = reference | new_runs if accept or new else reference
    current, codes, commit = golden_runs(runs), codes_of(runs), registered["commit"]
    if new:
        _register(runs, current, {}, {code_name: [today] for code_name, today in codes.items()})
        print("registered as new: records made by the code before are stale now")
        return
    if messages := unlike(current, reference):
        raise RtxError(f"Golden runs give other numbers than recorded: {'; '.join(messages)}; {ADVICE}.")
    if not accept:
        pending = ", ".join([*unregistered(), *new_runs]) or "none"
        print(f"all golden runs give their recorded numbers; waiting for `golden --accept`: {pending}")
        return
    previous, known = _runs_at(commit, runs), _registered_at(commit)
    comparable = {name: current[name] for name in runs if name in previous or name in reference.keys() & known.keys()}
    if messages := differences(previous, comparable):
        raise RtxError(f"Not accepted: here commit {commit[:9]} gives other {'; '.join(messages)}; {ADVICE}.")
    before = {code_name: chain for code_name, chain in registered["codes"].items() if code_name in codes}
    before |= {f"{module} {task}": [] for module, task in measurement_modules() if changed_since(commit, module)}
    for name in new_runs.keys() & previous.keys():  # these have run on the code of that commit, too
        before.setdefault(_code_of(runs[name]), [previous[name]["code"]])
    since = {name: run.get("since") for name, run in reference.items()}
    since |= {name: previous[name]["code"] for name in new_runs.keys() & previous.keys()}
    chains = {}
    for code_name, today in codes.items():
        chain = before.get(code_name, [])
        chains[code_name] = chain if chain[-1:] == [today] else [*chain, today]
    _register(runs, current | reference, since, chains)
    print(f"accepted: the golden runs of commit {commit[:9]}, bit for bit")


def _code_of(run: Mapping) -> str:
    return fingerprint.code_of(run["config"]["architecture"], run["task"])


def _register(runs: Mapping, numbers: Mapping, since: Mapping, codes: Mapping[str, list[str]]) -> None:
    """Write the numbers of golden runs, the first code that each has run on (None: today's), and the codes."""
    lines, head = [], fingerprint.commit()  # before the files below change the tree
    for name, run in runs.items():
        content = {"task": run["task"], "config": run["config"]}
        content |= {"since": since.get(name) or codes[_code_of(run)][-1]}
        content |= {path: numbers[name][path] for path in PATHS}
        lines.append(f"{json.dumps(name)}: {json.dumps(content)}")
    write_atomically(fingerprint.GOLDEN, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
    before = fingerprint.registered()["commit"]
    commit = head["commit"] if head["clean"] else before or head["commit"]
    write_json(fingerprint.SAME_NUMBERS, {"commit": commit, "codes": codes})
    for cached in (fingerprint.registered, fingerprint.golden_runs, fingerprint.since):
        cached.cache_clear()


def with_codes(runs: Mapping[str, dict]) -> dict[str, dict]:
    """Golden runs, each with the hash of the code; without those that this code cannot do, which lacks a switch."""
    results = {}
    for name, run in runs.items():
        try:
            results |= golden_runs({name: run})
        except Exception as error:  # whatever older code makes of newer settings
            print(f"{name} cannot be run: {error}", file=sys.stderr)
            continue
        results[name]["code"] = fingerprint.run_hash(run["config"]["architecture"], run["task"])
    return results


def _registered_at(commit: str) -> dict[str, dict]:
    """The golden runs that were registered by another commit."""
    return json.loads(fingerprint.git("show", f"{commit}:{PACKAGE.name}/records/golden.json") or "{}")


def _runs_at(commit: str, runs: Mapping[str, dict]) -> dict[str, dict]:
    """These golden runs by another commit, by a copy of its package and of its study."""
    show = """import json, sys
from contextlib import suppress
from rtx_core.records import golden
with suppress(ImportError):  # of older code
    from rtx_core.benchmark.bench import register_declared
    register_declared()
print(json.dumps(golden.with_codes(json.load(sys.stdin))))"""
    with tempfile.TemporaryDirectory() as folder:
        archive = str(Path(folder, "then.zip"))
        if fingerprint.git("archive", f"--output={archive}", commit, PACKAGE.name, "study") is None:
            raise RtxError(f"Commit {commit[:9]} cannot be read; fetch the whole history.")
        shutil.unpack_archive(archive, folder)
        options = {"cwd": folder, "env": os.environ | {"PYTHONPATH": folder}, "input": json.dumps(runs).encode()}
        process = subprocess.run([sys.executable, "-c", show], stdout=subprocess.PIPE, check=True, **options)
    return json.loads(process.stdout.splitlines()[-1])
