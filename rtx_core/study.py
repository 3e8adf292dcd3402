"""The one place where the library meets a study: a package beside it, that `RTX_STUDY` names, else `study`.

A study declares `EXPERIMENTS`, name -> `rtx_core.experiments.Experiment`.  It may also declare `MEASUREMENTS`, kind ->
name of the module that measures it, `MEASURED_ON`, kind -> the experiments that it fits, if not all, `RECURRENCES`,
name -> "module:class" of models that `rtx bench` trains and compares with, `LOOKS`, name of a variant -> (title, color,
marker), and `COMMANDS`, name -> function (`rtx_core.__main__`), and have a package `pages`, whose modules give the
numbers of pages without a notebook.  Without a study the library runs on files of one's own.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import resolve_name
from types import ModuleType

from rtx_core.errors import RtxError

SUITE = "rtx_core.benchmark.suite:EXPERIMENTS"


@cache
def study() -> ModuleType:
    """The study's package; an empty one where there is none."""
    name, spec = os.environ.get("RTX_STUDY", "study"), None
    if "RTX_STUDY" in os.environ and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # as `python -m` does; the command `rtx` has only its own folder there
    with suppress(ImportError, ValueError):  # of the package above it; no name of a module
        spec = find_spec(name) if name else None
    if not spec and name not in ("", "study"):
        raise RtxError(f"RTX_STUDY is {name!r}; expected a package in this folder or on PYTHONPATH.")
    return import_module(name) if spec else ModuleType("no_study")


def declaration(name: str) -> Mapping:
    """The study's `EXPERIMENTS`, `MEASUREMENTS`, `LOOKS`, … or `COMMANDS`, empty where it has none; the experiments of
    the library's own suite come with those of every study."""
    declared = getattr(study(), name, {})
    return {**resolve_name(SUITE), **declared} if name == "EXPERIMENTS" else declared
