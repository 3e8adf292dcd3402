"""Inside a looped decoder: what its heads do in each pass, what its state holds, and where the state goes.

steps, logits, changed_share           the state, and what the output matrix makes of it, after each pass
attention, mass, roles, ablate_heads   where the heads look, what that makes of them, the model without some
places, counterfactuals, patch, interchange_accuracy   chains of pointers; the state of one text in another's run
probe                                  what a linear map reads from a state
hold, motion, normalised_pass, spectral_radius, halting    rest or growth; stopping when two passes agree

They ask of a model what `models.looped.Looped` has.  A *step* is a pass of a looped model, of one that is run once a
layer.  Steps count from 1, layers and heads from 0.  Texts are rows of token ids (B, N).
"""

from collections import Counter
from collections.abc import Callable, Collection
from itertools import product
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.errors import RtxError
from rtx_core.models.layers import rotary_table, rotate
from rtx_core.models.packed import Packed

# (step, state (T, d)) -> the state that the model goes on from
Edit = Callable[[int, Tensor], Tensor] | None
# (step, layer, qkv (T, 3d), the values that its heads mixed (T, d)) -> those that the model goes on from
Mix = Callable[[int, int, Tensor, Tensor], Tensor] | None
AT_LEAST = 0.3  # of a head's attention, for a role


NEEDED = ("states", "parts", "layers", "word", "output_hidden", "head", "config")


def _check(model: nn.Module, ids: Tensor | None = None) -> None:
    """An error for a model that cannot be looked into, and for tokens that it does not know."""
    if missing := [name for name in NEEDED if not hasattr(model, name)]:
        got = f"Got a model {type(model).__name__}, which has no {missing[0]}"
        raise RtxError(f"{got}; expected a decoder such as 'looped', or a subclass of `Looped`.")
    size, ends = len(model.head), () if ids is None or not ids.numel() else (ids.min().item(), ids.max().item())
    if wrong := [token for token in ends if not 0 <= token < size]:
        raise RtxError(f"Got token {wrong[0]}; the model knows 0 to {size - 1}, so give sequences of its own data.")


@torch.no_grad()
def steps(model: nn.Module, texts: Tensor | Packed, passes=None, edit: Edit = None, mix: Mix = None):
    """The state (T, d) after each step; `edit` and `mix` may change what is computed."""
    _check(model, texts if isinstance(texts, Tensor) else texts.ids)
    batch = Packed.from_rows(texts) if isinstance(texts, Tensor) else texts
    looped, calls, states, hooks = model.config.num_passes > 1, Counter(), [], []
    layers = model.parts[1] if looped else model.layers
    most = (passes or model.config.num_passes) * (1 if looped else len(layers))
    if wrong := [last for change in (edit, mix) if (last := getattr(change, "last_step", most)) > most]:
        raise RtxError(f"Got step {wrong[0]} to change; steps 1 to {most} are run, so name one of these.")

    def before(i: int, inputs: tuple) -> tuple:
        r, layer = (calls[i] + 1, i) if looped else (calls[i] * len(layers) + i + 1, 0)
        calls[i] += 1
        x, grid, *rest = inputs
        watched = SimpleNamespace(attend=lambda qkv, heads: mix(r, layer, qkv, grid.attend(qkv, heads)))
        return x, watched, *rest

    def after(state: Tensor) -> Tensor:
        states.append(edit(len(states) + 1, state) if edit else state)
        return states[-1]

    for i, layer in enumerate(layers):
        if mix:
            hooks.append(layer.register_forward_pre_hook(lambda _, inputs, i=i: before(i, inputs)))
        if not looped:
            hooks.append(layer.register_forward_hook(lambda _, inputs, state: after(state)))
    try:
        for r, state in enumerate(model.states(batch, passes), 1):
            if looped:  # the next pass begins with the very tensor that was yielded
                yield state.copy_(edit(r, state)) if edit else state
    finally:
        for hook in hooks:
            hook.remove()
    yield from states


