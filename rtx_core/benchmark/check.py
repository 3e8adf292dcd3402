"""Is a module a loop, and is it sound?  Without training, in seconds.

    rtx.check(model)             any nn.Module that maps token ids (B, N) to logits (B, N, V), or to an object with
                                 `.logits`, or to a tuple whose first entry they are
    rtx.check(make_model)        a function of `task`, `vocab_size` and `max_length` that returns such a module
    rtx check file.py:MyModel    the same from a terminal; also a registered name, with settings as name=value

Each line of the report names what was checked, the number, a verdict and one sentence.  `pass`: as it should be;
`look`: legitimate in some models, so decide; `fail`: wrong in any causal decoder; `not checkable`: what is lacking.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from rtx_core.benchmark.applications import Applications, names_by_storage, place
from rtx_core.benchmark.subject import (
    PASSES,
    SEPARATE,
    Refused,
    Subject,
    difference,
    instance,
    tensors_in,
    token_by_token,
    trained,
    vocabulary,
)
from rtx_core.errors import RtxError, reason, whole_number

PASS, LOOK, FAIL, UNKNOWN = "pass", "look", "fail", "not checkable"
TOLERANCE = 1e-4  # of float32 logits that should be equal, relative to the largest
SHORTEST, LONGEST = 4, 2**16  # tokens of the sequences
MANY = 64  # passes over which the state may grow
GROWTH = 256.0  # times: four times as far as a residual stream grows to which every pass adds as much
USUAL, FAR = 0.02, 5.0  # the standard deviation with which this library's models begin, and how many times is far


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


def shares(subject: Subject) -> Line:
    model = subject.model
    shared = [names for names in names_by_storage(model).values() if len(names) > 1]
    total = sum(p.numel() for p in model.parameters() if p.requires_grad)
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    copies: dict[bytes, set[int]] = {}
    names = names_by_storage(model)
    for parameter in model.parameters():
        values = parameter.detach().cpu()
        if values.dim() > 1 and values.unique().numel() > 2:  # two constants or two identities are no copies
            key = bytes(str(tuple(values.shape)), "ascii") + values.float().numpy().tobytes()
            copies.setdefault(key, set()).add(place(parameter))
    equal = [sorted(names[storage][0] for storage in places) for places in copies.values() if len(places) > 1]
    tables = {part.weight for part in model.modules() if isinstance(part, nn.Embedding)}
    embeddings = sum(table.numel() for table in tables)
    value = {"trainable": total, "frozen": frozen, "embeddings": embeddings, "shared": shared, "copies": equal}
    if equal:
        says = f"{' and '.join(equal[0])} hold equal values in separate memory: copied, so training will part them."
        return Line(value, FAIL, says)
    says = f"{total:,} trainable parameters" + f", {frozen:,} frozen" * bool(frozen)
    says += f", {embeddings:,} of all in embeddings" * bool(embeddings)
    return Line(value, PASS, f"{says}; {len(shared)} storages have more than one name.")


def initialization(subject: Subject) -> Line:
    """Of the tables that token ids are looked up in; a model that begins far from the others may only begin badly."""
    tables = [part.weight for part in subject.model.modules() if isinstance(part, nn.Embedding)]
    if not tables:
        raise Refused("an nn.Embedding of the tokens")
    deviation = float(max(tables, key=len).detach().float().std())
    says = f"Embeddings have a standard deviation of {deviation:.2g}"
    if USUAL / FAR <= deviation <= USUAL * FAR:
        return Line(deviation, PASS, f"{says}.")
    says += f", those of this library's models {USUAL}: the initialization alone can decide a short training."
    return Line(deviation, LOOK, says)


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
    counter, fused = FlopCounterMode(display=False), torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # a fused layer of torch.nn is not counted
    try:
        with torch.no_grad(), counter:
            subject.logits(subject.ids)
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
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
    ids, length, worst, where, when = subject.ids, subject.ids.shape[1], 0.0, None, ""
    training = copy.deepcopy(subject.model).train()
    with torch.no_grad():
        for model, said in ((subject.model, ""), (training, " in training mode")):
            before = subject.logits(ids, model=model)
            for position in sorted({1, length // 2, length - 1}):
                changed = ids.clone()
                changed[:, position] = (changed[:, position] + 1) % subject.vocab_size
                moved = difference(subject.logits(changed, model=model)[:, :position], before[:, :position])
                if moved > worst:
                    worst, where, when = moved, position, said
    fails = f"Changing token {where} moves logits at earlier positions{when} by {worst:.1e} of the largest: a leak."
    return equal(worst, fails, "Changing a later token moves no earlier logit, in evaluation or in training.")


def equal(moved: float, fails: str, passes: str, limit: float = TOLERANCE) -> Line:
    """A line on logits that should not move."""
    return Line(moved, FAIL, fails) if moved > limit else Line(moved, PASS, passes)


def neighbours(subject: Subject) -> Line:
    with torch.no_grad():
        moved = difference(subject.logits(subject.ids[:1]), subject.logits(subject.ids)[:1])
    fails = f"A sequence alone and in a batch differ by {moved:.1e} of the largest logit."
    return equal(moved, fails, "A sequence gives the same logits alone and in a batch.")


def padding(subject: Subject) -> Line:
    part = subject.ids.shape[1] // 2
    with torch.no_grad():
        moved = difference(subject.logits(subject.ids[:, :part]), subject.logits(subject.ids)[:, :part])
    fails = f"Tokens appended at the end move logits before them by {moved:.1e} of the largest."
    return equal(moved, fails, "Tokens appended at the end move nothing before them.")


def cached(subject: Subject) -> Line:
    with torch.no_grad():
        steps, _ = token_by_token(subject, subject.ids[:1])
        moved = difference(steps, subject.logits(subject.ids[:1]))
    fails = f"Generation with the cache differs from a whole forward pass by {moved:.1e} of the largest logit."
    passes = "Token by token with the cache gives the logits of a whole forward pass."
    return equal(moved, fails, passes, 10 * TOLERANCE)


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
    passes = subject.passes or max(2, len(subject.states()))
    short, long = (subject.states(**{subject.passes_argument: n}) for n in (passes, 2 * passes))
    inner = max(1, len(short) // passes)  # of a loop within a pass
    if len(short) != inner * passes or len(long) != 2 * inner * passes:
        says = f"Asked for {passes} and {2 * passes} passes, the looped part ran {len(short)} and {len(long)} times."
        return Line([len(short), len(long)], FAIL, says)
    moved = max(difference(a, b) for a, b in zip(short, long))
    if moved > TOLERANCE:
        says = f"The first {passes} of {2 * passes} passes are not those of {passes} ({moved:.1e})"
        says += ": a pass knows how many follow."
        return Line(moved, LOOK, says)
    return Line(moved, PASS, f"The first {passes} of {2 * passes} passes are those of {passes}.")


def growth(subject: Subject) -> Line:
    passes = {subject.passes_argument: MANY} if subject.passes_argument else {}
    sizes = [float(s.double().square().mean().sqrt()) for s in subject.states(**passes)]
    grown, finite_all = sizes[-1] / max(sizes[0], 1e-12), all(size < float("inf") for size in sizes)
    verdict = FAIL if not finite_all else PASS if 1 / GROWTH < grown < GROWTH else LOOK
    says = f"From pass 1 to {len(sizes)} the state's size changes by a factor of {grown:.3g}."
    return Line({"passes": len(sizes), "factor": grown}, verdict, says)


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
        missing_names = ", ".join(map(str, missing))
        says = f"No gradient flows back through pass {missing_names} of {len(states)}: truncated, or detached."
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
    saved: dict[int, int] = {}
    weights = names_by_storage(subject.model)

    def pack(tensor: Tensor) -> Tensor:
        if place(tensor) not in weights:
            saved[place(tensor)] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        trained(subject)
    parameters = sum(p.numel() * p.element_size() for p in subject.model.parameters() if p.requires_grad)
    each = sum(saved.values()) / subject.ids.numel()
    value = {"activations a token": each, "parameters, gradients and AdamW": 4 * parameters}
    says = f"A training step keeps {each / 1024:,.1f} KiB a token, and {4 * parameters / 2**20:,.1f} MiB for AdamW."
    return Line(value, PASS, says)


CHECKS: dict[str, Callable[[Subject], Line]] = {
    "parameters": shares,
    "initialization": initialization,
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
OF_WEIGHTS = (shares, initialization)  # which need no forward pass


def check(model: object, /, *, vocab_size: int = 0, length: int = 64, passes: int = 0) -> Report:
    """Check a module, a class or a function that makes one; nothing is trained, and the module stays as it is.

    `vocab_size` is found in the module where it is 0.  `passes`: how often the looped weights should be applied.
    """
    for name, value, least in (("vocab_size", vocab_size, 0), ("length", length, SHORTEST), ("passes", passes, 0)):
        whole_number(name, value, least, LONGEST)
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
        has_logits = report[0].verdict == PASS
        report += [checked(name, one, subject) for name, one in CHECKS.items() if has_logits or one in OF_WEIGHTS]
        if not has_logits:
            report.append(Line(None, UNKNOWN, "Not checkable: they need finite logits.", "all other checks"))
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
