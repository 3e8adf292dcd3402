"""Text written by small grammars, for a first run without a network: reviews, a play, tales.

No text is taken from elsewhere.  The same seed gives the same text on every machine: of `random`, only methods whose
stream is the same in all supported versions are used.

A template names what fills it: "{aspect}" is replaced by one of the grammar's aspects, filled in turn; in a review
"{+x}" by an x of the review's own sentiment, "{-x}" by one of the opposite.  So counting words is not enough: "not
dull" praises, and of "dull, but moving" the connective says which word counts.
"""

import re
import tomllib
from pathlib import Path
from random import Random

import pandas as pd

LABEL_NOISE = 0.03  # share of reviews with the wrong label: nobody can score above 97 % except by luck
LONGEST = 12  # sentences of a review
SLOT = re.compile(r"\{([+-]?)(\w+)\}")

Grammar = dict[str, list[str]]


def grammar(text: str) -> Grammar:
    """One symbol a line, "name: alternative | alternative"; a line that begins with a bar continues it."""
    lines = re.sub(r"\n\s*\|", " |", text.strip()).splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): [item.strip() for item in items.split("|")] for name, _, items in pairs}


def fill(rng: Random, template: str, words: Grammar, positive: bool = True) -> str:
    """`template` with every slot replaced by a random alternative; `positive` is the sentiment of "{+…}"."""

    def replace(slot: re.Match) -> str:
        sign, name = slot.groups()
        sense = positive ^ (sign == "-")
        if name not in words:
            name += "_good" if sense else "_bad"
        return fill(rng, rng.choice(words[name]), words, sense)

    return SLOT.sub(replace, template)


_READ = tomllib.loads(Path(__file__).with_name("grammars.toml").read_text(encoding="utf-8"))
REVIEWS, PLAY, TALES = (grammar(_READ[name]) for name in ("reviews", "play", "tales"))
DOMAINS = {name: grammar(text) for name, text in _READ["domains"].items()}


def reviews(domain: str, n: int, seed: int = 0, style: str = "review") -> pd.DataFrame:
    """The first `n` rows, text and label (1 positive), of the endless table of a domain, a style and a seed."""
    rng, words = Random(f"{domain} {style} {seed}"), REVIEWS | DOMAINS[domain]
    texts, labels, pair = [], [], []
    for row in range(n):
        if row % 2 == 0:
            pair = [False, True]  # every two rows hold one of each
            rng.shuffle(pair)
        positive = pair[row % 2]
        texts.append(_prose(rng, words, positive) if style == "review" else fill(rng, "{+phrase}", words, positive))
        labels.append(int(positive ^ (rng.random() < LABEL_NOISE)))
    return pd.DataFrame({"text": pd.Series(texts, dtype="str"), "label": pd.Series(labels, dtype="int64")})


def _prose(rng: Random, words: Grammar, positive: bool) -> str:
    """Sentences as people type them; a verdict decides where there is one, else the majority does."""
    has_verdict = rng.random() < 0.5
    sentences = []
    for k in range(2 + int((LONGEST - 2) * rng.random() ** 2)):
        aside = k % 4 == 3 or (has_verdict and k % 4 == 2 and rng.random() < 0.3)
        sentences.append("{-sentence}" if aside else "{+sentence}")
        sentences += ["{filler}"] if rng.random() < 0.3 else []
    rng.shuffle(sentences)
    sentences += ["{+verdict}"] if has_verdict else []
    texts = []
    for template in sentences:
        text = re.sub(r"\bi\b", "I", fill(rng, template, words, positive))
        text = re.sub(r" (?=[,:])", "", text)
        texts.append(text[0].upper() + text[1:] + rng.choice(("...", "!!!", "!", ".", ".", ".", ".")))
    return rng.choice((" ", " ", " ", "<br /><br />")).join(texts)


SPEAKERS = ("ALDRIC", "BEATA", "CORVIN", "DELIA", "EDMORE", "FENNA", "GARETH", "HELSA")


def play(characters: int, seed: int = 0) -> str:
    """That many characters of a play: names in capitals, verse-like lines, persons who name one another."""
    rng, speeches, size = Random(seed), [], 0
    while size < characters:
        present = rng.sample(SPEAKERS, 2)
        for turn in range(4 + rng.randrange(8)):
            words = PLAY | {"other": [present[1 - turn % 2].capitalize()]}
            spoken = [fill(rng, "{line}", words) for _ in range(1 + rng.randrange(4))]
            lines = "\n".join(line[0].upper() + line[1:] for line in spoken)
            speeches.append(f"{present[turn % 2]}:\n{lines}\n\n")
            size += len(speeches[-1])
    return "".join(speeches)[:characters]


def tales(n: int, seed: int = 0) -> list[str]:
    """n tales of a hero who keeps name and pronoun, a thing broken and mended, and somebody who helps."""
    rng, texts = Random(seed), []
    for _ in range(n):
        words = {name: rng.choice(TALES[name]) for name in ("toy", "friend", "felt")}
        words |= zip(("name", "He", "his", "being"), rng.choice(TALES["hero"]).split("/"), strict=True)
        words |= zip(("loss", "cure"), rng.choice(TALES["trouble"]).split("/"), strict=True)
        hero = {name: [value] for name, value in words.items()}
        texts.append(fill(rng, "{tale}", TALES | hero).replace("/", "\n"))
    return texts
