"""The claims of the four sources, in our words, each with the test that decides it."""

from itertools import combinations

from study.analysis import comparisons as compare
from study.analysis.benchmarks import story_memory
from study.analysis.classifiers import PAIR
from study.analysis.outcomes import bound, count, direction, untested
from study.analysis.precision import weakest_ratio
from study.claims.rules import (
    alike,
    balanced,
    characters_parameters,
    diversity_for_length,
    faster,
    harder,
    have_length,
    initial_order,
    label_shares,
    leads,
    long_and_short,
    losses,
    lower,
    more_passes,
    over_all_data,
    prints,
    shrinking,
    sizes,
    stories_parameters,
    story_times,
    twenty_to_fifty,
    yelp_balance,
)
from study.claims.sources import Claim

TIMED = ("sst2", "sst2-official", "sst2-50pct-epochs1", "sst2-short", "sst2-long")
TIMED += ("yelp-trainrows10000-epochs1", "multi-domain-trainrows20000-epochs1")
OVERALL = ("sst2", "sst2-official", "sst2-10pct", "sst2-short")
SMALL_CHARACTERS, CHARACTERS = "shakespeare-small-learningrate0.003", "shakespeare-nanogpt"
SMALL_STORIES, LOOPS = "tinystories-small-learningrate0.004", ("frailt", "relaxed", "three-part")
REVIEWS, MODELS = "Other reviews, and a bag of words", "Data and models"
LENGTHS, DATA_SIZE, DYNAMICS = "report, length section", "slides, data size table", "slides, training dynamics"
FIXED, RECALL = "report, fixed configurations", "slides, short inputs"
CROSS, SST2 = "slides, cross-dataset robustness", "report, SST-2 section"
CLAIMS: dict[str, dict[str, list[Claim]]] = {}  # section -> page that treats it -> claims


def add(section: str, page: str, *claims: Claim) -> None:
    CLAIMS.setdefault(section, {})[page] = list(claims)


