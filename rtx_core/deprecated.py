"""Names of the version before, which work for one version more and say what replaces them."""

import warnings


def warn_renamed(old: str, new: str) -> None:
    """A warning at the line that calls the caller of this function."""
    warnings.warn(f"{old} is called {new} now; its old name goes with the next version.", FutureWarning, stacklevel=3)
