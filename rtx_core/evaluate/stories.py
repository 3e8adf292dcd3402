"""What is measured of a story model: stories and their metrics, passes at test time, exits, computation."""

from collections.abc import Sequence

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer
from torch import Tensor, nn

from rtx_core.data.stories import STORY, split_stories
from rtx_core.evaluate import generation
from rtx_core.evaluate.early_exit import frontier, readings

PROMPTS, PROMPT_WORDS = 20, 25  # validation stories whose first words every model goes on with
LONGEST = 160  # tokens written at most
TEMPERATURE = 0.8  # llama2.c's `sample.py`
LENGTHS = (16, 64, 128)  # of the latency
# words that say nothing of what a story is about
_COMMON = """
a about after all also an and are as at be but by can could day did do for from had has have he
her him his i in into is it its like little me my named no not of on once one out said saw she so
some that the their them then there they this time to too up upon very was went were what when who
will with would you your
"""
COMMON = frozenset(_COMMON.split())


def prompts(task, n: int) -> list[str]:
    """The first words of stories from all over the validation part, which no model has read."""
    stories = split_stories(task.parts["validation"])
    chosen = (task.decode(stories[i][1:]) for i in np.linspace(0, len(stories) - 1, n).astype(int))
    return [" ".join(story.split(" ")[:PROMPT_WORDS]) for story in chosen]


def draw(logits: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """One token a row by the inverse of the cumulative distribution: the same `uniform` (B,) for all."""
    cumulative = torch.softmax(logits.double() / temperature, -1).cumsum(-1)
    tokens = torch.searchsorted(cumulative, uniform[:, None] * cumulative[:, -1:]).squeeze(1)
    return tokens.clamp(max=logits.shape[1] - 1)


@torch.inference_mode()
def write(model: nn.Module, task, beginnings: list[str], device: torch.device, longest: int) -> list[str]:
    """What the model writes after each beginning, until it ends the story or after `longest` tokens; the random number
    by which token t of story i is drawn depends on these two alone."""
    model.eval()
    texts = [[STORY, *task.encode(text)] for text in beginnings]
    lengths, unfinished, state = [len(ids) for ids in texts], list(range(len(texts))), model.start(len(texts))
    uniform = np.stack([np.random.RandomState([7, i]).random_sample(longest) for i in range(len(texts))])
    for t in range(max(lengths) + longest - 1):
        ids = [ids[t] if t < len(ids) else STORY for ids in texts]  # of an ended story, anything
        logits = model.advance(torch.tensor(ids).to(device), state).float().cpu()
        rows = [i for i in unfinished if len(texts[i]) == t + 1]  # the others are still reading
        chance = torch.from_numpy(uniform[rows, [t + 1 - lengths[i] for i in rows]])
        for i, token in zip(rows, draw(logits[rows], chance, TEMPERATURE).tolist()):
            if token != STORY:
                texts[i].append(token)
            if token == STORY or len(texts[i]) == lengths[i] + longest:
                unfinished.remove(i)
        if not unfinished:
            break
    return [task.decode(ids[begin:]).strip() for ids, begin in zip(texts, lengths)]


def measure(model: nn.Module, task, device: torch.device) -> dict:
    """The record's samples, latency and extra."""
    beginnings = prompts(task, PROMPTS)
    completions = write(model, task, beginnings, device, LONGEST)
    samples = [{"prompt": prompt, "text": text} for prompt, text in zip(beginnings, completions)]
    trained = model.config.num_passes
    passes = 2 * trained if trained > 1 else 1
    parts = {name: readings(model, batches, passes, device) for name, batches in task.evaluation.items()}
    training, validation = parts["training_sample"], parts["validation"]
    extra = generation.computation(model, passes) | {
        "passes": {name: part.losses.double().mean(1).tolist() for name, part in parts.items()},
        "passes_tokens": validation.losses.shape[1],
        "change": [None, *validation.change[1:].tolist()],
        "exits": frontier(training, validation, trained) if trained > 1 else [],
        "stories": metrics(samples),
        "sampling": {"temperature": TEMPERATURE, "longest": LONGEST},
    }
    return {"samples": samples, "latency": generation.latency(model, LENGTHS, device), "extra": extra}


def ngrams(text: str, n: int) -> list[str]:
    """Its sequences of n words, lower-case, without punctuation."""
    return CountVectorizer(token_pattern=r"[a-z]+(?:'[a-z]+)?", ngram_range=(n, n)).build_analyzer()(text)


def different(grams: list[str]) -> float | None:
    """Share of different ones among all; None without any."""
    return len(set(grams)) / len(grams) if grams else None


def repetition(text: str) -> float:
    """Share of sequences of four words that stand earlier in the same text."""
    return 1 - (different(ngrams(text, 4)) or 1)


def prompt_words_used(prompt: str, completion: str) -> float | None:
    """Share of the prompt's words, without common ones, that the completion has; None without such words."""
    words = set(ngrams(prompt, 1)) - COMMON
    return len(words & set(ngrams(completion, 1))) / len(words) if words else None


def metrics(samples: Sequence[dict]) -> dict:
    """All of them: each sample has `prompt` and `text`, which is what follows the prompt."""
    texts = [sample["text"] for sample in samples]
    shares = [share for s in samples if (share := prompt_words_used(s["prompt"], s["text"])) is not None]
    grams_by_n = {n: [gram for text in texts for gram in ngrams(text, n)] for n in (1, 2, 3)}
    return {
        "stories": len(texts),
        "words": len(grams_by_n[1]) / len(texts),
        **{f"distinct_{n}": different(grams) for n, grams in grams_by_n.items()},  # Li et al. 2016
        "repetition": sum(map(repetition, texts)) / len(texts),
        "prompt_words_used": sum(shares) / len(shares) if shares else None,
    }
