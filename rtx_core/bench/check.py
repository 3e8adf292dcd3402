"""Is a module a loop, and is it sound?  Without training, in seconds.

    rtx.check(model)             any nn.Module that maps token ids (B, N) to logits (B, N, V), or to an object with
                                 `.logits`, or to a tuple whose first entry they are
    rtx.check(make_model)        a function of `task`, `vocab_size` and `max_length` that returns such a module
    rtx check file.py:MyModel    the same from a terminal; also a registered name, with settings as name=value

Each line of the report names what was checked, the number, a verdict and one sentence.  `pass`: as it should be;
`look`: legitimate in some models, so decide; `fail`: wrong in any causal decoder; `not checkable`: what is lacking.
"""

import copy
import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from rtx_core.bench.applications import Applications, names_by_storage, place
from rtx_core.errors import RtxError, reason, unknown
from rtx_core.models import registry
from rtx_core.models.build import build_model

PASS, LOOK, FAIL, UNKNOWN = "pass", "look", "fail", "not checkable"
TOLERANCE = 1e-4  # of float32 logits that should be equal, relative to the largest
PASSES = ("num_passes", "num_loops", "n_loops", "num_steps", "n_steps", "num_recurrences", "passes", "loops", "steps")
CACHES = ("past_key_values", "cache", "kv_cache", "past")
SEPARATE = "the looped part as a module, which is called once for each pass"
SHORTEST, LONGEST = 4, 2**16  # tokens of the sequences
MANY = 64  # passes over which the state may grow
GROWTH = 64.0  # times: a residual stream to which every pass adds as much grows so far


@dataclass(frozen=True)
class Line:
    """The number of one check, its verdict, a sentence, and what was checked."""

    value: object
    verdict: str
    says: str
    check: str = ""


class Report(list[Line]):
    """The lines of a check; prints as a table."""

    @property
    def failed(self) -> list[str]:
        return [line.check for line in self if line.verdict == FAIL]

    def json(self) -> str:
        return json.dumps([asdict(line) for line in self], indent=1)

    def __str__(self) -> str:
        return "\n".join(f"{line.verdict:<13}  {line.check:<22}  {line.says}" for line in self)


class Refused(Exception):
    """What a check needs and the module does not have."""


