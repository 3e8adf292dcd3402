"""Labels and lexical diversity of the data sets, until the pages that quote them have their own numbers."""

from rtx_core.report.values import Space
from study import paper
from study.analysis import comparisons
from study.published import published
from study.values.common import computed


def labels() -> Space:
    """The largest distance of a part's share of a label in SST-2 from what is stated, in points."""
    table, parts = published()["labels"]["sst2"], paper.profile("sst2-published-128")["parts"]
    stated = {part: table[part]["percent"] for part in parts}
    return Space({"table": comparisons.label_error((parts, stated))})


def diversity() -> Space:
    """Distinct tokens of the long training texts over those of as many short ones."""
    words = [paper.measurements("yardstick", f"sst2-{part}")[0] for part in ("long", "short")]
    parts = [paper.profile(f"sst2-seeded-{part}-128")["parts"] for part in ("long", "short")]
    for_length = comparisons.diversity_for_length(*words, *parts)
    return Space({"of_texts": comparisons.diversity(*words), "for_length": for_length})


VALUES = computed(labels, diversity)
