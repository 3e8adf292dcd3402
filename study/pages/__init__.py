"""One module for each page: the numbers that its prose quotes, and the checks of its sentences.

`quantities(…)` takes the runs that the page's notebook shows and gives `rtx_core.report.Quantities`.  It reads nothing
else, so a reader's own seeds, models and settings reach the text.
"""

from study.pages import errors, facts, looping, shakespeare, sst2, state_tracking, tinystories

__all__ = ["errors", "facts", "looping", "shakespeare", "sst2", "state_tracking", "tinystories"]
