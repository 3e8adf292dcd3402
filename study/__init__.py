"""This paper: its experiments, what is measured of them, the numbers its pages quote, and its claims.

The library finds `EXPERIMENTS`, `LOOKS`, `MEASUREMENTS`, `MEASURED_ON`, `RECURRENCES` and `COMMANDS` here
(`rtx_core.study`).  Nothing heavy is imported before it is asked for.
"""

from pathlib import Path

import yaml

from rtx_core.data.config import ClassificationData, GroupData, HopData, LanguageData
from study.commands import COMMANDS
from study.experiments import EXPERIMENTS

LOOKS = yaml.safe_load(Path(__file__).with_name("looks.yaml").read_text(encoding="utf-8"))
MEASUREMENTS = {  # beside the runs: kind, which is also the folder under results/ -> module
    "transfer": "study.measurements.transfer",  # trained on one corpus, tested on another
    "precision": "study.measurements.number_formats",  # a trained model in another number format
    "rounding": "study.measurements.rounding",  # how a rounding error grows with depth
    "quantized": "study.measurements.quantized",  # a trained looped model with its layers rounded
    "capacity": "study.measurements.capacity",  # facts that a model still stores with all its matrices rounded
    "attention": "study.measurements.attention",  # where [CLS] looks in a sentence
    "asked": "study.measurements.asked",  # which domain a trained model finds in sentences of ours
    "yardstick": "study.measurements.bag_of_words",  # what word counts alone can do
    "ngrams": "study.measurements.ngrams",  # what counted pairs and triples predict
    "initial": "study.measurements.initial",  # losses before training, over many seeds
    "cache": "study.measurements.cache",  # a loop read with the keys and values of the last pass alone
    "growth": "study.measurements.growth",  # a loop over pointers that runs on to 256 passes
    "heads": "study.measurements.heads",  # where the heads of a loop over pointers look in each pass
    "retrofit": "study.measurements.retrofit",  # a trained stack turned into a loop and trained on
    "stopping": "study.measurements.stopping",  # when a loop over pointers may stop
    "spans": "study.measurements.spans",  # which products a loop over group elements holds
    "parity": "study.measurements.parity",  # whether such a loop holds the parity of a product before the product
    "lens": "study.measurements.lens",  # what a language model would say after each pass
    "grades": "study.measurements.grades",  # what can be counted of written stories beside their training's
    "judge": "study.measurements.judge",  # stories graded by a language model
    "demo": "study.demo.measure",  # a trained model as the page Try it runs it
}


def _on(*kinds: type) -> list[str]:
    return [name for name, experiment in EXPERIMENTS.items() if isinstance(experiment.data, kinds)]


_TEXTS, _STORIES = _on(ClassificationData), ["tinystories", "tinystories-small"]
MEASURED_ON = {  # kind -> the experiments that it fits, where it does not fit all
    **dict.fromkeys(("transfer", "precision", "rounding", "attention", "asked", "yardstick"), _TEXTS),
    "demo": ["sst2", "quickstart"],
    "ngrams": ["shakespeare", "shakespeare-small", "iso-depth"],
    "initial": _on(LanguageData),
    "lens": _on(LanguageData),
    **dict.fromkeys(("growth", "heads", "stopping"), _on(HopData)),
    "cache": [*_on(HopData), "iso-depth"],
    "capacity": ["facts"],
    "retrofit": ["iso-depth"],
    **dict.fromkeys(("spans", "parity"), _on(GroupData)),
    **dict.fromkeys(("grades", "judge"), _STORIES),
}
RECURRENCES = {  # written anew from their papers, which `rtx bench` trains
    "Universal": "study.recurrences.universal:Universal",
    "Huginn": "study.recurrences.huginn:Huginn",
    "TRM": "study.recurrences.trm:TRM",
    "Hyper": "study.recurrences.hyper:Hyper",
    "LSTM": "study.recurrences.lstm:LSTM",
}
__all__ = ["COMMANDS", "EXPERIMENTS", "LOOKS", "MEASURED_ON", "MEASUREMENTS", "RECURRENCES"]
