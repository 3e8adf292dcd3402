"""A mirror of the real data, made up and tiny: what its files hold, and what is said of a broken one."""

import string

import numpy as np
import pandas as pd
import pytest

from rtx_core.corpora import tokens

WORDPIECES = [*tokens.SPECIAL, *string.ascii_lowercase, *(f"##{c}" for c in string.ascii_lowercase), ".", "good", "bad", "film"]


def tiny_frame(n: int, seed: int) -> pd.DataFrame:
    random = np.random.RandomState(seed)
    texts = [" ".join(random.choice(["good", "Bad", "film", "ab"], size=random.randint(1, 7))) + " ." for _ in range(n)]
    return pd.DataFrame({"sentence": texts, "label": random.randint(0, 2, size=n)})


def changed_label(frame):
    frame.loc[3, "label"] = 1 - frame.loc[3, "label"]
    return frame


def one_sentence(error: pytest.ExceptionInfo, *fragments: str) -> None:
    message = str(error.value)
    assert "\n" not in message and message.endswith("."), message
    for fragment in fragments:
        assert fragment in message
