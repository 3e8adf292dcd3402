"""Cleaning: what is taken out of a text, that nothing is left to clean, and texts that are missing."""

import re
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mirror import one_sentence

from rtx_core.corpora.preprocess import clean, clean_all
from rtx_core.errors import RtxError

PIECES = ["<", ">", "</", "<b>", "<br />", "<!--", "-->", "--", "http", "HTTPS", "://", ":", "/", "www.", "WWW", ".", "!", "?",
          "…", " ", "\n", "\t", "\u00a0", "\u2028", "\x1c", "\x00", "İ", "ß", "Σ", "ς", "A", "a", "b", "\u0301", "\u0307", "1", "_",
          "'", '"', "&", "😀", "٣", "\ud800", "ﬁ", "Ⅷ"]  # fmt: skip
hostile = st.one_of(st.text(st.characters()), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
TAG = re.compile(r"</?[a-z][^<>]*>")
REPEATED = re.compile(f"([{re.escape(string.punctuation.translate({ord(c): None for c in '<>/_'}))}…])\\s?\\1")


@settings(derandomize=True, database=None, deadline=None, max_examples=1500)
@given(hostile)
@example("http:::://a")  # becomes a URL once its colons collapse
@example("<<b>b>")  # becomes a tag once the inner tag is gone
@example("<B\n>İİ! !! ...\u00a0\u00a0wWw.a")
def test_cleaned_text_has_nothing_left_to_clean(text):
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert cleaned == cleaned.lower()
    assert not TAG.search(cleaned)
    assert not re.search(r"https?://\S|www\.\S", cleaned)
    assert not REPEATED.search(cleaned)
    assert cleaned == " ".join(cleaned.split())  # no doubled space, none at the ends, no white space but " "


@settings(derandomize=True, database=None, deadline=None)
@given(st.lists(st.text(string.ascii_lowercase + string.digits, min_size=1).filter(lambda word: "www" not in word), min_size=1))
def test_clean_words_stay_as_they_are(words):
    text = " ".join(words)
    assert clean(text) == text


@pytest.mark.parametrize("text, expected", [
    ("  A\tGreat \n FILM ", "a great film"),  # 1: case and white space
    ("No<br /><br />charm", "no charm"),  # 2: tags …
    ('see <a href="http://x.org">THIS</a> <!-- or > that --> now', "see this now"),
    ("more at https://www.example.org/Reviews/1?q=2 , or WWW.x.org", "more at , or"),  # … and URLs
    ("Wow!!! so . . . bad ... ?! ,,", "wow! so . bad . ?! ,"),  # 3: repeated punctuation
    ("it 's n't 10 < 12 and/or 3 > 2 // ok", "it 's n't 10 < 12 and/or 3 > 2 // ok"),  # no tag, no URL
    ("a-b c--d e - - f", "a-b c-d e - f"),
    ("", ""),
])  # fmt: skip
def test_the_three_steps_by_example(text, expected):
    assert clean(text) == expected


@pytest.mark.parametrize("bad", ["", "  \n", None, float("nan"), 7, b"film", ["film"]])
def test_a_missing_text_is_an_error_that_names_its_row(bad):
    with pytest.raises(RtxError, match="Row 2 holds") as error:
        clean_all(["a", "b", bad, ""])
    one_sentence(error, "a non-empty text was expected")
    assert clean_all(["A  b", "C!!"]) == ["a b", "c!"]
