"""The names that prose quotes and that belong to no page of their own."""

from collections.abc import Callable

from rtx_core.report.values import Task
from study import paper


def computed(*given: Callable) -> dict[str, Callable]:
    """Values under the names of functions, which are called once, when their name is used."""
    return {function.__name__: function for function in given}


def functions(*given: Callable) -> dict[str, Callable]:
    """Functions that a sentence calls itself."""
    return {function.__name__: lambda function=function: function for function in given}


VALUES = {"yelp": lambda: Task(paper.records("yelp"), called="yelp")}
