"""When a prediction holds and when it is contradicted: a function for each row of `predictions.yaml`, named by its id,
in the module of its topic.

Each gives both conditions, of mean errors over seeds unless it says otherwise; where neither is true the prediction
holds in part.  One whose records are missing raises `Unmeasured`.
"""

from collections.abc import Callable
from inspect import isfunction

from study.verdicts import bench, characters, classifiers, facts, language, pointers, products, sharing
from study.verdicts.runs import Conditions

TOPICS = (pointers, sharing, products, facts, characters, language, classifiers, bench)
FUNCTIONS: dict[str, Callable[[], Conditions]] = {  # by the prediction's id
    name.replace("_", "-"): function
    for topic in TOPICS
    for name, function in vars(topic).items()
    if isfunction(function) and function.__module__ == topic.__name__ and not name.startswith("_")
}
