"""A grader without a language model: what can be counted of written stories beside the stories they were trained on.

spelled    share of words that the training stories have
familiar   share of runs of three words that they have: the grammar of a phrase
new        share of runs of eight words that they do not have: what is not recited
kept       share of mentions of a name that was said before, in the beginning or in the story: who it is about

The same is counted of how the validation stories themselves go on after these beginnings.
"""

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from rtx_core.data.stories import load, split_stories
from rtx_core.evaluate.stories import LONGEST, PROMPT_WORDS, ngrams

NAMED = 5, 0.95  # a name: capitalised so often in the training stories, and so large a share of the time


def identity(study) -> dict:
    runs = [record["key"] for record in study.runs()]
    return {"of": study.name, "name": "grades", "model": ", ".join(study.models), "seed": 0, "runs": runs}


def names_in(stories: Iterable[str]) -> set[str]:
    words = Counter(word for story in stories for word in re.findall(r"[A-Za-z]+", story))
    least, share = NAMED
    capital = {word: n for word, n in words.items() if word.istitle() and len(word) > 1 and n >= least}
    return {word for word, n in capital.items() if n >= share * (n + words[word.lower()])}


def name_mentions(prompt: str, text: str, names: set[str]) -> list[bool]:
    """Of each mention of a name in the text, whether it was said before."""
    words_before, mentions = set(re.findall(r"[A-Za-z]+", prompt)), []
    for word in re.findall(r"[A-Za-z]+", text):
        if word in names:
            mentions.append(word in words_before)
        words_before.add(word)
    return mentions


class Grader:
    def __init__(self, stories: list[str]):
        self.known = {n: {gram for story in stories for gram in ngrams(story, n)} for n in (1, 3, 8)}
        self.names = names_in(stories)

    def grade(self, samples: list[dict]) -> dict[str, float | None]:
        """Means over all words, runs and mentions of the samples, each a `prompt` and the `text` that follows it."""
        matches = {n: [g in self.known[n] for s in samples for g in ngrams(s["text"], n)] for n in self.known}
        repeated = [values for s in samples for values in name_mentions(s["prompt"], s["text"], self.names)]
        shares = {"spelled": matches[1], "familiar": matches[3], "new": np.logical_not(matches[8]), "kept": repeated}
        return {name: float(np.mean(values)) if len(values) else None for name, values in shares.items()}


def as_written(task, prompts: list[str]) -> list[dict]:
    """The validation stories after these beginnings, as far as a model would write."""
    continuations = {}
    for ids in split_stories(task.parts["validation"]):
        beginning = " ".join(task.decode(ids[1:]).split(" ")[:PROMPT_WORDS])
        length = len(task.encode(beginning))
        continuations.setdefault(beginning, task.decode(ids[1 + length : 1 + length + LONGEST]).strip())
    return [{"prompt": prompt, "text": continuations[prompt]} for prompt in prompts]


def of_study(study) -> tuple[dict, None]:
    grader, grades = Grader(load(study.source)["train"]), {}
    for record in study.runs():
        grades.setdefault(record["model"], []).append(grader.grade(record["samples"]))
        prompts = [sample["prompt"] for sample in record["samples"]]
    reference = grader.grade(as_written(study.task, prompts))
    return {"grades": grades, "written": reference, "stories": len(prompts)}, None
