"""Which texts are parts of which: the handle on sentences where a corpus of phrases names none.

"Part" means word for word and contiguous, so that "a dull" is a part of "not a dull moment" and "a moment" is not.
"""

import re
from collections import defaultdict
from collections.abc import Iterable


def sentences(texts: Iterable[str]) -> dict[str, list[int]]:
    """Text -> the numbers of the sentences that it is, or is a part of; a sentence is a text that no longer one contains.

    Words are what single blanks separate.  From the longest text to the shortest: one that no earlier sentence marked is a
    sentence, and marks every stretch of its own words that is a text.
    """
    within: dict[str, list[int]] = {text: [] for text in texts}
    number = 0
    for text in sorted(within, key=lambda text: (-text.count(" "), text)):
        if within[text]:
            continue
        ends = [blank.start() for blank in re.finditer(" |$", text)]
        starts = [0, *(end + 1 for end in ends[:-1])]
        for first, start in enumerate(starts):
            for end in ends[first:]:
                marked = within.get(text[start:end])
                if marked is not None and marked[-1:] != [number]:
                    marked.append(number)
        number += 1
    return within


def contained(texts: Iterable[str], rows: Iterable[str]) -> list[bool]:
    """Of each text, whether it is a row or a part of one.  Only rows that hold the text's rarest word are searched."""
    holding = defaultdict(list)
    for row in rows:
        spaced = f" {' '.join(row.split())} "
        for word in set(row.split()):
            holding[word].append(spaced)

    def inside(text: str) -> bool:
        words = text.split()
        rarest = min((holding.get(word, ()) for word in words), key=len)
        spaced = f" {' '.join(words)} "
        return any(spaced in row for row in rarest)

    return [inside(text) for text in texts]
