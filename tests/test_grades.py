"""The grader of stories: what it counts, on a training text of four sentences."""

import pytest

from study.measurements.grades import Grader, kept, names_in

STORIES = [
    "One day Tom saw a red ball near the old tree by the lake. " * 5,
    "Lily ran. Lily sat. Run, Lily, run. Lily! Lily!",
]


@pytest.fixture(scope="module")
def grader():
    return Grader(STORIES)


def test_names_are_words_that_are_always_capitalised():
    assert names_in([*STORIES, "run on one day " * 9]) == {"Tom", "Lily"}


def test_a_name_is_kept_where_it_was_said_before():
    assert kept("Tom sat.", "Lily saw Tom. Lily ran to Tom.", {"Tom", "Lily"}) == [False, True, True, True]


def test_a_recited_story_is_spelled_and_familiar_but_not_new(grader):
    text = "a red ball near the old tree by the lake"
    assert grader.grade([{"prompt": "One day Tom saw", "text": text}]) == {
        "spelled": 1,
        "familiar": 1,
        "new": 0,
        "kept": None,
    }


def test_other_words_in_another_order(grader):
    found = grader.grade([{"prompt": "Tom", "text": "Lily the ball zrk Tom saw a red ball tree"}])
    assert found == pytest.approx({"spelled": 0.9, "familiar": 3 / 8, "new": 1, "kept": 0.5})


def test_nothing_written_has_no_grade(grader):
    assert set(grader.grade([{"prompt": "Tom", "text": ""}]).values()) == {None}