class Subject:
    """The module under test, and the ways to run it."""

    def __init__(self, model: nn.Module, vocab_size: int, length: int, passes: int):
        self.model, self.vocab_size, self.passes = copy.deepcopy(model).eval(), vocab_size, passes
        self.device = next(iter([*model.parameters(), *model.buffers()]), torch.zeros(1)).device
        signature = inspect.signature(model.forward).parameters
        self.passes_argument = next((name for name in PASSES if name in signature), None)
        self.cache_argument = next((name for name in CACHES if name in signature), None)
        self.takes_use_cache = "use_cache" in signature
        generator = torch.Generator().manual_seed(0)
        self.ids = torch.randint(vocab_size, (2, length), generator=generator).to(self.device)
        self.targets = torch.randint(vocab_size, (2, length), generator=generator).to(self.device)

    def outputs(self, ids: Tensor, seed: int = 0, model: nn.Module | None = None, **more: object) -> object:
        torch.manual_seed(seed)
        return (model or self.model)(ids, **more)

    def logits(self, ids: Tensor, seed: int = 0, model: nn.Module | None = None, **more: object) -> Tensor:
        """(B, N, V) of ids (B, N)."""
        output = self.outputs(ids, seed, model, **more)
        logits = getattr(output, "logits", output[0] if isinstance(output, tuple) else output)
        if not isinstance(logits, Tensor) or logits.dim() != 3 or logits.shape[:2] != ids.shape:
            shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise RtxError(f"The model gives {shape} for ids of {tuple(ids.shape)}; expected logits (B, N, V).")
        return logits

    @contextmanager
    def pass_outputs(self) -> Iterator[list[Tensor]]:
        """What the looped part gives after each pass, as the model runs: the outputs of the last of the outermost
        modules with parameters that are called more than once."""
        counts, order, outputs, inside = {}, [], {}, []
        names = {module: name for name, module in self.model.named_modules() if any(True for _ in module.parameters())}

        def enter(module: nn.Module, arguments: tuple) -> None:
            inside.append(module)

        def leave(module: nn.Module, arguments: tuple, output: object) -> None:
            inside.pop()
            tensor = output[0] if isinstance(output, tuple) else output
            if isinstance(tensor, Tensor) and tensor.is_floating_point():
                counts[module] = counts.get(module, 0) + 1
                order.append((module, tuple(inside)))
                outputs.setdefault(module, []).append(tensor)
                if tensor.requires_grad:
                    tensor.retain_grad()

        hooks = [
            hook(f)
            for m in names
            for hook, f in ((m.register_forward_pre_hook, enter), (m.register_forward_hook, leave))
        ]
        states: list[Tensor] = []
        try:
            yield states
        finally:
            for hook in hooks:
                hook.remove()
        repeated = {module for module, times in counts.items() if times > 1}
        outermost = [module for module, around in order if module in repeated and not repeated & set(around)]
        if outermost:
            most = max(counts[module] for module in outermost)
            states += outputs[[module for module in outermost if counts[module] == most][-1]]

    @cached_property
    def applications(self) -> tuple[dict[str, int], list[str]]:
        """How often a forward pass applies each matrix that is no lookup table, and which of these are applied anew for
        every token, as in a recurrence along the sequence."""
        length = self.ids.shape[1]
        whole, half = (self.counted(n) for n in (length, length // 2))
        return whole, [name for name, times in whole.items() if times - half[name] >= length - length // 2]

    def counted(self, length: int) -> dict[str, int]:
        with torch.no_grad(), Applications(self.model) as seen:
            self.logits(self.ids[:, :length])
        names = names_by_storage(self.model)
        matrices = [place(p) for p in self.model.parameters() if p.dim() > 1 and place(p) not in seen.looked_up]
        return {names[storage][0]: seen.times(storage) for storage in matrices}

    @property
    def in_depth(self) -> int:
        """How often the matrix that is applied most is applied, without those that are applied for every token."""
        whole, along = self.applications
        return max((times for name, times in whole.items() if name not in along), default=0)

    def states(self, **more: object) -> list[Tensor]:
        """The state after each pass."""
        if self.in_depth < 2:
            raise Refused("a loop in depth")
        with self.pass_outputs() as states, torch.no_grad():
            self.logits(self.ids, **more)
        if not states:
            raise Refused(SEPARATE)
        return states


def difference(a: Tensor, b: Tensor) -> float:
    """The largest difference, relative to the largest magnitude; infinite where a value is not finite."""
    if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
        return float("inf")
    return float((a.double() - b.double()).abs().max() / max(float(b.double().abs().max()), 1e-12))


def shares(subject: Subject) -> Line:
    model = subject.model
    shared = [names for names in names_by_storage(model).values() if len(names) > 1]
    total = sum(p.numel() for p in model.parameters() if p.requires_grad)
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    copies: dict[bytes, set[int]] = {}
    names = names_by_storage(model)
    for parameter in model.parameters():
        values = parameter.detach().cpu()
        if values.numel() > 1 and values.dim() > 1 and float(values.float().std()) > 0:
            key = bytes(str(tuple(values.shape)), "ascii") + values.float().numpy().tobytes()
            copies.setdefault(key, set()).add(place(parameter))
    equal = [sorted(names[storage][0] for storage in places) for places in copies.values() if len(places) > 1]
    value = {"trainable": total, "frozen": frozen, "shared": shared, "copies": equal}
    if equal:
        says = f"{' and '.join(equal[0])} hold equal values in separate memory: copied, so training will part them."
        return Line(value, FAIL, says)
    says = f"{total:,} trainable parameters" + f", {frozen:,} frozen" * bool(frozen)
    return Line(value, PASS, f"{says}; {len(shared)} storages have more than one name.")


def loop(subject: Subject) -> Line:
    (whole, along), most = subject.applications, subject.in_depth
    value = {"applications": whole, "along the sequence": along}
    looped = sum(times > 1 for name, times in whole.items() if name not in along)
    if subject.passes and most != subject.passes:
        says = f"No matrix is applied {subject.passes} times, as expected; the most is {most}."
        return Line(value, FAIL, says)
    if most > 1:
        return Line(value, PASS, f"{looped} of {len(whole)} matrices are applied {most} times in a forward pass.")
    if along:
        says = f"{along[0]} is applied once a token: recurrent along the sequence, not in depth."
        return Line(value, LOOK, says)
    return Line(value, LOOK, "No matrix is applied more than once: this is no loop in depth.")


def cost(subject: Subject) -> Line:
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        subject.logits(subject.ids)
    macs = counter.get_total_flops() / 2 / subject.ids.numel()
    return Line(macs, PASS, f"{macs:,.0f} multiply-adds a token over {subject.ids.shape[1]} tokens.")


def state(subject: Subject) -> Line:
    states = subject.states()
    size = states[-1].numel() // subject.ids.numel()
    value = {"numbers": size, "passes": len(states)}
    return Line(value, PASS, f"{len(states)} passes carry {size} numbers a token from one to the next.")


def finite(subject: Subject) -> Line:
    with torch.no_grad():
        logits = subject.logits(subject.ids)
    bad = int((~torch.isfinite(logits)).sum())
    says = f"{bad:,} logits are not finite." if bad else "All logits are finite."
    return Line(bad, FAIL if bad else PASS, says)


def deterministic(subject: Subject) -> Line:
    with torch.no_grad(), Applications(subject.model) as seen:
        first = subject.logits(subject.ids, seed=0)
    with torch.no_grad():
        moved = difference(subject.logits(subject.ids, seed=1), first)
    dropout = [name for name in seen.drawn if "dropout" in name or "bernoulli" in name]
    if moved <= TOLERANCE:
        return Line(moved, PASS, "Two evaluations give the same logits.")
    if dropout:
        says = f"{dropout[0]} still acts in evaluation: dropout is left on."
        return Line(moved, FAIL, says)
    return Line(moved, LOOK, "Two evaluations differ: random numbers are drawn, as for a random state.")


def causality(subject: Subject) -> Line:
    ids, length, worst, where = subject.ids, subject.ids.shape[1], 0.0, None
    with torch.no_grad():
        before = subject.logits(ids)
        for position in sorted({1, length // 2, length - 1}):
            changed = ids.clone()
            changed[:, position] = (changed[:, position] + 1) % subject.vocab_size
            moved = difference(subject.logits(changed)[:, :position], before[:, :position])
            if moved > worst:
                worst, where = moved, position
    if worst > TOLERANCE:
        says = f"Changing token {where} moves logits at earlier positions by {worst:.1e} of the largest: a leak."
        return Line(worst, FAIL, says)
    return Line(worst, PASS, "Changing a later token moves no earlier logit.")


def neighbours(subject: Subject) -> Line:
    with torch.no_grad():
        moved = difference(subject.logits(subject.ids[:1]), subject.logits(subject.ids)[:1])
    if moved > TOLERANCE:
        says = f"A sequence alone and in a batch differ by {moved:.1e} of the largest logit."
        return Line(moved, FAIL, says)
    return Line(moved, PASS, "A sequence gives the same logits alone and in a batch.")


def padding(subject: Subject) -> Line:
    part = subject.ids.shape[1] // 2
    with torch.no_grad():
        moved = difference(subject.logits(subject.ids[:, :part]), subject.logits(subject.ids)[:, :part])
    if moved > TOLERANCE:
        says = f"Tokens appended at the end move logits before them by {moved:.1e} of the largest."
        return Line(moved, FAIL, says)
    return Line(moved, PASS, "Tokens appended at the end move nothing before them.")


def tensors_in(thing: object, seen: set[int] | None = None) -> Iterator[Tensor]:
    """Every tensor that an object holds, in containers and attributes."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, Tensor):
        yield thing
    elif isinstance(thing, (list, tuple, set)):
        for part in thing:
            yield from tensors_in(part, seen)
    elif isinstance(thing, dict):
        yield from tensors_in(list(thing.values()), seen)
    elif hasattr(thing, "__dict__") and not isinstance(thing, (nn.Module, type)):
        yield from tensors_in(list(vars(thing).values()), seen)


def token_by_token(subject: Subject, ids: Tensor) -> tuple[Tensor, object]:
    """(logits (1, N, V), the cache) of a sequence (1, N) read one token at a time."""
    model, steps = subject.model, []
    if hasattr(model, "start") and hasattr(model, "advance"):
        cache = model.start(1)
        steps = [model.advance(ids[:, i], cache) for i in range(ids.shape[1])]
        return torch.stack(steps, 1), cache
    if subject.cache_argument is None:
        raise Refused(f"`start` and `advance`, or an argument of `forward` called {' or '.join(CACHES)}")
    cache, more = None, {"use_cache": True} if subject.takes_use_cache else {}
    for i in range(ids.shape[1]):
        output = subject.outputs(ids[:, i : i + 1], **more | {subject.cache_argument: cache})
        cache = getattr(output, "past_key_values", None)
        if isinstance(output, tuple) and len(output) > 1:
            cache = output[1]
        if cache is None:
            raise Refused(f"a cache as the second of what `forward` returns, when given {subject.cache_argument}=None")
        logits = getattr(output, "logits", output[0] if isinstance(output, tuple) else output)
        steps.append(logits[:, -1])
    return torch.stack(steps, 1), cache


def cached(subject: Subject) -> Line:
    with torch.no_grad():
        steps, _ = token_by_token(subject, subject.ids[:1])
        moved = difference(steps, subject.logits(subject.ids[:1]))
    if moved > 10 * TOLERANCE:
        says = f"Generation with the cache differs from a whole forward pass by {moved:.1e} of the largest logit."
        return Line(moved, FAIL, says)
    return Line(moved, PASS, "Token by token with the cache gives the logits of a whole forward pass.")


def cache_size(subject: Subject) -> Line:
    length = subject.ids.shape[1]
    with torch.no_grad():
        sizes = [
            sum(t.numel() * t.element_size() for t in tensors_in(token_by_token(subject, subject.ids[:1, :n])[1]))
            for n in (length // 2, length)
        ]
    each = (sizes[1] - sizes[0]) / (length - length // 2)
    return Line(each, PASS, f"The cache grows by {each:,.0f} bytes with each token.")


def more_passes(subject: Subject) -> Line:
    if not subject.passes_argument:
        raise Refused(f"an argument of `forward` for the number of passes, such as {PASSES[0]}")
    few = subject.passes or max(2, len(subject.states()))
    short, long = (subject.states(**{subject.passes_argument: n}) for n in (few, 2 * few))
    if len(short) != few or len(long) != 2 * few:
        says = f"Asked for {few} and {2 * few} passes, the looped part ran {len(short)} and {len(long)} times."
        return Line([len(short), len(long)], FAIL, says)
    moved = max(difference(a, b) for a, b in zip(short, long))
    if moved > TOLERANCE:
        says = (
            f"The first {few} of {2 * few} passes are not those of {few} ({moved:.1e}): a pass knows how many follow."
        )
        return Line(moved, LOOK, says)
    return Line(moved, PASS, f"The first {few} of {2 * few} passes are those of {few}.")


def growth(subject: Subject) -> Line:
    passes = {subject.passes_argument: MANY} if subject.passes_argument else {}
    sizes = [float(s.double().square().mean().sqrt()) for s in subject.states(**passes)]
    grown, finite_all = sizes[-1] / max(sizes[0], 1e-12), all(size < float("inf") for size in sizes)
    verdict = FAIL if not finite_all else PASS if 1 / GROWTH < grown < GROWTH else LOOK
    says = f"From pass 1 to {len(sizes)} the state's size changes by a factor of {grown:.3g}."
    return Line({"passes": len(sizes), "factor": grown}, verdict, says)


def trained(subject: Subject) -> list[Tensor]:
    """The state after each pass with its gradient, of one backward pass in training mode."""
    subject.model.train().zero_grad(set_to_none=True)
    try:
        with subject.pass_outputs() as states:
            logits = subject.logits(subject.ids)
        loss = F.cross_entropy(logits.float().flatten(0, 1), subject.targets.flatten())
        if not loss.requires_grad:
            raise RtxError("No gradient leaves the loss: the model runs without gradients, or nothing is trainable.")
        loss.backward()
        return states
    finally:
        subject.model.eval()


def gradients(subject: Subject) -> Line:
    trained(subject)
    named = [(name, p.grad) for name, p in subject.model.named_parameters() if p.requires_grad]
    unused = [name for name, gradient in named if gradient is None]
    zero = [name for name, gradient in named if gradient is not None and not bool(gradient.any())]
    value = {"without gradient": unused, "zero": zero}
    if unused:
        return Line(value, FAIL, f"No gradient reaches {', '.join(unused[:3])}: the loss does not depend on it.")
    if zero:
        return Line(value, LOOK, f"The gradient of {', '.join(zero[:3])} is zero at this initialization.")
    return Line(value, PASS, f"A gradient reaches all {len(named)} parameters.")


def gradients_by_pass(subject: Subject) -> Line:
    if subject.in_depth < 2:
        raise Refused("a loop in depth")
    if not (states := trained(subject)):
        raise Refused(SEPARATE)
    reached = [r for r, s in enumerate(states, 1) if s.grad is not None and bool(s.grad.any())]
    missing = [r for r in range(1, len(states) + 1) if r not in reached]
    if missing:
        which = ", ".join(map(str, missing))
        says = f"No gradient flows back through pass {which} of {len(states)}: truncated, or detached."
        return Line({"missing": missing}, FAIL, says)
    return Line({"missing": []}, PASS, f"The gradient flows back through all {len(states)} passes.")


def half_precision(subject: Subject) -> Line:
    small = copy.deepcopy(subject.model).to(torch.bfloat16)
    with torch.no_grad():
        exact = subject.logits(subject.ids)
        try:
            rounded = subject.logits(subject.ids, model=small)
        except RuntimeError as error:
            first = str(error).partition("\n")[0]
            return Line(None, LOOK, f"The model does not run in bf16: {first:.120}.")
    moved = float((rounded.double() - exact.double()).norm() / exact.double().norm())
    verdict = PASS if moved < 0.05 else LOOK
    return Line(moved, verdict, f"In bf16 the logits are off by {100 * moved:.1f} % of their size.")


def memory(subject: Subject) -> Line:
    kept: dict[int, int] = {}
    weights = names_by_storage(subject.model)

    def pack(tensor: Tensor) -> Tensor:
        if place(tensor) not in weights:
            kept[place(tensor)] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        trained(subject)
    parameters = sum(p.numel() * p.element_size() for p in subject.model.parameters() if p.requires_grad)
    each = sum(kept.values()) / subject.ids.numel()
    value = {"activations a token": each, "parameters, gradients and AdamW": 4 * parameters}
    says = f"A training step keeps {each / 1024:,.1f} KiB a token, and {4 * parameters / 2**20:,.1f} MiB for AdamW."
    return Line(value, PASS, says)


CHECKS: dict[str, Callable[[Subject], Line]] = {
    "parameters": shares,
    "loop": loop,
    "multiply-adds": cost,
    "carried state": state,
    "deterministic": deterministic,
    "causality": causality,
    "batch neighbours": neighbours,
    "padding": padding,
    "cached generation": cached,
    "cache bytes a token": cache_size,
    "passes at test time": more_passes,
    "growth of the state": growth,
    "gradients": gradients,
    "gradient by pass": gradients_by_pass,
    "bf16": half_precision,
    "training memory": memory,
}


def check(model: object, /, *, vocab_size: int = 0, length: int = 32, passes: int = 0) -> Report:
    """Check a module, a class or a function that makes one; nothing is trained, and the module stays as it is.

    `vocab_size` is found in the module where it is 0.  `passes`: how often the looped weights should be applied.
    """
    for name, value, least in (("vocab_size", vocab_size, 0), ("length", length, SHORTEST), ("passes", passes, 0)):
        if type(value) is not int or not least <= value <= LONGEST:
            raise RtxError(f"{name} is {value!r:.60}; expected a whole number from {least} to {LONGEST:,}.")
    module = instance(model, vocab_size or 64, length)
    try:
        subject = Subject(module, vocab_size or vocabulary(module), length, passes)
    except (RuntimeError, TypeError) as error:
        raise RtxError(
            f"The model cannot be copied ({reason(error)}); keep locks, files and graphs outside."
        ) from error
    report = Report()
    with torch.random.fork_rng(devices=[]):
        report.append(checked("logits", finite, subject))
        for name, one in CHECKS.items():
            if report[0].verdict == PASS:
                report.append(checked(name, one, subject))
            else:
                report.append(Line(None, UNKNOWN, "Not checkable: needs finite logits.", name))
    return report


def checked(name: str, one: Callable[[Subject], Line], subject: Subject) -> Line:
    """A line of the report; what the module lacks or raises ends this line alone."""
    try:
        return replace(one(subject), check=name)
    except Refused as lacking:
        return Line(None, UNKNOWN, f"Not checkable: needs {lacking}.", name)
    except RtxError as error:
        return Line(None, FAIL, str(error), name)
    except Exception as error:
        first = str(error).partition("\n")[0]
        return Line(None, FAIL, f"The model stopped: {type(error).__name__}: {first:.160}", name)


def named(address: str, /, **settings: object) -> object:
    """What a terminal's word means: `file.py:Name`, `module:Name`, or a registered model with these settings."""
    place, colon, name = address.rpartition(":")
    if not colon:
        if "name" in settings:
            raise unknown("setting", "name", registry.find(address).config.names())
        return build_model(address, seed=0, **settings)
    try:
        if place.endswith(".py"):
            spec = spec_from_file_location(Path(place).stem, place)
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = import_module(place)
        model = getattr(module, name)
    except (OSError, ImportError, AttributeError, ValueError) as error:
        raise RtxError(
            f"{address:.80} cannot be found ({error}); write file.py:Name or package.module:Name."
        ) from error
    except Exception as error:
        raise RtxError(f"{place:.80} cannot be run ({reason(error)}); mend it first.") from error
    return made(model, settings) if settings else model


def made(model: Callable, settings: dict[str, object]) -> object:
    """What a class or function makes of these settings."""
    if not callable(model):
        raise RtxError(f"Got {model!r:.60}; expected a class, or a function that makes an nn.Module.")
    try:
        return model(**settings)
    except Exception as error:
        named = getattr(model, "__name__", model)
        raise RtxError(
            f"{named!s:.60} cannot be made with {', '.join(settings) or 'no argument'} ({reason(error)})."
        ) from error


def instance(model: object, vocab_size: int, length: int) -> nn.Module:
    """The module itself, or one made by a class or function: of nothing, or of MAD-Lab's arguments by their names."""
    if isinstance(model, nn.Module):
        return model
    if not callable(model):
        raise RtxError(f"Got {model!r:.60}; expected an nn.Module, a class, or a function that makes one.")
    offered = {"task": "in-context-recall", "vocab_size": vocab_size, "max_length": length}
    wanted = inspect.signature(model).parameters.values()
    needed = [p.name for p in wanted if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if unknown := [name for name in needed if name not in offered]:
        raise RtxError(
            f"{getattr(model, '__name__', model)!s:.60} needs {', '.join(unknown)}; "
            "give an instance, or a function of task, vocab_size and max_length."
        )
    module = made(model, {name: value for name, value in offered.items() if name in {p.name for p in wanted}})
    if not isinstance(module, nn.Module):
        raise RtxError(f"{getattr(model, '__name__', model)!s:.60} made {module!r:.60}; expected an nn.Module.")
    return module


def vocabulary(module: nn.Module) -> int:
    """The number of tokens that a module reads, from its configuration or its largest embedding."""
    size = getattr(getattr(module, "config", None), "vocab_size", 0)
    tables = [part.num_embeddings for part in module.modules() if isinstance(part, nn.Embedding)]
    if not size and not tables:
        raise RtxError("The vocabulary's size is not to be found in the module; give vocab_size=….")
    return size or max(tables)
