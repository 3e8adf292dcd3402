"""The name by which pages import this part of `values`."""

from rtx_core.report.values import Badge, badge  # noqa: F401
