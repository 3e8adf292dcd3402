"""One module for each page: the numbers that its prose quotes, and the checks of its sentences.

`quantities(…)` takes the runs that the page's notebook shows and gives `rtx_core.report.Quantities`.  It reads nothing
else, so a reader's own seeds, models and settings reach the text.
"""

from study.pages import (
    architectures,
    claims,
    conclusions,
    data_size,
    errors,
    facts,
    inside,
    inside_rest,
    iso_depth,
    looping,
    related_work,
    shakespeare,
    sst2,
    state_tracking,
    theory,
    thresholds,
    tinystories,
    try_it,
    yardstick,
)

__all__ = [
    "architectures",
    "claims",
    "conclusions",
    "data_size",
    "errors",
    "facts",
    "inside",
    "inside_rest",
    "iso_depth",
    "looping",
    "related_work",
    "shakespeare",
    "sst2",
    "state_tracking",
    "theory",
    "thresholds",
    "tinystories",
    "try_it",
    "yardstick",
]
