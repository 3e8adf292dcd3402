"""Text from a trained model, one token at a time, and how long each token takes."""

import time
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from rtx_core.errors import RtxError
from rtx_core.evaluate.latency import percentiles
from rtx_core.models.looped import Looped

PROMPT, SAMPLED = "\n", 400  # what every sample starts with, and its length in characters
WARM_UP, TIMED = 2, 20  # passes, where a model writes no texts
REPEATS, AROUND = 5, 8  # of the measurement: texts written, and tokens timed before each length


@torch.inference_mode()
def stream(
    model: nn.Module, ids: Tensor, n: int, temperature: float = 1.0, seed: int = 0, cache: str = "", stop: str = ""
) -> Iterator[int]:
    """n tokens after the prompt `ids` (P,), each as soon as it is drawn.

    A model whose positions are used up begins anew from the last half of the text.  Of a looped decoder `cache` ("all",
    "last") says which passes' keys and values are kept, and `stop` ("agree", "confident", "gate") when passes end.
    """
    model.eval()
    if (cache or stop) and not isinstance(model, Looped):
        got = f"cache={cache!r} and stop={stop!r} got a model {type(model).__name__}"
        raise RtxError(f"{got}; expected a looped decoder, or neither.")
    starts, stops = {"cache": cache} if cache else {}, {"stop": stop} if stop else {}
    generator = torch.Generator(ids.device).manual_seed(seed)
    state, logits, tokens = model.start(1, **starts), None, ids.tolist()
    for token_id in tokens:
        logits = model.advance(ids.new_tensor([token_id]), state, **stops)
    for _ in range(n):
        probabilities = torch.softmax(logits[0].float() / temperature, -1)
        tokens.append(torch.multinomial(probabilities, 1, generator=generator).item())
        yield tokens[-1]
        pending = tokens[-1:]
        if model.max_length and state.length == model.max_length:
            state, pending = model.start(1, **starts), tokens[-max(1, model.max_length // 2) :]
        for token_id in pending:
            logits = model.advance(ids.new_tensor([token_id]), state, **stops)


@torch.inference_mode()
def latency(model: nn.Module, lengths: Sequence[int], device: torch.device, repeats: int = REPEATS) -> list[dict]:
    """Milliseconds for one more token at each length, over the `AROUND` tokens before it in each text."""
    model.eval()
    times: dict[int, list[float]] = {length: [] for length in lengths}
    token = torch.zeros(1, dtype=torch.long, device=device)
    for _ in range(repeats):
        state = model.start(1)
        for position in range(1, max(lengths) + 1):
            begin = time.perf_counter()
            model.advance(token, state).cpu()  # .cpu() waits for the device
            for length in lengths:
                if length - AROUND < position <= length:
                    times[length].append(1e3 * (time.perf_counter() - begin))
    rows = [{"length": n, **percentiles(of_n), "tokens": len(of_n)} for n, of_n in times.items()]
    return [row | {"threads": torch.get_num_threads()} for row in rows]


@torch.inference_mode()
def latency_of_forward(model: nn.Module, task, device: torch.device) -> list[dict]:
    """Milliseconds a token of a forward pass over a training batch, for a model that cannot write token by token."""
    times, ((inputs, targets), *_) = [], task.step(0, 0)
    inputs, targets = inputs.to(device), targets.to(device)
    for _ in range(WARM_UP + TIMED):
        begin = time.perf_counter()
        model.eval()(inputs, targets).cpu()
        times.append(1e3 * (time.perf_counter() - begin) / targets.numel())
    row = {"length": task.block_size, **percentiles(times[WARM_UP:]), "tokens": TIMED}
    return [row | {"threads": torch.get_num_threads()}]


def computation(model: nn.Module, passes: int) -> dict:
    """Of a looped decoder: its parameters by component, and forward flops of a token after 1 … `passes` passes."""
    flops = [2 * model.macs_per_token(r) for r in range(1, passes + 1)]
    trained = model.config.num_passes
    return {"components": model.components(), "flops_per_token": flops, "trained_passes": trained}


def of_characters(model: nn.Module, task, device: torch.device) -> dict:
    """A sample, and the latency of a character up to the block size."""
    ids = torch.tensor(list(stream(model, task.encode(PROMPT).to(device), SAMPLED)))
    lengths = sorted({max(1, task.block_size // k) for k in (16, 4, 2, 1)})
    samples = [{"prompt": PROMPT, "text": task.decode(ids), "temperature": 1.0, "seed": 0}]
    return {"samples": samples, "latency": latency(model, lengths, device)}


def of_generated(model: nn.Module, task, device: torch.device) -> dict:
    """Of a task whose rule is known: the latency of a token, and what a looped decoder computes for one."""
    result = {"latency": latency(model, [task.block_size], device)}
    if hasattr(model, "macs_per_token"):
        result["extra"] = computation(model, 2 * model.config.num_passes)
    return result