@torch.no_grad()
def logits(model: nn.Module, texts: Tensor | Packed, passes=None, edit: Edit = None, mix: Mix = None):
    """Logits (B, N, V), of packed texts (T, V), after each step as if it were the last (the logit lens)."""
    rows = isinstance(texts, Tensor)
    batch = Packed.from_rows(texts) if rows else texts
    for state in steps(model, texts, passes, edit, mix):
        out = F.linear(model.output_hidden(state, batch), model.head)
        yield out.view(*texts.shape, -1) if rows else out


def changed_share(answers: Tensor) -> Tensor:
    """Of answers (R, …): the share that is not what it was a step before, (R,); NaN after the first."""
    return F.pad((answers[1:] != answers[:-1]).flatten(1).double().mean(1), (1, 0), value=torch.nan)


def attention(model: nn.Module, ids: Tensor, passes: int | None = None) -> Tensor:
    """α (R, layers, H, B, N, N) of ids (B, N), which no kernel forms: α[…, i, j] = softmax_j(q_i · k_j / √D), j ≤ i."""
    _check(model, ids)
    (B, N), H, D = ids.shape, model.config.num_heads, model.config.hidden_size // model.config.num_heads
    rope, weights = rotary_table(torch.arange(N, device=ids.device), D, model.config.rope_base), {}
    later = torch.ones(N, N, dtype=torch.bool, device=ids.device).triu(1)

    def look(r: int, layer: int, qkv: Tensor, mixed: Tensor) -> Tensor:
        q, k = (rotate(x, rope) for x in qkv.view(B, N, 3, H, D).unbind(2)[:2])  # each (B, N, H, D)
        scores = torch.einsum("bihd,bjhd->hbij", q, k) / D**0.5
        weights.setdefault(r, []).append(scores.masked_fill(later, -torch.inf).softmax(-1))
        return mixed

    for _ in steps(model, ids, passes, mix=look):
        pass
    return torch.stack([torch.stack(layers) for layers in weights.values()])


def mass(alpha: Tensor, place: Tensor, tokens: Tensor | None = None) -> Tensor:
    """Mean attention (…) that α (…, B, N, N) gives to one place (B, N) of each token of `tokens`; −1 is none."""
    mask = (place >= 0) if tokens is None else tokens & (place >= 0)
    if not mask.any():
        raise RtxError(f"None of {place.numel()} tokens has such a place; ask for fewer hops or give more texts.")
    index = place.clamp(min=0)[..., None].expand(*alpha.shape[:-1], 1)
    return alpha.gather(-1, index)[..., 0][..., mask].mean(-1)


def roles(alpha: Tensor, ids: Tensor, tokens: Tensor | None = None, most: int = 6) -> list[dict]:
    """A row for each head in each step: its `mass` on p_0 … p_most and the previous occurrence, and its role.

    "previous" looks most at the previous occurrence of the token, p_1 − 1; "follow" at p_1; "jump" at a p_j two or more
    hops away, its `place`; "other" at none of these as much as `AT_LEAST`.  Left out are tokens with p_1 − 1 = p_2.
    """
    chain = places(ids, most)
    mask = (chain[1] > chain[2] + 1) if tokens is None else tokens & (chain[1] > chain[2] + 1)
    targets = {f"p_{j}": place for j, place in enumerate(chain)}
    targets["previous"], rows = torch.where(chain[1] >= 0, chain[1] - 1, -1), []
    masses = {name: mass(alpha, place, mask) for name, place in targets.items()}
    for position in product(*map(range, alpha.shape[:3])):
        share = {name: of_heads[position].item() for name, of_heads in masses.items()}
        place = max(share.keys() - {"p_0"}, key=share.get)
        role = {"previous": "previous", "p_1": "follow"}.get(place, "jump")
        row = {"step": position[0] + 1, "layer": position[1], "head": position[2]} | share
        rows.append(row | {"role": role if share[place] >= AT_LEAST else "other", "place": place})
    return rows


