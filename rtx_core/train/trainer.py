"""The one training loop, for encoders and decoders alike: (model, task, config, seed) -> best weights and history.

It knows neither text nor architecture: the task gives batches and says what a model's loss on them is.
"""

import math
import operator
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from rtx_core.errors import RtxError
from rtx_core.fast import accelerate
from rtx_core.fast.graphs import GraphedStep
from rtx_core.models.packed import pad_to_multiple
from rtx_core.progress import Interrupted, Interrupts
from rtx_core.progress import say as print_line
from rtx_core.train import checkpoint
from rtx_core.train.config import TrainConfig, learning_rate, stops_early
from rtx_core.train.device import has_bf16, keep_heap
from rtx_core.train.optimizer import optimizer_of

CHECKPOINT_SECONDS = 120  # a killed run loses at most this much work
REPORT_SECONDS = 20  # between two lines of progress
SHAPES = (64, 128, 256, 512, 1024)  # tokens of the longest text, where shapes are compiled


@dataclass
class Progress:
    """Everything of a run that is not a tensor: what a checkpoint keeps as JSON."""

    step: int = 0  # optimizer steps done
    examples: int = 0  # texts or tokens seen in them
    seconds: float = 0.0  # spent training and validating, restarts included
    history: list[dict] = field(default_factory=list)  # one row an evaluation
    # the row of lowest validation loss and, where there are classes, that of highest accuracy, whose weights are kept
    best: dict[str, dict] = field(default_factory=dict)  # column -> its value there, and the step
    # of the task's loss (and right answers) since the last evaluation
    sums: list[float] = field(default_factory=list)
    seen: int = 0  # examples since then
    codes: list[str] = field(default_factory=list)  # hashes of the code that worked on this run, in turn

    def selected(self, metric: str) -> dict:
        """Step and value of the best row by a column of the history."""
        return {"step": self.best[metric]["step"], metric: self.best[metric]["value"]}


def rng_streams(seed: int) -> dict[str, int]:
    """Three independent streams.  Two models trained with one seed see the same batches in the same order: a pair."""
    return {"initialization": seed, "order": 10_000 + seed, "dropout": 20_000 + seed}


