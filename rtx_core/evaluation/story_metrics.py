"""What can be said of a written story without a judge: how varied it is, whether it repeats itself, whether it stays with its prompt."""

import re
from collections.abc import Sequence

from rtx_core.errors import RtxError

# words that say nothing of what a story is about
COMMON = frozenset(
    "a about after all also an and are as at be but by can could day did do for from had has have he her him his i in into is it its like "
    "little me my named no not of on once one out said saw she so some that the their them then there they this time to too up upon very "
    "was went were what when who will with would you your".split()
)


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower())


def _grams(text: str, n: int) -> list[tuple[str, ...]]:
    w = words(text)
    return [tuple(w[i : i + n]) for i in range(len(w) - n + 1)]


def distinct(texts: Sequence[str], n: int) -> float | None:
    """Share of different n-grams among all n-grams of all texts (Li et al. 2016, distinct-n); None without any."""
    grams = [gram for text in texts for gram in _grams(text, n)]
    return len(set(grams)) / len(grams) if grams else None


def repetition(text: str, n: int = 4) -> float:
    """Share of n-grams that stand earlier in the same text; 0 for a text too short to repeat."""
    grams = _grams(text, n)
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def prompt_words_used(prompt: str, completion: str) -> float | None:
    """Share of the prompt's words, without common ones, that occur in the completion; None where the prompt has none."""
    wanted = set(words(prompt)) - COMMON
    return len(wanted & set(words(completion))) / len(wanted) if wanted else None


def measures(samples: Sequence[dict]) -> dict:
    """All of them over completions: each sample has `prompt` and `text`, the text being what follows the prompt."""
    if not samples:
        raise RtxError("There are no samples to measure; at least one story is needed.")
    texts = [sample["text"] for sample in samples]
    used = [share for sample in samples if (share := prompt_words_used(sample["prompt"], sample["text"])) is not None]
    return {
        "stories": len(texts),
        "words": sum(len(words(text)) for text in texts) / len(texts),
        "distinct_1": distinct(texts, 1), "distinct_2": distinct(texts, 2), "distinct_3": distinct(texts, 3),
        "repetition": sum(map(repetition, texts)) / len(texts),
        "prompt_words_used": sum(used) / len(used) if used else None,
    }  # fmt: skip