def ablate_heads(model: nn.Module, heads: Collection[tuple[int, int, int]], passes: int | None = None) -> Mix:
    """A `mix` for `steps` in which the mixed values of these heads, each (step, layer, head), are 0.

    `passes` is the number that `steps` will be called with, where it is not the trained one.
    """
    _check(model)
    H, looped = model.config.num_heads, model.config.num_passes > 1
    most = passes or model.config.num_passes
    ranges = ((1, most), (0, len(model.parts[1]) - 1)) if looped else ((1, most * len(model.layers)), (0, 0))
    for place in heads:
        for kind, value, (least, most) in zip(("step", "layer", "head"), place, (*ranges, (0, H - 1))):
            if not least <= value <= most:
                raise RtxError(f"Got {kind} {value} in {place}; the model has {least} to {most}, so name one of these.")

    def mix(r: int, layer: int, qkv: Tensor, mixed: Tensor) -> Tensor:
        heads_off = [head for step, layer_of, head in heads if (step, layer_of) == (r, layer)]
        index = torch.tensor(heads_off, dtype=torch.long, device=mixed.device)
        return mixed.reshape(len(mixed), H, -1).index_fill(1, index, 0).flatten(1)

    mix.last_step = max((step for step, _, _ in heads), default=0)
    return mix


def places(ids: Tensor, hops: int) -> Tensor:
    """(hops + 1, B, N): the place p_j that j hops lead to from each token, p_0 its own; −1 where none is.

    One hop leads to the token after the last earlier occurrence: p_j − 1 is that of the token at p_{j−1}.
    """
    positions = torch.arange(ids.shape[1], device=ids.device)
    last = torch.where((ids[:, :, None] == ids[:, None]) & (positions[:, None] > positions), positions, -1).amax(2)
    after, chain = torch.where(last >= 0, last + 1, -1), [positions.expand_as(ids)]
    for _ in range(hops):
        chain.append(torch.where(chain[-1] >= 0, after.gather(1, chain[-1].clamp(min=0)), -1))
    return torch.stack(chain)


def counterfactuals(ids: Tensor, hops: int, hop: int, alphabet: int, random: np.random.RandomState):
    """(rows (n,), donors (n, N)): which texts of pointer following have a counterfactual, and these.

    A counterfactual has another letter at p_hop of the last token, with the same pointers up to there and another
    answer after `hops` hops; no two neighbours are equal.  Letters are the tokens below `alphabet`.
    """
    if not 0 < hop <= hops:
        raise RtxError(f"Got hop={hop}; expected 1 to {hops}, the hops that lead to the letter that differs.")
    rows, chain, donors = torch.arange(len(ids)), places(ids, hops)[:, :, -1], ids.clone()
    index = chain[hop].clamp(min=0)
    donors[rows, index] += torch.from_numpy(random.randint(1, alphabet, len(ids)))
    donors[rows, index] %= alphabet
    new = places(donors, hops)[:, :, -1]
    valid = (chain[hops] >= 0) & (new[hops] >= 0) & (chain[: hop + 1] == new[: hop + 1]).all(0)
    valid &= ids[rows, chain[hops]] != donors[rows, new[hops]]
    valid &= (donors[:, 1:] != donors[:, :-1]).all(1)
    return valid.nonzero()[:, 0], donors[valid]


def patch(donor: Tensor, step: int, where: Tensor) -> Edit:
    """An edit that puts a donor's state (B·N, d) after a step in place of the own, where (B, N) is True."""

    def edit(r: int, state: Tensor) -> Tensor:
        return torch.where(where.flatten()[:, None], donor, state) if r == step else state

    edit.last_step = step
    return edit


def interchange_accuracy(answers: Tensor, answers_own: Tensor, answers_donor: Tensor) -> tuple[float, float]:
    """Shares of answers (n,) that are the text's own, and the donor's, among pairs in which these differ."""
    differ = answers_own != answers_donor
    if not differ.any():
        problem = f"Got {len(answers_own)} pairs with one answer each"
        raise RtxError(f"{problem}; expected two, so make them with counterfactuals.")
    return tuple((answers == target)[differ].double().mean().item() for target in (answers_own, answers_donor))


class Probe(NamedTuple):
    accuracy: float  # share of labels right, on texts that were not fitted
    shuffled: float  # the same with labels in random order, in fitting and trying
    commonest: float  # share of the label that is most frequent among the fitted


