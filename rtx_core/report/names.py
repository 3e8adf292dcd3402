"""The name by which pages import this part of `values`."""

from rtx_core.report.values import load, look_up, shown  # noqa: F401
