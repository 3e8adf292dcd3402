"""A module under test: found by its name, made, and run in all the ways that `check` needs."""

import copy
import inspect
import linecache
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.benchmark.applications import Applications, names_by_storage, place
from rtx_core.errors import RtxError, reason, unknown
from rtx_core.models import registry
from rtx_core.models.build import build_model
from rtx_core.models.protocols import is_writer

PASSES = ("num_passes", "num_loops", "n_loops", "num_steps", "n_steps", "num_recurrences", "passes", "loops", "steps")
CACHES = ("past_key_values", "cache", "kv_cache", "past")
SEPARATE = "the looped part as a module, which is called once for each pass"


class Refused(Exception):
    """What a check needs and the module does not have."""


class Subject:
    """The module under test, and the ways to run it."""

    def __init__(self, model: nn.Module, vocab_size: int, length: int, passes: int):
        self.model, self.vocab_size, self.passes = copy.deepcopy(model).eval(), vocab_size, passes
        self.device = next(iter([*model.parameters(), *model.buffers()]), torch.zeros(1)).device
        signature = inspect.signature(model.forward).parameters
        self.passes_argument = passes_argument(model)
        self.cache_argument = next((name for name in CACHES if name in signature), None)
        self.takes_use_cache = "use_cache" in signature
        generator = torch.Generator().manual_seed(0)
        self.ids = torch.randint(vocab_size, (2, length), generator=generator).to(self.device)
        self.targets = torch.randint(vocab_size, (2, length), generator=generator).to(self.device)

    def outputs(self, ids: Tensor, seed: int = 0, model: nn.Module | None = None, **options: Any) -> Any:
        torch.manual_seed(seed)
        return (model or self.model)(ids, **options)

    def logits(self, ids: Tensor, seed: int = 0, model: nn.Module | None = None, **options: Any) -> Tensor:
        """(B, N, V) of ids (B, N)."""
        return logits_in(self.outputs(ids, seed, model, **options), ids)

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

        hooks = [module.register_forward_pre_hook(enter) for module in names]
        hooks += [module.register_forward_hook(leave) for module in names]
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

    def states(self, **options: Any) -> list[Tensor]:
        """The state after each pass."""
        if self.in_depth < 2:
            raise Refused("a loop in depth")
        with self.pass_outputs() as states, torch.no_grad():
            self.logits(self.ids, **options)
        if not states:
            raise Refused(SEPARATE)
        return states


def passes_argument(model: nn.Module) -> str | None:
    """The argument of `forward` that is the number of passes, if there is one."""
    signature = inspect.signature(model.forward).parameters
    return next((name for name in PASSES if name in signature), None)


def logits_in(output: Any, ids: Tensor) -> Tensor:
    """The logits (B, N, V) in what a model gives for ids (B, N)."""
    logits = getattr(output, "logits", output[0] if isinstance(output, tuple) else output)
    if not isinstance(logits, Tensor) or logits.dim() != 3 or logits.shape[:2] != ids.shape:
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise RtxError(f"The model gives {shape} for ids of {tuple(ids.shape)}; expected logits (B, N, V).")
    return logits


def difference(a: Tensor, b: Tensor) -> float:
    """The largest difference, relative to the largest magnitude; infinite where a value is not finite."""
    if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
        return float("inf")
    return float((a.double() - b.double()).abs().max() / max(float(b.double().abs().max()), 1e-12))


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
    if is_writer(model) and hasattr(model, "start"):
        cache = model.start(1)
        steps = [model.advance(ids[:, i], cache) for i in range(ids.shape[1])]
        return torch.stack(steps, 1), cache
    if subject.cache_argument is None:
        raise Refused(f"`start` and `advance`, or an argument of `forward` called {' or '.join(CACHES)}")
    cache, flags = None, {"use_cache": True} if subject.takes_use_cache else {}
    for i in range(ids.shape[1]):
        options: dict[str, Any] = {**flags, subject.cache_argument: cache}
        output = subject.outputs(ids[:, i : i + 1], **options)
        cache, first = getattr(output, "past_key_values", None), output[0] if isinstance(output, tuple) else output
        if isinstance(output, tuple) and len(output) > 1:
            cache = output[1]
        if cache is None:
            raise Refused(f"a cache as the second of what `forward` returns, when given {subject.cache_argument}=None")
        logits = getattr(output, "logits", first)
        steps.append(logits[:, -1])
    return torch.stack(steps, 1), cache


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


