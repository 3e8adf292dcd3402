"""Models by name: build, count, save and load them.  The first of these functions imports torch."""

from rtx_core.lazy import lazily

__getattr__, __dir__ = lazily(__name__, {"build": "build_model count_parameters load_model save_model"})
