"""Models by name: build, count, save and load them.  The first of these functions imports torch."""

__all__ = ["build_model", "count_parameters", "load_model", "save_model"]


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module 'rtx_core.models' has no attribute {name!r}; it offers {', '.join(__all__)}")
    from rtx_core.models import build

    return getattr(build, name)
