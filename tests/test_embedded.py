"""The embedded corpus: the same everywhere, balanced, truthful up to the stated noise, and more than a bag of words."""

import hashlib
from itertools import islice
from random import Random

import pandas as pd
import pytest

from rtx_core.corpora import embedded
from rtx_core.corpora.embedded import DOMAINS, LABEL_NOISE, STYLES, WORDS, reviews
from rtx_core.errors import RtxError

GOLDEN = "7cbd32c1140bed3e61d588a97f04ac143f2c8b07ef0b74e757c7e21bda0532fb"  # of reviews("movie", 200, seed=0)


def lengths(table: pd.DataFrame) -> pd.Series:
    return table.text.str.split().str.len()


def digest(table: pd.DataFrame) -> str:
    return hashlib.sha256("\n".join(f"{row.text}\t{row.label}" for row in table.itertuples()).encode()).hexdigest()


# --- The table ---------------------------------------------------------------------------------------------------

def test_the_same_text_on_every_machine():
    assert digest(reviews("movie", 200, seed=0)) == GOLDEN


def test_seeds_domains_and_styles_differ():
    tables = [reviews(domain, 50, seed, style) for domain in DOMAINS for seed in (0, 1) for style in STYLES]
    assert len({digest(table) for table in tables}) == len(tables)


@pytest.mark.parametrize("style", STYLES)
def test_a_longer_table_begins_with_the_shorter_one(style):
    pd.testing.assert_frame_equal(reviews("product", 90, 3, style).head(37), reviews("product", 37, 3, style))


def test_columns_even_without_rows():
    for n in (0, 5):
        table = reviews("movie", n)
        assert len(table) == n and list(table.columns) == ["text", "label", "stars"]
        assert table.label.dtype == table.stars.dtype == "int64"
    assert reviews("movie", 0).dtypes.equals(table.dtypes)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("style", STYLES)
def test_balanced_labels_that_agree_with_the_stars(domain, style):
    table = reviews(domain, 1000, 5, style)
    assert 0.44 <= table.label.mean() <= 0.56
    assert set(table.stars) == {1, 2, 4, 5}
    assert (table.label == (table.stars > 3)).all()


def test_the_label_noise_is_the_stated_one():
    rows = list(islice(embedded._generate("restaurant", 0, "phrase"), 20_000))
    flipped = [written != given for _, written, given in rows]
    assert abs(sum(flipped) / len(rows) - LABEL_NOISE) < 0.005
    assert all(given in (written, 6 - written) for _, written, given in rows)


# --- The texts ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("domain", DOMAINS)
def test_phrases_look_like_a_treebank(domain):
    table = reviews(domain, 8000, style="phrase")
    words = lengths(table)
    assert words.min() == 1 and 6 <= words.median() <= 10 and (words <= 25).mean() > 0.98 and words.max() <= 40
    assert (words <= 2).mean() > 0.05
    assert (table.text == table.text.str.lower()).all()
    assert not table.text.str.contains(r"\w[.,]|  ").any()
    assert table.text.nunique() >= 0.9 * len(table)
    assert table.text[words >= 10].nunique() >= 0.99 * (words >= 10).sum()


@pytest.mark.parametrize("domain", DOMAINS)
def test_reviews_look_like_online_prose(domain):
    table = reviews(domain, 1000, style="review")
    words = lengths(table)
    assert words.min() >= 20 and words.max() <= 300 and (words > 200).mean() > 0.05
    assert table.text.str.match("[A-Z]").all() and table.text.is_unique
    for dirt in ("<br />", "!!!", "https://"):
        assert 0.01 < table.text.str.contains(dirt, regex=False).mean() < 0.9


def test_mixed_holds_both():
    words = lengths(reviews("movie", 1000))
    assert 0.4 < (words >= 28).mean() < 0.6 and words.min() <= 2 and words.max() > 200


