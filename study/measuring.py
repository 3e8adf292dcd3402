"""Every measurement of the paper, beside its runs: of trained models, of data and of texts."""

from typing import Any

from rtx_core.errors import RtxError
from study.experiments import GROWTH
from study.plan import SHORT_WORDS, SMALL, TENTH, WIDER

PARTS = ({"split": "official"}, {"split": "grouped"}, TENTH, {"fraction": 0.5}, {"length": "short"}, {"length": "long"})
TASKS = [{"experiment": "sst2"} | part for part in ({}, *PARTS)]
TASKS += [{"experiment": name} for name in ("yelp", "multi-domain", "multi-domain-imdb")]
CLASSIFIERS = ["baseline", "recurrent", "recurrent-wide"]
STORIES = ["control", "frailt", "three-part", "relaxed", "control-3", "control-8", "control-long"]
MEASURES: tuple[
    tuple[str, dict[str, Any], dict[str, Any]], ...
] = (  # (kind, settings, what is added for runs at reduced budgets)
    *(("yardstick", settings, {}) for settings in TASKS),
    ("ngrams", {"experiment": "shakespeare"}, {}),
    ("transfer", {"experiment": "sst2", "to": "yelp"}, TENTH | {"seeds": [0, 1, 2]}),
    ("transfer", {"experiment": "yelp", "to": "sst2"}, {}),
    ("rounding", {"experiment": "sst2", "models": CLASSIFIERS}, TENTH),
    ("quantized", {"experiment": "khop", "models": ["4x1", "2x2", "1x4"]}, {}),
    ("quantized", {"experiment": "iso-depth", "models": ["6x1-64", "1x6-64"], "seeds": [3, 8, 9]}, {}),
    *(
        ("capacity", {"experiment": "facts", "facts": 49152, "epochs": 240, "models": models, "seeds": [seed]}, {})
        for seed, models in ((2, ["1x4", "2x2"]), (3, ["1x1", "2x1"]))
    ),
    ("retrofit", {"experiment": "iso-depth", "models": ["6x1-64"], "seeds": [3, 8, 9]}, {}),
    ("attention", {"experiment": "sst2"}, TENTH),
    ("asked", {"experiment": "multi-domain"}, {}),
    ("growth", {"experiment": "khop", "models": ["1x4"], "seeds": [5, 6, 7]}, {}),
    ("growth", {"experiment": "khop", "models": ["1x6-random"], "seeds": [3, 4], "steps": 9000}, {}),
    ("growth", {"experiment": "khop", "models": ["1x6-random", *GROWTH], "seeds": [5, 6, 7, 8]}, {}),
    ("heads", {"experiment": "khop", "models": ["1x4"], "seeds": [5, 6, 7]}, {}),
    ("heads", {"experiment": "khop-published", "models": ["1x4"], "seeds": [1]}, {"budget": "reduced"}),
    *(
        ("heads", {"experiment": "khop", "models": ["1x4"], "seeds": [0, 1, 2, 3], "learning_rate": rate} | WIDER, {})
        for rate in (5e-4, 1e-3)
    ),
    *(
        (kind, {"experiment": "state-tracking", "models": ["1x8"], "seeds": [0, 1, 2]} | SHORT_WORDS, {})
        for kind in ("spans", "parity")
    ),
    ("lens", {"experiment": "iso-depth", "models": ["1x6-64", "2x3-64", "6x1-64"], "seeds": [3]}, {}),
    ("lens", {"experiment": "tinystories-small", "models": ["frailt"], "seeds": [3]} | SMALL["tinystories-small"], {}),
    ("cache", {"experiment": "khop", "models": ["1x4", "2x2"], "seeds": [5, 6, 7]}, {}),
    ("cache", {"experiment": "iso-depth", "models": ["2x3-64", "1x6-64"], "seeds": [3]}, {}),
    ("stopping", {"experiment": "khop", "models": ["1x4"], "seeds": [5, 6, 7]}, {}),
    ("stopping", {"experiment": "khop", "models": ["1x6-random"], "seeds": [3, 4], "steps": 9000}, {}),
    ("stopping", {"experiment": "khop", "models": ["1x6-random"], "seeds": [5, 6, 7]}, {}),
    ("stopping", {"experiment": "khop", "models": ["1x6"], "seeds": [5, 6, 7], "steps": 4000, "halting": 0.1}, {}),
    ("demo", {"experiment": "sst2", "models": ["recurrent"], "seeds": [0]}, {}),
    ("initial", {"experiment": "tinystories"}, {}),
    ("grades", {"experiment": "tinystories"}, {"budget": "reduced"}),
    ("grades", {"experiment": "tinystories-small", "models": STORIES} | SMALL["tinystories-small"], {}),
    ("precision", {"experiment": "sst2", "models": CLASSIFIERS}, TENTH),
)


def measure(reduced: bool = False) -> None:
    """Make the measurements that are missing or stale; what one of them lacks is said, and the others are made."""
    from rtx_core.experiments.measure import measure as one

    for kind, settings, smaller in MEASURES:
        experiment, *options = (settings | (smaller if reduced else {})).items()
        try:
            one(kind, experiment[1], **dict(options))
        except RtxError as error:
            print(f"left out: {kind} of {experiment[1]}: {error}", flush=True)
