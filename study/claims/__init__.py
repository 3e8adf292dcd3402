"""Claims of the four sources, each with the test that decides it on the paper's records."""

from collections.abc import Iterable

import pandas as pd

from rtx_core.errors import unknown
from study.claims.rules import gaps
from study.claims.sources import Claim, Sources
from study.claims.stated import CLAIMS

__all__ = ["CLAIMS", "Claim", "Sources", "gaps", "judged"]


def judged(sources: Sources, sections: Iterable[str] = ()) -> pd.DataFrame:
    """A row for each claim, of some sections or of all: section, says, source, page, outcome, line, badge."""
    if wrong := set(sections) - CLAIMS.keys():
        raise unknown("section of claims", wrong.pop(), CLAIMS)
    rows = []
    for section in sections or CLAIMS:
        for page, claims in CLAIMS[section].items():
            for claim in claims:
                outcome = claim.outcome(sources)
                row = {"section": section, "says": claim.says, "source": claim.source, "page": page}
                rows.append(row | {"outcome": outcome.word, "line": outcome.line, "badge": str(outcome.badge or "")})
    return pd.DataFrame(rows)
