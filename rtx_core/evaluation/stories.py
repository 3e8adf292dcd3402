"""What a record of a story model holds beside its loss: stories, passes at test time, exits, computation."""

import numpy as np
import torch
from torch import Tensor, nn

from rtx_core.corpora.stories import STORY, Stories
from rtx_core.evaluation.exits import frontier
from rtx_core.evaluation.generation import latency
from rtx_core.evaluation.passes import readings
from rtx_core.evaluation.story_metrics import measures
from rtx_core.training.devices import environment
from rtx_core.training.recipes import Recipe

PROMPTS, PROMPT_WORDS = 20, 25  # validation stories whose first words every model goes on with
LONGEST = 160  # tokens written at most
TEMPERATURE = 0.8  # llama2.c's `sample.py`
LENGTHS = (16, 64, 128)  # of the latency


def prompts(data: Stories, n: int) -> list[str]:
    """The first words of stories from all over the validation part, which no model has read."""
    part = data.parts["validation"]
    rows = np.linspace(0, len(part.starts) - 2, n).astype(int)
    stories = (data.decode(part.ids[part.starts[r] + 1 : part.starts[r + 1]]) for r in rows)
    return [" ".join(story.split(" ")[:PROMPT_WORDS]) for story in stories]


def draw(logits: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """One token a row by the inverse of the cumulative distribution: the same numbers `uniform` (B,) serve all models alike."""
    cumulative = torch.softmax(logits.double() / temperature, -1).cumsum(-1)
    return torch.searchsorted(cumulative, uniform[:, None] * cumulative[:, -1:]).squeeze(1).clamp(max=logits.shape[1] - 1)


@torch.inference_mode()
def write(model: nn.Module, data: Stories, beginnings: list[str], device: torch.device, longest: int) -> list[str]:
    """What the model writes after each beginning, until it ends the story or after `longest` tokens.

    Story i, token t is drawn with a random number that depends on i and t alone.
    """
    model.eval()
    texts = [[STORY, *data.encode(text)] for text in beginnings]
    begins, open_, state = [len(ids) for ids in texts], list(range(len(texts))), model.start(len(texts))
    uniform = np.stack([np.random.RandomState([7, i]).random_sample(longest) for i in range(len(texts))])
    for t in range(max(begins) + longest - 1):
        ids = torch.tensor([ids[t] if t < len(ids) else STORY for ids in texts])  # of an ended story, anything
        logits = model.advance(ids.to(device), state).float().cpu()
        rows = [i for i in open_ if len(texts[i]) == t + 1]  # the others are still reading
        drawn = draw(logits[rows], torch.from_numpy(uniform[rows, [t + 1 - begins[i] for i in rows]]), TEMPERATURE).tolist()
        for i, token in zip(rows, drawn):
            if token != STORY:
                texts[i].append(token)
            if token == STORY or len(texts[i]) == begins[i] + longest:
                open_.remove(i)
        if not open_:
            break
    return [data.decode(ids[begin:]).strip() for ids, begin in zip(texts, begins)]


def measure(model: nn.Module, data: Stories, recipe: Recipe, where: torch.device) -> dict:
    beginnings = prompts(data, PROMPTS)
    samples = [{"prompt": prompt, "text": text} for prompt, text in zip(beginnings, write(model, data, beginnings, where, LONGEST))]
    trained = model.config.num_passes
    passes = 2 * trained if trained > 1 else 1
    parts = data.evaluation()
    read = {name: readings(model, parts[name], passes, where) for name in ("training_sample", "validation")}
    extra = {
        "components": model.components(),
        "flops_per_token": [2 * model.multiplications(r) for r in range(1, passes + 1)],  # forward, after 1 … passes
        "trained_passes": trained,
        "passes": {name: r.losses.double().mean(1).tolist() for name, r in read.items()},
        "passes_tokens": read["validation"].losses.shape[1],
        "change": [None, *read["validation"].change[1:].tolist()],
        "exits": frontier(read["training_sample"], read["validation"], trained) if trained > 1 else [],
        "stories": measures(samples),
        "sampling": {"temperature": TEMPERATURE, "longest": LONGEST},
    }
    return {
        "samples": samples,
        "latency": {"measured": latency(model, LENGTHS, where), "environment": environment(where)},
        "extra": extra,
    }