def test_each_word_has_one_sense_in_a_domain_and_may_have_another_elsewhere():
    for words in WORDS.values():
        for bad, good in (words.adjectives, words.qualities, words.actions):
            assert not set(bad) & set(good) and len(set(bad)) == len(bad) and len(set(good)) == len(good)
    assert "raw" in WORDS["movie"].adjectives[True] and "raw" in WORDS["restaurant"].adjectives[False]


# --- The grammar -------------------------------------------------------------------------------------------------

def sense(stars: int) -> str:
    return "good" if stars > 3 else "bad"


@pytest.mark.parametrize("stars", (1, 2, 4, 5))
def test_a_turned_word_is_of_the_opposite_sense(stars):
    adjectives, turned = WORDS["movie"].adjectives, 0
    for seed in range(400):
        operator, word = embedded.saying(Random(seed), embedded.DEGREES[True], adjectives, stars).rsplit(" ", 1)
        turn = operator in embedded.TURNS
        turned += turn
        assert (word in adjectives[True]) == ((stars > 3) != turn)
    assert abs(turned / 400 - embedded.TURNED[stars > 3]) < 0.06


@pytest.mark.parametrize("stars", (1, 2, 4, 5))
def test_the_connective_says_which_clause_counts(stars, monkeypatch):
    monkeypatch.setattr(embedded, "clause", lambda rng, words, stars: f"it is {sense(stars)}")
    main, other = sense(stars), sense(embedded.against(stars))
    firsts = set()
    for seed in range(60):
        text = embedded.contrast(Random(seed), WORDS["movie"], stars)
        concession = any(f"{main} {link}" in text for link in embedded.EVEN_IF)
        firsts.add(text.index(main) < text.index(other))
        assert concession == (text.index(main) < text.index(other)), text
    assert firsts == {True, False}


@pytest.mark.parametrize("stars", (1, 5))
def test_a_report_is_believed_or_refuted(stars, monkeypatch):
    monkeypatch.setattr(embedded, "clause", lambda rng, words, stars: f"it is {sense(stars)}")
    for seed in range(40):
        text = embedded.report(Random(seed), WORDS["movie"], stars)
        agree = any(text.endswith(f"and {end}") for end in embedded.RIGHT[True])
        assert agree == (f"it is {sense(stars)} ," in text)


@pytest.mark.parametrize("stars", (1, 2, 4, 5))
def test_a_review_is_decided_by_its_verdict_or_else_its_majority(stars, monkeypatch):
    monkeypatch.setattr(embedded, "clause", lambda rng, words, stars: f"it is finally {sense(stars)}")
    monkeypatch.setattr(embedded, "sentence", lambda rng, words, stars: f"it is {sense(stars)} in some seven words")
    main, other = sense(stars), sense(embedded.against(stars))
    verdicts = 0
    for seed in range(200):
        text = embedded.review(Random(seed), WORDS["product"], stars)
        if "finally" in text:
            verdicts += 1
            assert f"finally {main}" in text
        else:
            assert text.count(f"is {main}") > text.count(f"is {other}")
    assert 80 < verdicts < 160


@pytest.mark.parametrize("style", STYLES)
def test_a_bag_of_words_stays_clearly_below_the_ceiling(style):
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear = pytest.importorskip("sklearn.linear_model")
    table, bag = reviews("movie", 6000, style=style), text.CountVectorizer()
    train, test = table[:4000], table[4000:]
    model = linear.LogisticRegression(C=0.3, max_iter=500).fit(bag.fit_transform(train.text), train.label)
    accuracy = model.score(bag.transform(test.text), test.label)
    assert 0.80 <= accuracy <= 0.90 < 1 - LABEL_NOISE


# --- Bad input ---------------------------------------------------------------------------------------------------

def test_bad_input_is_named_in_one_sentence():
    with pytest.raises(RtxError, match="Unknown domain 'movies': did you mean 'movie'"):
        reviews("movies", 1)
    with pytest.raises(RtxError, match="Unknown style 'tweet': .*mixed, phrase, review"):
        reviews("movie", 1, style="tweet")
    with pytest.raises(RtxError, match="-1 reviews"):
        reviews("movie", -1)