def named(address: str, optional: Mapping[str, object] | None = None, /, **settings: object) -> object:
    """What a terminal's word means: `file.py:Name`, `module:Name`, or a registered model with these settings.  The
    `optional` ones go to a class or function that takes them."""
    if ":" in address:
        model = definition(address)
        takes = inspect.signature(model).parameters if callable(model) else {}
        settings |= {name: value for name, value in (optional or {}).items() if name in takes}
        if not settings or not callable(model):
            return model
        if not any(p.kind is p.VAR_KEYWORD for p in takes.values()):
            for name in settings.keys() - takes.keys():
                raise unknown("argument", name, takes)
        made: Any = partial(model, **settings)  # `instance` adds the vocabulary where it is asked for
        made.__name__ = getattr(model, "__name__", address)
        return made
    check_has_class(address)
    if "name" in settings:
        raise unknown("setting", "name", registry.find(address).config.names())
    return build_model(address, seed=0, **settings)


def check_has_class(address: str) -> None:
    """An error for a file without the name of a class in it."""
    if address.endswith(".py"):
        raise RtxError(f"{address:.80} is a file; name the class in it too, as {address:.80}:MyLoop.")


def definition(address: str) -> object:
    """The class or function that `file.py:Name` or `module:Name` means."""
    place, _, name = address.rpartition(":")
    try:
        if place.endswith(".py"):
            linecache.checkcache(place)  # an edited file is another model
            spec = spec_from_file_location(f"file_{Path(place).stem}", place)
            if spec is None or spec.loader is None:
                raise ImportError(f"{place} is no Python file")
            module = sys.modules[spec.name] = module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = import_module(place)
        return getattr(module, name)
    except (OSError, ImportError, AttributeError, ValueError) as error:
        raise RtxError(
            f"{address:.80} cannot be found ({error}); write file.py:Name or package.module:Name."
        ) from error
    except Exception as error:
        raise RtxError(f"{place:.80} cannot be run ({reason(error)}); mend it first.") from error


def instantiate(model: Any, settings: dict[str, Any]) -> object:
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
    signature_parameters = inspect.signature(model).parameters.values()
    needed = [
        p.name for p in signature_parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if unknown := [name for name in needed if name not in offered]:
        raise RtxError(
            f"{getattr(model, '__name__', model)!s:.60} needs {', '.join(unknown)}; "
            "give an instance, or a function of task, vocab_size and max_length."
        )
    module = instantiate(
        model, {name: value for name, value in offered.items() if name in {p.name for p in signature_parameters}}
    )
    if not isinstance(module, nn.Module):
        raise RtxError(f"{getattr(model, '__name__', model)!s:.60} made {module!r:.60}; expected an nn.Module.")
    return module


def vocabulary(module: nn.Module, default: int = 0) -> int:
    """The number of tokens that a module reads: of its configuration, else of its logits or, if that has fewer rows, of
    its largest embedding, which may be a table of positions."""
    if size := getattr(getattr(module, "config", None), "vocab_size", 0):
        return size
    tables = [part.num_embeddings for part in module.modules() if isinstance(part, nn.Embedding)]
    sizes = [max(tables)] if tables else []
    with suppress(Exception), torch.no_grad():  # of a module that does not run, the check says why
        ids = torch.zeros(1, 2, dtype=torch.long, device=next(module.parameters()).device)
        sizes.append(logits_in(copy.deepcopy(module).eval()(ids), ids).shape[-1])
    if not sizes and not default:
        raise RtxError("The vocabulary's size is not to be found in the module; give vocab_size=….")
    return min(sizes, default=default)
