"""Every classification task of the paper: what a reader calls it, and the settings that name its records."""

from rtx_core.parameters import Settings, settings

# variant -> (title, experiment, parameters)
TASKS: dict[str, tuple[str, str, dict[str, object]]] = {
    "sst2": ("SST-2, pooled split", "sst2", {}),
    "sst2-official": ("SST-2, GLUE's own split", "sst2", {"split": "official"}),
    "sst2-grouped": ("SST-2, phrases of a sentence together", "sst2", {"split": "grouped"}),
    "sst2-10pct": ("SST-2, 10 % of the training part", "sst2", {"fraction": 0.1}),
    "sst2-50pct": ("SST-2, 50 % of the training part", "sst2", {"fraction": 0.5}),
    "sst2-short": ("SST-2, short texts", "sst2", {"length": "short"}),
    "sst2-long": ("SST-2, long texts", "sst2", {"length": "long"}),
    "yelp": ("Yelp", "yelp", {}),
    "multi-domain": ("Three domains", "multi-domain", {}),
    "multi-domain-imdb": ("Three domains, film reviews of IMDB", "multi-domain-imdb", {}),
}


def task(variant: str, source: str = "hub") -> Settings:
    """Its settings.  The default names no data of this machine: records are the same whatever source they came from."""
    _, experiment, given = TASKS[variant]
    return settings(experiment, given | {"source": source})
