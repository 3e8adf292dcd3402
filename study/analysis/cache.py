"""Loops read with a KV cache of every pass, or of the last pass alone (`study.measurements.cache`)."""

from collections.abc import Iterable
from statistics import mean

from rtx_core.records import Record


def hop_errors(measured: Iterable[Record], model: str, cache: str, hops: int) -> list[float]:
    """The share of wrong answers at so many hops, by seed."""
    return [one[cache]["error_by_hops"][hops] for one in measured if one["model"] == model]


def loss_rise(measured: Iterable[Record], model: str) -> float:
    """By how many nats the loss is higher with the keys and values of the last pass alone."""
    return mean(one["last"]["loss"] - one["all"]["loss"] for one in measured if one["model"] == model)


def bytes_per_token(measured: Iterable[Record], model: str, cache: str) -> float:
    return mean(one[cache]["bytes_per_token"] for one in measured if one["model"] == model)


def size(layers: int, passes: int, width: int, bytes_per_number: int = 4) -> int:
    """Bytes that a token takes: keys and values of each layer in each pass."""
    return 2 * layers * passes * width * bytes_per_number


def of_config(record: Record) -> int:
    """The same of a recorded run, which may keep those of its last pass alone."""
    model = record["config"]["model"]
    passes = 1 if model.get("cache") == "last" else model["num_passes"]
    return size(model["num_layers"], passes, model["hidden_size"])
