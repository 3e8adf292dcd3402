"""What `results/data/` counts of the texts of a page: {val}`pooled_texts.test.words:.1f`."""

from rtx_core import paths, records
from rtx_core.report.values import Space


def texts(name: str) -> Space:
    """By part: `n` texts, mean `words`, their `median`, `positive` share, `copies` found in a training text.

    `inside` is the share of these, `limit` that of texts that fill the token limit.
    """
    counted = records.read_json(paths.home() / "results" / "data" / f"{name}.json")
    return Space({part: of_part(found) for part, found in counted["parts"].items()})


def of_part(found: dict) -> dict:
    lengths = sorted((int(words), count) for words, count in found["words"].items())
    seen, median = 0, 0
    for words, count in lengths:
        seen += count
        if seen >= found["n"] / 2:
            median = words
            break
    return {
        "n": found["n"],
        "words": sum(words * count for words, count in lengths) / found["n"],
        "median": median,
        "longest": lengths[-1][0],
        "positive": found["labels"][1] / found["n"],
        "limit": found["truncated"] / found["n"],
        "copies": found.get("within_training") or 0,
        "inside": (found.get("within_training") or 0) / found["n"],
    }


VALUES = {
    "pooled_texts": lambda: texts("sst2-seeded-128"),
    "grouped_texts": lambda: texts("sst2-grouped-128"),
    "official_texts": lambda: texts("sst2-official-128"),
    "tenth_texts": lambda: texts("sst2-seeded-10pct-128"),
    "half_texts": lambda: texts("sst2-seeded-50pct-128"),
    "short_texts": lambda: texts("sst2-seeded-short-128"),
    "long_texts": lambda: texts("sst2-seeded-long-128"),
    "yelp_texts": lambda: texts("yelp-seeded-128"),
    "yelp_512_texts": lambda: texts("yelp-seeded-512"),
    "domain_texts": lambda: texts("multi-domain-seeded-128"),
    "imdb_texts": lambda: texts("multi-domain-imdb-seeded-128"),
}
