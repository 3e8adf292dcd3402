"""Recurrent against standard transformers: models, data, training, records, and the pages drawn from them.

Everything public is here and loads on first use, so a page that only draws records never imports torch.
"""

import os
from importlib import import_module

if "RTX_READS" in os.environ:  # a page is being drawn for the book
    from rtx_core.pages.reads import note_reads

    note_reads()

_PUBLIC = {
    "RtxError": "rtx_core.errors:RtxError",
    "build_model": "rtx_core.models:build_model",
    "save_model": "rtx_core.models:save_model",
    "load_model": "rtx_core.models:load_model",
    "Packed": "rtx_core.models.packed:Packed",
    "clean": "rtx_core.corpora.preprocess:clean",
    "settings": "rtx_core.parameters:settings",
    "runs": "rtx_core.pages.runs:runs",
    "studies": "rtx_core.pages.runs:studies",
    "profiles": "rtx_core.pages.runs:profiles",
    "text": "rtx_core.pages.text",
    "say": "rtx_core.pages.text:say",
    "provenance": "rtx_core.pages.text:provenance",
    "compare": "rtx_core.results.statistics:compare",
    "table": "rtx_core.pages.table",
    "figure": "rtx_core.pages.figure",
    "measured": "rtx_core.pages.measured",
    "transfer": "rtx_core.pages.transfer",
    "performance": "rtx_core.pages.performance",
    "claims": "rtx_core.pages.claims",
    "conclusions": "rtx_core.pages.conclusions",
    "theory": "rtx_core.pages.theory",
    "stories": "rtx_core.pages.stories",
    "story_claims": "rtx_core.pages.story_claims",
    "story_texts": "rtx_core.pages.story_texts",
    "story_figures": "rtx_core.pages.story_figures",
    "shakespeare": "rtx_core.pages.shakespeare",
    "shakespeare_figures": "rtx_core.pages.shakespeare_figures",
    "recurrence": "rtx_core.pages.recurrence",
    "cost": "rtx_core.pages.cost",
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"module 'rtx_core' has no attribute {name!r}; it offers {', '.join(__all__)}")
    module, _, attribute = _PUBLIC[name].partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def __dir__() -> list[str]:
    return __all__
