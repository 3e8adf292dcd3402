"""The corpora of the paper: where each lies, what it must contain, how it may be split, and what reads it."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Corpus:
    hub: str  # dataset name on the hub
    folder: str  # its folder in a mirror, one parquet file a split
    contents: dict[str, str]  # split -> content hash that a mirror must have; the hub checks its own files
    domain: str  # of the synthetic stand-in, and its style
    style: str = "review"
    embedded_rows: dict[str, int] = field(default_factory=lambda: {"train": 1500})  # split -> its size
    classes: tuple[str, ...] = ("negative", "positive")  # class names, in label order
    text: str = "text"  # column that holds the text
    labels: dict[int, int | None] | None = None  # the hub's label -> ours, None: dropped; unset: the same
    stand_in: str = ""  # what a mirror holds where it cannot hold the hub's own rows
    rows: int = 0  # a fixed random sample of this many rows of real text; 0 = all
    splits: tuple[str, ...] = ("seeded",)  # ways of splitting it (see `splits`)

    def name(self, source: str) -> str:
        """What records and pages call the data from this source."""
        if source == "embedded":
            return f"synthetic {self.domain} {self.style}s"
        return f"{self.stand_in} in place of {self.hub}" if source == "mirror" and self.stand_in else self.hub


@dataclass(frozen=True)
class Mixture:
    """Equally many rows of several corpora; the label says from which a text comes."""

    members: tuple[str, ...]  # the corpora behind the classes
    classes: tuple[str, ...] = ("local business", "movie", "shopping")  # the order of the report's Table 3
    rows: int = 22_740  # of each member, without repetitions; of synthetic text as many as the smallest has
    splits: tuple[str, ...] = ("seeded",)

    def name(self, source: str) -> str:
        return " + ".join(CORPORA[member].name(source) for member in self.members)


CORPORA: dict[str, Corpus | Mixture] = {
    "sst2": Corpus(
        hub="stanfordnlp/sst2",
        folder="sst2",
        text="sentence",
        contents={
            "train": "d69ae5db77b9491ec657699306821b2558c5dd96f74406a63cd773321eca0fb7",
            "validation": "357a99d8042dea9217f4d51d9a5d60ad4f964c60aa08dc17b7b06d2879936437",
        },
        domain="movie",
        style="phrase",
        embedded_rows={"train": 5000, "validation": 500},
        splits=("seeded", "published", "official", "grouped"),
    ),
    "yelp": Corpus(
        hub="Yelp/yelp_review_full",
        folder="yelp_polarity",
        labels={0: 0, 1: 0, 2: None, 3: 1, 4: 1},  # one to five stars; three say neither
        stand_in="another sample of the Yelp challenge of 2015",
        contents={"train": "ba91b1cc831d48b8fc989a6cd0f87c1acb0b8d4a0dfaf3e2f566d67589f0d9de"},
        rows=68_221,  # as many as SST-2 has
        domain="restaurant",
    ),
    "imdb": Corpus(
        hub="stanfordnlp/imdb",
        folder="imdb",
        contents={
            "train": "36d6a5f9fb26eab941a672bb0287c64306839e958e62bf00eb0491e06f4902a6",
            "test": "cb8b470f655cc84034cc6e190b5250a2d28cb9f516e5e93dd5940831d0d7c3a4",
        },
        domain="movie",
    ),
    "amazon": Corpus(
        hub="mteb/amazon_polarity",
        folder="amazon_polarity",
        stand_in="the older Multi-Domain Sentiment Dataset",
        contents={"train": "9e3b4c04e720b4bec49871ece16f2b107c234f5067a71db54b05e66f5ce9d78d"},
        domain="product",
    ),
    "multi-domain": Mixture(members=("yelp", "sst2", "amazon")),
    "multi-domain-imdb": Mixture(members=("yelp", "imdb", "amazon")),
}


@dataclass(frozen=True)
class LanguageCorpus:
    """Text for a language model.  The task's module has `load(source)`, which reads and verifies it."""

    folder: str  # in a mirror
    task_class: str  # "module:name"
    generates: str  # what a trained model writes, which decides what is measured of it: characters or stories
    packed: bool = False  # batches are sequences of unlike lengths, end to end


LANGUAGE_CORPORA: dict[str, LanguageCorpus] = {
    "shakespeare": LanguageCorpus("tinyshakespeare", "rtx_core.data.characters:Characters", "characters"),
    "tinystories": LanguageCorpus("tinystories", "rtx_core.data.stories:Stories", "stories", packed=True),
}
