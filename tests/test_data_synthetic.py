"""Generated text: the same everywhere, balanced, noisy as stated, and more than a bag of words."""

import hashlib
import re
from random import Random

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from rtx_core.data import synthetic
from rtx_core.data.synthetic import DOMAINS, LABEL_NOISE, fill, play, reviews, tales

STYLES = ("phrase", "review")

GOLDEN = "a83f2c902fc1 f8151d2b9a19 85262fa5a067 c237f3e70320 40e5619f1843 47bc306b667c"
GOLDEN += " 4db918d03392 8015ef29244f"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def test_the_same_text_on_every_machine():
    made = ["".join(reviews(domain, 100, style=style)["text"]) for domain in DOMAINS for style in STYLES]
    made += [play(5000), "".join(tales(50))]
    assert " ".join(map(digest, made)) == GOLDEN


@pytest.mark.parametrize("style", STYLES)
def test_a_longer_table_begins_with_the_shorter_one_and_seeds_differ(style):
    long = reviews("product", 90, 3, style)
    assert long.head(37).equals(reviews("product", 37, 3, style))
    assert not long.head(37).equals(reviews("product", 37, 4, style))
    assert len(reviews("movie", 0)) == 0 and reviews("movie", 0).dtypes.equals(long.dtypes)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("domain", DOMAINS)
def test_labels_are_balanced_and_counting_words_is_not_enough(domain, style):
    table = reviews(domain, 3000, 5, style)
    assert 0.47 < table["label"].mean() < 0.53 and table["text"].nunique() > 0.85 * len(table)
    assert not table["text"].str.contains("[{}|]").any()
    counts = CountVectorizer(token_pattern=r"\S+").fit(table["text"])
    x, y = counts.transform(table["text"]), table["label"]
    score = LogisticRegression(max_iter=500).fit(x[:2400], y[:2400]).score(x[2400:], y[2400:])
    assert 0.65 < score < 0.9


def test_the_label_noise_is_the_stated_one(monkeypatch):
    noisy = reviews("movie", 6000, style="phrase")["label"]
    monkeypatch.setattr(synthetic, "LABEL_NOISE", 0.0)
    true = reviews("movie", 6000, style="phrase")["label"]
    assert abs((noisy != true).mean() - LABEL_NOISE) < 0.008 and true.mean() == 0.5


@pytest.mark.parametrize("positive", [False, True])
def test_a_turned_word_and_the_clause_that_counts_carry_the_sentiment(positive):
    words = synthetic.REVIEWS | DOMAINS["movie"]
    good = set(words["word_good"] + words["own_good"])
    for seed in range(200):
        assert (fill(Random(seed), "{+word}", words, positive) in good) == positive
        assert (fill(Random(seed), "{-word}", words, positive) in good) == (not positive)
        assert fill(Random(seed), "not {-word}", words, positive).removeprefix("not ") in good or positive


def test_a_play_has_persons_who_answer_each_other():
    text = play(20_000)
    assert len(text) == 20_000 and text == play(20_000) != play(20_000, seed=1) and play(300) == text[:300]
    speeches = text.split("\n\n")[:-1]
    for speech in speeches:
        name, _, lines = speech.partition(":\n")
        assert name in synthetic.SPEAKERS and lines[0].isupper() and "{" not in lines
        assert f"{name.capitalize()}?" not in lines  # nobody asks himself
    assert len(set(text)) < 65


def test_a_tale_keeps_its_hero_thing_and_friend():
    made = tales(200)
    assert made[:5] == tales(5) and len(set(made)) > 190 and tales(3, seed=1) != made[:3]
    for tale in made:
        name, thing = re.search(r"named (\w+)\. \w+ loved (?:her|his) ([\w ]+) very much", tale).groups()
        assert tale.count(name) >= 4 and tale.count(thing) >= 4 and "{" not in tale and "/" not in tale
        [friend] = set(re.findall(r"(?:saw|you to|asked|said|The) the ([a-z]+ [a-z]+)", tale))
        assert friend in synthetic.TALES["friend"]
