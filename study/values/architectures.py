"""`counted.baseline.total`: parameters of every model."""

from rtx_core.models.registry import MODELS, config_of
from rtx_core.report.values import Space
from study.analysis.formulas import size_of


def counted() -> Space:
    models = [name for name, model in MODELS.items() if isinstance(model.kind, str)]
    return Space({name: size_of(config_of(name)) for name in models})


VALUES = {"counted": counted}