def autocast_of(precision: str, device: torch.device) -> torch.autocast:
    """What bf16 means: products of 16 bits, where the machine has them."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16" and has_bf16(device))


class OptimizerStep:
    """How a model without a fast path of its own is trained: as it is written."""

    def begin(self, seed: int, step: int) -> None:
        pass

    def update(self, model: nn.Module, optimizer, clip_norm: float) -> None:
        """Clip to a whole norm, step, and leave no gradient."""
        nn.utils.clip_grad_norm_(model.parameters(), clip_norm, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def finish(self) -> None:
        pass


def train(
    model: nn.Module,
    task,
    config: TrainConfig,
    seed: int,
    device: torch.device,
    checkpoint_path: Path,
    code_hash: str = "",
    say: Callable[[str], None] = print_line,
    fast: bool = True,
    compile: str = "",
    max_steps: int | None = None,
    interrupts: Interrupts | None = None,
) -> tuple[Progress, dict[str, dict[str, Tensor]]]:
    """Train `model`, which ends with its last weights; returns the progress and {"validation_loss": best weights}.

    Of a task with classes also those of highest "validation_accuracy"; where the last are the best they are left out.
    Resumes from `checkpoint_path` if that file exists, with as many threads: on a CPU the numbers are those of an
    uninterrupted run, bit for bit.  `fast=False` leaves the fast path aside.  `compile` is a mode of torch.compile, of
    which "reduce-overhead" records CUDA graphs, or "graph": a CUDA graph of the step as it is written (`fast.graphs`).
    `max_steps` ends the run early, on the same schedule of the rate.  A signal of `interrupts` ends it between two
    steps or in an evaluation, with a checkpoint (`Interrupted`).
    """
    keep_heap()
    model.to(device).train()
    path = (accelerate(model) if fast else None) or OptimizerStep()
    try:
        loop = Loop(model, task, config, seed, path, say, compile, interrupts)
        loop.resume(checkpoint_path, code_hash)
        progress, best = loop.run(max_steps)
    finally:
        path.finish()
    return progress, {metric: best[metric] for metric, row in progress.best.items() if row["step"] < progress.step}


class Loop:
    """One run in progress, of a model that lies on its device and is prepared by its fast path."""

    def __init__(self, model, task, config: TrainConfig, seed: int, path, say=print_line, compile="", interrupts=None):
        self.model, self.task, self.config, self.seeds = model, task, config, rng_streams(seed)
        self.path, self.say, self.compile = path, say, compile
        self.interrupts = interrupts or Interrupts()  # without a `with` block these never come
        self.device = next(model.parameters()).device
        self.autocast = autocast_of(config.precision, self.device)
        if config.precision == "bf16" and not has_bf16(self.device):
            say("this processor has no bf16 products: everything is computed in fp32")
        if config.optimizer != "adamw" and not isinstance(path, OptimizerStep):
            got = f"optimizer={config.optimizer!r} got a model {type(model).__name__}, whose fast step is AdamW's"
            raise RtxError(f"{got}; expected 'adamw', or training with fast=False.")
        self.optimizer = optimizer_of(model, config)
        if compile == "graph" and (self.device.type != "cuda" or config.micro_batches > 1):
            got = f"compile='graph' got the device {self.device.type!r} and micro_batches={config.micro_batches}"
            raise RtxError(f"{got}; expected 'cuda' and 1. Leave out compile.")
        self.worker = torch.compile(model, mode=compile) if compile not in ("", "graph") else model
        self.backward = GraphedStep(model, self.backward) if compile == "graph" else self.backward
        self.total = config.total_steps(task.steps_per_epoch)
        self.ready, self.ahead = {}, self.device.type == "cuda"  # the next step's batches, and whether they are made
        self.progress, self.best = Progress(), {}
        # Sums stay on the device and are read when a line is printed; in float64 they do not depend on when that is.
        self.sums: Tensor | float = 0.0
        self.clock = Clock(self.progress)
        torch.manual_seed(self.seeds["dropout"])

    def resume(self, checkpoint_path: Path, code_hash: str = "") -> None:
        """Go on from this checkpoint, if it is there, and write later ones to its place."""
        self.checkpoint_path = checkpoint_path
        if saved := checkpoint.load(checkpoint_path, self.model, self.optimizer):
            tensors, state = saved
            with checkpoint.readable(checkpoint_path):
                for name, tensor in tensors.items():
                    metric, name = name.split("/", 1)
                    self.best.setdefault(metric, {})[name] = tensor
                self.progress = Progress(**state["progress"])
                if missing := self.progress.best.keys() - self.best.keys():
                    raise LookupError(f"it has no weights of the best {', '.join(missing)}")
                self.clock = Clock(self.progress)
                torch.set_num_threads(state.get("threads", torch.get_num_threads()))
            self.say(f"resumed at step {self.progress.step:,} of {self.total:,}; threads: {torch.get_num_threads()}")
        if code_hash and code_hash not in self.progress.codes:
            self.progress.codes.append(code_hash)

    def run(self, max_steps: int | None = None) -> tuple[Progress, dict[str, dict[str, Tensor]]]:
        """Train to the end, or to step `max_steps`; a signal saves a checkpoint and raises `Interrupted`."""
        p = self.progress
        try:
            with self.interrupts.deferred():
                self.steps(min(self.total, max_steps or self.total))
        except Interrupted:
            if not p.step:
                raise
            self.save()
            raise Interrupted(f"stopped at step {p.step:,} of {self.total:,}, which is saved") from None
        return p, self.best

    def steps(self, end: int) -> None:
        """Optimizer steps up to step `end`, with the evaluations, checkpoints and lines that are due between them."""
        p, config = self.progress, self.config
        while True:
            if self.evaluation_due():
                if not p.history:  # which may take longer than all steps before
                    self.say(f"step {p.step:,}/{self.total:,} · evaluating")
                line = self.evaluate()
                self.save()
                self.say(line)
            if p.step >= end or stops_early(config, p.history):
                return
            self.interrupts.check()
            self.step(learning_rate(config, p.step, p.history, self.total))
            self.clock.tick()
            if self.clock.last - self.clock.reported >= REPORT_SECONDS and not self.evaluation_due():
                self.collect()
                self.clock.reported = self.clock.last
                if self.clock.last - self.clock.saved >= CHECKPOINT_SECONDS:
                    self.save()
                self.say(self.line())

    def evaluation_due(self) -> bool:
        """Whether the weights of this step are to be evaluated, and have not been: a signal may have come between."""
        step, history = self.progress.step, self.progress.history
        intervals = [n for n in (self.total, self.task.steps_per_epoch, self.config.eval_every) if n]
        last_evaluated = history[-1]["step"] if history else 0
        return step != last_evaluated and any(step % n == 0 for n in intervals)

    def step(self, rate: float) -> None:
        """One optimizer step: forward, backward, clip, update."""
        p = self.progress
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.path.begin(self.seeds["dropout"], p.step)
        if hasattr(self.model, "begin_step"):
            self.model.begin_step(self.seeds["dropout"], p.step)
        step_examples, sums, cuda_graphs = self.task.examples(p.step), 0.0, self.compile == "reduce-overhead"
        if cuda_graphs and self.config.micro_batches > 1:  # a replayed graph writes over what it gave: sum elsewhere
            for parameter in self.model.parameters():
                parameter.grad = torch.zeros_like(parameter)
        for inputs, targets in self.ready.pop(p.step, None) or self.batches(p.step):
            if cuda_graphs:
                torch.compiler.cudagraph_mark_step_begin()
            sums = sums + self.backward(inputs, targets, step_examples)
        self.path.update(self.model, self.optimizer, self.config.clip_norm)
        self.sums = self.sums + sums
        p.step += 1
        p.examples += step_examples
        p.seen += step_examples
        if self.ahead and p.step < self.total:  # while the device computes
            self.ready = {p.step: self.batches(p.step)}

    def backward(self, inputs, targets: Tensor, step_examples: int) -> Tensor:
        """Add a micro-batch's gradients to `.grad`; gives the sums of its loss."""
        with self.autocast:
            objective, sums = self.task.loss(self.worker, inputs, targets, step_examples)
        objective.backward()
        return sums

    def batches(self, step: int) -> list:
        """The micro-batches of a step on the device, to a GPU from pinned memory, so that no one waits for the copy."""
        micro_batches = []
        for batch in self.task.step(self.seeds["order"], step):
            if self.compile and self.task.classes:  # few shapes, each compiled once
                batch = pad_to_multiple(batch[0], SHAPES[0], SHAPES), batch[1]
            batch = [part.pin_memory() for part in batch] if self.ahead else batch
            micro_batches.append([part.to(self.device, non_blocking=self.ahead) for part in batch])
        return micro_batches

    def collect(self) -> None:
        """Bring the sums from the device into the progress."""
        if isinstance(self.sums, Tensor):
            sums, p = self.sums.tolist(), self.progress
            p.sums = [a + b for a, b in zip(p.sums or [0.0] * len(sums), sums)]
            self.sums = 0.0

    def evaluate(self) -> str:
        """Add a row to the history, and keep the weights if they are the best so far; gives the line that says it."""
        self.collect()
        p, per_epoch = self.progress, self.task.steps_per_epoch
        rate = learning_rate(self.config, p.step - 1, p.history, self.total)
        row = {"step": p.step} | ({"epoch": p.step / per_epoch} if per_epoch else {"tokens": p.examples})
        row |= {"seconds": p.seconds, "learning_rate": rate, **self.task.summary(p.sums, p.seen)}
        with self.interrupts.deferred(False):  # nothing has changed until the row is complete
            row |= self.task.evaluate(self.model, self.device, self.autocast)
        loss = row["validation_loss"]
        if not math.isfinite(loss):
            raise RtxError(f"Training diverged: the validation loss is {loss} at step {p.step:,}; lower learning_rate.")
        p.history.append(row)
        p.sums, p.seen = [], 0
        is_better = {"validation_loss": operator.lt}
        is_better |= {"validation_accuracy": operator.gt} if self.task.classes else {}
        for metric, than in is_better.items():
            if metric not in p.best or than(row[metric], p.best[metric]["value"]):
                p.best[metric] = {"value": row[metric], "step": p.step}
                self.best[metric] = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        self.clock.add_evaluation()
        entries = [f"{k.replace('_', ' ')} {v:.4f}" for k, v in row.items() if k.startswith("validation")]
        return f"{self.line(row['train_loss'])} · {', '.join(entries)}"

    def line(self, loss: float | None = None) -> str:
        p, clock = self.progress, self.clock
        if loss is None:
            loss = self.task.summary(p.sums, p.seen)["train_loss"]
        elapsed = max(1e-9, clock.last - clock.begin)
        speed = f"{(p.examples - clock.first_examples) / elapsed:,.0f} {self.task.unit}/s"
        interval = self.config.eval_every or self.task.steps_per_epoch or self.total
        remaining = (self.total - p.step) * (elapsed - clock.evaluating) / max(1, p.step - clock.first_step)
        remaining = (remaining - (p.step - self.total) // interval * clock.evaluating / max(1, clock.evaluations)) / 60
        return f"step {p.step:,}/{self.total:,} · loss {loss:.4f} · {speed} · {remaining:.0f} min left"

    def save(self) -> None:
        self.collect()
        state = {"progress": vars(self.progress), "threads": torch.get_num_threads()}
        best = {f"{metric}/{name}": tensor for metric, weights in self.best.items() for name, tensor in weights.items()}
        checkpoint.save(self.checkpoint_path, self.model, self.optimizer, best, state)
        self.clock.saved = time.perf_counter()


class Clock:
    """When this process began, and wrote its last line and checkpoint; `progress.seconds` goes on across restarts."""

    def __init__(self, progress: Progress):
        self.progress, self.first_step, self.first_examples = progress, progress.step, progress.examples
        self.begin = self.reported = self.saved = self.last = time.perf_counter()
        self.evaluating, self.evaluations = 0.0, 0  # seconds spent in so many evaluations

    def tick(self) -> None:
        now = time.perf_counter()
        self.progress.seconds += now - self.last
        self.last = now

    def add_evaluation(self) -> None:
        """A tick at the end of an evaluation."""
        before = self.last
        self.tick()
        self.evaluating += self.last - before
        self.evaluations += 1
