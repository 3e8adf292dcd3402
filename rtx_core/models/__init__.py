"""Models by name: build, count, save and load them.  The first of these functions imports torch."""

from typing import TYPE_CHECKING

from rtx_core.lazy import lazily

if TYPE_CHECKING:
    from rtx_core.models.build import build_model, count_parameters, load_model, save_model
else:
    __getattr__, __dir__ = lazily(__name__, __file__)
__all__ = ["build_model", "count_parameters", "load_model", "save_model"]