def probe(states: Tensor, labels: Tensor, texts: Tensor, random: np.random.RandomState) -> Probe:
    """Logistic regression from standardised states (n, d) to labels (n,), fitted on half of their `texts` (n,)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y, texts = states.double().numpy(), labels.numpy(), texts.numpy()
    order = random.permutation(np.unique(texts))
    is_training = np.isin(texts, order[: len(order) // 2])

    def score(y: np.ndarray) -> float:
        linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000, tol=1e-3))
        return float(linear.fit(x[is_training], y[is_training]).score(x[~is_training], y[~is_training]))

    names, counts = np.unique(y[is_training], return_counts=True)
    return Probe(score(y), score(random.permutation(y)), float(np.mean(y[~is_training] == names[counts.argmax()])))


def hold(step: int) -> Edit:
    """An edit that keeps each token's norm as it is after this step; for one run of `steps`."""
    norms = []

    def edit(r: int, state: Tensor) -> Tensor:
        size = state.norm(dim=1, keepdim=True)
        if r == step:
            norms.append(size)
        return state * (norms[0] / size) if r > step else state

    edit.last_step = step
    return edit


def motion(model: nn.Module, ids: Tensor, passes: int = 256, hold_after: int | None = None) -> list[dict]:
    """A row for each pass, means over tokens: ‖s_r‖, the step ‖s_r − s_{r−1}‖ / ‖s_r‖ (first: NaN),
    and the cosine of s_r and the last state.  With `hold_after`, norms stay as they are after that pass.
    """
    for last in steps(model, ids, passes, hold(hold_after) if hold_after else None):
        pass
    rows, before = [], torch.full_like(last, torch.nan)
    for r, state in enumerate(steps(model, ids, passes, hold(hold_after) if hold_after else None), 1):
        size, step = state.norm(dim=1), (state - before).norm(dim=1)
        cosine = torch.cosine_similarity(state, last, dim=1)
        means = {"norm": size, "step": step / size, "cosine": cosine}
        rows.append({"pass": r} | {name: of_token.mean().item() for name, of_token in means.items()})
        before = state.clone()
    return rows


def normalised_pass(model: nn.Module, ids: Tensor, r: int) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """(g, s_r): the pass after r with each token's norm put back, g(s)_t = f(s)_t · ‖s_r,t‖ / ‖f(s)_t‖.

    A state (T, d) that grows is never at rest under f, but its direction may be under g.
    """
    batch = Packed.from_rows(ids)
    with torch.no_grad():
        grid, e = model.grid(batch), model.word(batch.ids)
        for layer in model.parts[0]:
            e = layer(e, grid)
        for state in steps(model, ids, r):
            pass
    size = state.norm(dim=1, keepdim=True)
    return lambda s: F.normalize(model.one_pass(s, e, r, grid), dim=1) * size, state


def spectral_radius(f: Callable[[Tensor], Tensor], point: Tensor, iterations: int = 200) -> float:
    """The largest |λ| of the Jacobian of f at a float64 point, by power iteration with products v ↦ Jᵀv.

    It is the geometric mean growth in the second half of the iterations, which a complex pair only disturbs
    by one over their number; the error of what is not dominant shrinks with (|λ₂| / |λ₁|)^iterations.
    """
    if point.dtype != torch.float64:
        raise RtxError(f"Got a point in {point.dtype}; expected torch.float64: give model.double() and its state.")
    point = point.detach().requires_grad_()
    out, growth = f(point), []
    v = torch.randn(point.shape, generator=torch.Generator().manual_seed(0), dtype=point.dtype)
    for _ in range(iterations):
        (v,) = torch.autograd.grad(out, point, v / v.norm(), retain_graph=True)
        growth.append(v.norm())
    return torch.stack(growth[iterations // 2 :]).log().mean().exp().item()


def halting(answers: Tensor) -> tuple[Tensor, Tensor]:
    """(passes spent, answer then): each of answers (R, …) stops at the first that repeats the one before."""
    agree = answers[1:] == answers[:-1]
    passes = torch.where(agree.any(0), agree.int().argmax(0) + 2, len(answers))
    return passes, answers.gather(0, passes[None] - 1)[0]