add(
    "SST-2",
    "SST-2",
    Claim("Baseline: 79.0 % (GLUE).", "report, Table 6", prints("sst2-official", "baseline", 0.7901, 872, True)),
    Claim("Recurrent: 79.9 % (GLUE).", "report, Table 6", prints("sst2-official", "recurrent", 0.7993, 872, True)),
    Claim(
        "Recurrent leads in accuracy and F1 (pooled; GLUE).",
        "slides, standard benchmark; report, SST-2 section",
        leads("recurrent", "sst2", "sst2-official", measures=("accuracy", "f1")),
    ),
    Claim("Recurrent leads in precision (pooled).", SST2, leads("recurrent", "sst2", measures=["precision"])),
    Claim("Recurrent leads in recall (pooled).", SST2, leads("recurrent", "sst2", measures=["recall"])),
    Claim("The two are comparable (pooled; GLUE).", SST2, alike("sst2", "sst2-official")),
)
add(
    "Data size",
    "SST-2",
    Claim("Baseline: 76.6 % (10 %).", DATA_SIZE, prints("sst2-10pct", "baseline", 0.7661, 6823)),
    Claim("Recurrent: 74.5 % (10 %).", DATA_SIZE, prints("sst2-10pct", "recurrent", 0.7453, 6823)),
    Claim("Baseline leads (10 %).", DATA_SIZE, leads("baseline", "sst2-10pct")),
    Claim("Baseline leads (50 %).", DATA_SIZE, leads("baseline", "sst2-50pct")),
    Claim("Half of the data beats all (each model).", "implied by the slides' tables", over_all_data),
    Claim("More data, smaller lead (10 to 50 %; 10 % to all).", DYNAMICS, shrinking),
    Claim(
        "Recurrent trails after one epoch (10 %).",
        DYNAMICS,
        lambda s: direction(compare.first_epoch(s.task("sst2-10pct"))),
    ),
    Claim(
        "Recurrent's validation loss stays stable (10 %; its rise in nats).",
        DYNAMICS,
        lambda s: bound(compare.final_rise(s.task("sst2-10pct"), "recurrent"), at_most=0),
    ),
    Claim(
        "Baseline's validation loss rises further (10 %; by how many nats).",
        DYNAMICS,
        lambda s: direction(compare.rise_gap(s.task("sst2-10pct"))),
    ),
    Claim(
        "Recurrent keeps 97 % of Baseline's accuracy (50 %).",
        "slides, efficiency and performance",
        lambda s: bound(compare.share(s.task("sst2-50pct")), at_least=97),
    ),
    Claim(
        "Precision and recall agree within a point, weighted (10; 50 %).",
        "slides, balanced metrics",
        balanced("weighted "),
    ),
    Claim(
        "Precision and recall agree within a point, positive class (10; 50 %).",
        "slides, balanced metrics",
        balanced(""),
    ),
)
add(
    "Length",
    REVIEWS,
    Claim(
        "Recurrent leads in accuracy, F1 and recall (long texts).",
        LENGTHS,
        leads("recurrent", "sst2-long", measures=("accuracy", "f1", "recall")),
    ),
    Claim("Baseline leads (short texts).", LENGTHS, leads("baseline", "sst2-short")),
    Claim(
        "Baseline leads in precision (short texts).", RECALL, leads("baseline", "sst2-short", measures=["precision"])
    ),
    Claim("Recurrent leads in recall (short texts).", RECALL, leads("recurrent", "sst2-short", measures=["recall"])),
    Claim("Short texts are harder (each model).", LENGTHS, harder("sst2-short-epochs1", "sst2-long-epochs1", *PAIR)),
    Claim("Most short texts have one or two words.", LENGTHS, have_length("-short", "words", 1, 2)),
    Claim("Most short texts have one or two tokens.", LENGTHS, have_length("-short", "tokens", 1, 2)),
    Claim("Most long texts have 20 to 50 words (longest 30 %; 10 %).", LENGTHS, twenty_to_fifty),
    Claim(
        "Long texts are lexically more diverse (distinct tokens of as many texts).",
        LENGTHS,
        lambda s: count(compare.diversity(*long_and_short(s)), at_least=1),
    ),
    Claim(
        "Long texts are lexically more diverse (for their length, by Guiraud's index).", LENGTHS, diversity_for_length
    ),
)
add(
    "Other corpora",
    REVIEWS,
    Claim(
        "Recurrent leads in accuracy and F1 (Yelp).",
        "slides, Yelp",
        leads("recurrent", "yelp", measures=("accuracy", "f1")),
    ),
    Claim(
        "Recurrent leads (from SST-2 to Yelp).",
        CROSS,
        lambda s: direction(s.transfer("sst2-10pct-to-yelp").difference, expect="below"),
    ),
    Claim(
        "Recurrent leads (from Yelp to SST-2).",
        CROSS,
        lambda s: direction(s.transfer("yelp-to-sst2").difference, expect="below"),
    ),
    Claim("Recurrent leads (three domains).", "report, multi-domain section", leads("recurrent", "multi-domain")),
    Claim(
        "Three domains are harder than sentiment (Baseline).",
        "report, multi-domain section",
        harder("multi-domain", "sst2-epochs1", "baseline"),
    ),
)
add(
    "Data",
    MODELS,
    Claim("Shares of the labels are as printed (SST-2; its subsets; domains).", "report, Tables 1 and 3", label_shares),
    Claim(
        "Nearly all texts have up to 50 tokens (SST-2).",
        "report, dataset characteristics",
        have_length("", "tokens", 0, 50),
    ),
)
add(
    "Data",
    REVIEWS,
    Claim("Yelp is balanced within two points.", "report, Table 2", yelp_balance),
    Claim(
        "Three domains have 6,823 test texts.",
        "report, Table 3",
        lambda s: count(s.parts("multi-domain-seeded-128")["test"]["n"], equals=6823),
    ),
)
add(
    "Size and speed",
    MODELS,
    Claim(
        "25.9 M and 11.0 M parameters, 58 % fewer.",
        "report, Table 6; slides, efficiency and performance",
        sizes((25.9, 11.0), 58),
    ),
    Claim(
        "9.8 M and 3.4 M parameters, 65 % fewer.", "report, Tables 4 and 5; fixed configurations", sizes((9.8, 3.4), 65)
    ),
    Claim("Both have the same effective depth.", FIXED, lambda s: count(compare.depth_gap(), equals=0)),
    Claim("They differ in recurrence alone.", FIXED, lambda s: count(compare.differing_widths(), equals=0)),
)
add(
    "Size and speed",
    "SST-2",
    Claim("Recurrent is faster (SST-2; its time over Baseline's).", "slides, speed advantage", faster("sst2")),
    Claim("Recurrent is faster (all tasks; its time over Baseline's).", "slides, speed advantage", faster(*TIMED)),
    Claim(
        "Recurrent is slower (on a GPU).",
        "slides, benchmark tables",
        lambda s: untested("On an H100 (see Performance) single times spread wider than the models differ."),
    ),
)
add(
    "Rounding and depth",
    "Number formats",
    Claim(
        "Sharing amplifies rounding errors (untrained; 4, 6 and 8 bits; the least ratio).",
        "slides, gradient of depth-recurrent modeling",
        lambda s: bound(weakest_ratio(s.measurements("rounding")), at_least=1),
    ),
)
add(
    "Rounding and depth",
    "Claims",
    Claim(
        "Clipping the gradient keeps training stable, recurrent layers above all.",
        "report, training protocol",
        lambda s: untested("Every run clips, and none records the norm."),
    ),
)
add(
    "Rounding and depth",
    "SST-2",
    Claim("More passes are better (two over one; three over two).", "slides, scaling behavior", more_passes),
)
add(
    "Conclusions",
    "Claims",
    Claim(
        "Recurrent leads slightly (pooled; GLUE; Yelp).",
        "slides, conclusion",
        leads("recurrent", "sst2", "sst2-official", "yelp"),
    ),
    Claim(
        "Baseline leads slightly overall (full budget).",
        "slides, conclusion, some sentences later",
        leads("baseline", *OVERALL),
    ),
    Claim("The two are comparable overall (full budget).", "slides, conclusion", alike(*OVERALL)),
)
add(
    "Kausik",
    "Shakespeare",
    Claim(
        "One recurrent layer beats six standard ones (width 128).",
        "Kausik, Table 2",
        lower(SMALL_CHARACTERS, ("kausik", "gpt-6")),
    ),
    Claim(
        "One recurrent layer beats one standard one (width 128).",
        "Kausik, Table 2",
        lower(SMALL_CHARACTERS, ("kausik", "gpt-1")),
    ),
    Claim(
        "Without positions the recurrence does better (width 128).",
        "Kausik, Table 2",
        lower(SMALL_CHARACTERS, ("kausik", "kausik-positions")),
    ),
    Claim(
        "One recurrent layer beats six standard ones (his size, nanoGPT's recipe).",
        "Kausik, Table 2",
        lower(CHARACTERS, ("kausik", "gpt-6")),
    ),
    Claim(
        "One recurrent layer beats one standard one (his size, nanoGPT's recipe).",
        "Kausik, Table 2",
        lower(CHARACTERS, ("kausik", "gpt-1")),
    ),
    Claim(
        "The recurrence's time grows about as the length.",
        "Kausik, abstract",
        lambda s: count(compare.growth(s.times["recurrence"]), at_most=1.1),
    ),
    Claim("1.89 M, 10.74 M and, without positions, 1.89 M parameters.", "Kausik, Table 2", characters_parameters),
)
add(
    "TinyStories",
    "TinyStories",
    Claim(
        "Three loops have lower losses than their control (width 64, one learning rate).",
        "TinyStories study, Table 3",
        lower(SMALL_STORIES, *((loop, "control") for loop in LOOPS)),
    ),
    Claim(
        "The loops differ by less than a hundredth (width 64).",
        "TinyStories study, Table 3",
        lambda s: bound(*losses(s, SMALL_STORIES, *combinations(LOOPS, 2)), within=0.01),
    ),
    Claim(
        "Initial losses are in the order of the final ones (in how many of ten seeds).",
        "TinyStories study, Table 5",
        initial_order,
    ),
    Claim(
        "FraiLT and Three Part take almost four times the time (over the control's).",
        "TinyStories study, Figure 1",
        story_times,
    ),
    Claim(
        "Loops take a third more memory (FraiLT; over the control's).",
        "TinyStories study, Figure 2",
        lambda s: count(story_memory(s.times["decoder"], "frailt"), at_most=1.4),
    ),
    Claim("Parameters are as printed (four models; how many off).", "TinyStories study, Table 2", stories_parameters),
)
