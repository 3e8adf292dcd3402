"""What the pages of measurements say in words: it follows from the records, and changes with them."""

import numpy as np
import pytest
import scipy
from factory import SST2, content, markdown, plain, predictions, saved

from rtx_core.pages import measured, transfer
from rtx_core.parameters import settings
from rtx_core.results import measurement
from rtx_core.tasks import task

pytestmark = pytest.mark.usefixtures("home")


def measure(kind: str, of: str, name: str, wrong=(), **more) -> None:
    """A measurement of `name`, like baseline-seed0, that answers these texts wrongly."""
    made = content(SST2, wrong=wrong)
    model, _, seed = name.partition("-seed")
    entries = {"model": model, "seed": int(seed[0]), "protocol": "report", "environment": made["environment"], "data": made["data"], "test": made["test"]}
    measurement.save({"kind": kind, "of": of, "name": name, "code": measurement.made_by(kind), **entries, **more}, *predictions(wrong))


def said(shown) -> str:
    return plain(markdown(shown))


def test_a_variant_is_called_by_its_title_and_budget():
    assert measured.called("sst2-10pct") == "SST-2, 10 % of the training part"
    assert measured.called("yelp-trainrows10000-epochs1") == "Yelp (epochs 1, train rows 10,000)"
    assert measured.called("sst2-maxlength32") == "sst2-maxlength32"  # no task of the paper
    assert [measured.listed(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


# -- transfer ----------------------------------------------------------------------------------------------------------

WAY = {"trained_on": "sst2-10pct", "tested_on": "yelp"}


def test_transfer_table_shows_ranking_beside_threshold():
    measure("transfer", "sst2-10pct-to-yelp", "baseline-seed0", range(0, 40, 2), **WAY)  # 20 negative texts called positive
    shown = said(transfer.accuracies("real", label="tab-t"))
    assert "| SST-2, 10 % of the training part | Yelp | Baseline | 0 | 0.9000 (0.8506 to 0.9343) |" in shown
    assert "| 0.9000 | 60.0 % | – |" in shown and "truly positive are 50.0 % of Yelp" in shown


def test_seeds_of_a_direction_are_compared_together():
    for seed, (a, b) in enumerate(((30, 46), (30, 50), (38, 30))):
        measure("transfer", "sst2-10pct-to-yelp", f"baseline-seed{seed}", range(a), **WAY)
        measure("transfer", "sst2-10pct-to-yelp", f"recurrent-seed{seed}", range(b), **WAY)
    shown = said(transfer.differences("real"))
    assert "Baseline minus Recurrent is +8.00, +10.00 and -4.00 points with seeds 0, 1 and 2. The seeds disagree on which model is ahead." in shown
    assert "+4.67 points (95 % interval -14.1" in shown and shown.count("may well be chance") == 1 and "rarely" not in shown and "McNemar" not in shown
    assert "**Trained on SST-2, 10 % of the training part, tested on Yelp.**" in shown and "paired t-test over seeds, p = " in shown.split("AUC", 1)[1]
    measure("transfer", "sst2-10pct-to-yelp", "baseline-seed2", range(12), **WAY)
    shown = said(transfer.differences("real"))
    assert "disagree" not in shown and "chance alone would rarely give" in shown


def test_one_seed_says_that_it_is_one():
    measure("transfer", "sst2-10pct-to-yelp", "baseline-seed0", range(10), **WAY)
    measure("transfer", "sst2-10pct-to-yelp", "recurrent-seed0", range(5, 40), **WAY)
    measure("transfer", "yelp-to-sst2", "baseline-seed0", range(10), trained_on="yelp", tested_on="sst2")
    shown = said(transfer.differences("real"))
    assert shown.startswith("**Trained on SST-2, 10 %") and "With one seed, 0, Baseline minus Recurrent is +12.50 points" in shown
    assert "of 200 texts 30 are right with the first only and 5 " in shown and "what another seed would change, one seed cannot show." in shown
    assert "AUC is 0.9500 and 0.8250; 50.0 % and 49.5 % of the texts are called positive, 50.0 % are." in shown


# -- yardstick ---------------------------------------------------------------------------------------------------------


def test_yardstick_reading_counts_who_is_ahead():
    assert said(measured.yardstick_reading("real")) == "No model is measured beside the bag of words yet."
    measure("yardstick", "sst2", "bag-of-words-seed0", range(30))
    saved(SST2, "baseline", wrong=range(10))
    shown = said(measured.yardstick_reading("real"))
    assert shown.startswith("Of 1 task with Baseline beside it, the bag of words is significantly ahead on 0 and behind on 1 (1 at the full protocol: "
                            "SST-2, pooled split); on 0 the test cannot tell.") and "Recurrent" not in shown and "word order" not in shown  # fmt: skip
    measure("yardstick", "yelp", "bag-of-words-seed0", range(30))
    saved(settings("yelp", {"epochs": 1, "train_rows": 10_000}), "baseline", wrong=range(80))
    saved(task("sst2-short"), "recurrent", wrong=range(60)), measure("yardstick", "sst2-short", "bag-of-words-seed0", range(30))
    shown = said(measured.yardstick_reading("real"))
    assert "Of 2 tasks with Baseline beside it, the bag of words is significantly ahead on 1 (0 at the full protocol) and behind on 1 (1 at" in shown
    assert "Of 1 task with Recurrent beside it, the bag of words is significantly ahead on 1 (1 at the full protocol: SST-2, short texts)" in shown
    assert "does not tell what word order is worth" in shown


def test_yardstick_takes_the_mean_over_seeds_and_their_test():
    measure("yardstick", "sst2-10pct", "bag-of-words-seed0", range(30))
    wrong = (40, 44, 51)
    for seed, n in enumerate(wrong):
        saved(task("sst2-10pct"), "baseline", seed, wrong=range(n))
    p = scipy.stats.ttest_1samp([1 - n / 200 for n in wrong], 0.85).pvalue
    row = next(line for line in said(measured.yardstick("real", label="tab-y")).splitlines() if "10 %" in line and line.startswith("|"))
    assert f"| full | {1 - np.mean(wrong) / 200:.4f} | -7.50 | {p:.2g} |" in row
    shown = said(measured.yardstick("real", label="tab-y"))
    assert "Baseline on SST-2, 10 % of the training part: 3" in shown and ":::{table} A bag of words and the two models on the same texts." in shown


# -- precision ---------------------------------------------------------------------------------------------------------


def test_formats_reading_tells_a_loss_from_none():
    assert said(measured.formats_reading("real")) == "Whether a smaller format costs accuracy is not measured yet."
    for model in ("baseline", "recurrent"):
        for kind in ("fp32", "bf16", "int8"):
            measure("precision", "sst2", f"{model}-seed0-{kind}", range(40 + (kind == "bf16")), format=kind)
    shown = said(measured.formats_reading("real"))
    assert shown.startswith("No smaller format changes accuracy significantly, of 4 comparisons with FP32 (smallest p = 1 by McNemar's exact test")
    assert "the largest change is -0.50 points, of Baseline in BF16" in shown and "lose more in none, and less in none" in shown
    assert "FP16 has a dash, not measured on Test CPU (2 threads): a format that a processor has no arithmetic for is left out." in shown
    measure("precision", "sst2", "recurrent-seed0-int8", range(60), format="int8")
    shown = said(measured.formats_reading("real"))
    assert shown.startswith("Accuracy changes significantly for Recurrent in INT8, dynamic by -10.00 points, of 4 comparisons with FP32 (smallest p = 1.9e-06")
    assert "Recurrent in INT8, dynamic -10.00 (-14" in shown and "lose more in 1, and less in none" in shown


def curves(shared: float, unshared: float, spread: float, recurrent: float) -> list[dict]:
    pairs = [{"comparison": "random", "arm": arm, "seed": seed, "bits": 4, "errors": [size * (1 + seed * spread * (arm == "shared"))]}
             for arm, size in (("shared", shared), ("unshared", unshared)) for seed in range(3)]  # fmt: skip
    ends = {"baseline": 0.1, "recurrent": recurrent}
    return pairs + [{"comparison": "trained", "arm": arm, "seed": 0, "bits": 4, "errors": [error]} for arm, error in ends.items()]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((0.04, 0.03, 0.01, 0.08), ("above 1 in 1, below 1 in 0, and above $\\sqrt 2$ in 0, so sharing amplifies", "in all of them, and in none significantly by more",
                                    "a larger error than Baseline at 0 of 1 bit widths and a smaller one at 1, from 0.80 to 0.80")),
        ((0.09, 0.03, 0.01, 0.12), ("above $\\sqrt 2$ in 1, so sharing amplifies the error in all of them.", "larger error than Baseline at 1 of 1")),
        ((0.02, 0.03, 0.01, 0.12), ("above 1 in 0, below 1 in 1, and above $\\sqrt 2$ in 0, so sharing is shown to amplify the error in none of them.",)),
        ((0.03, 0.03, 0.50, 0.12), ("above 1 in 0, below 1 in 0,", "1.44 to 1.44 in fresh pairs")),
    ],
)  # fmt: skip
def test_rounding_reading_follows_the_ratios(given, expected):
    assert said(measured.rounding_reading("real")) == "Whether sharing amplifies the error is not measured yet."
    measurement.save({"kind": "rounding", "of": "sst2", "name": "errors", "model": "recurrent-wide", "seed": 0, "protocol": "report", "data": {"source": "hub"},
                      "environment": {}, "code": measurement.made_by("rounding"), "texts": 2, "tokens": 9, "curves": curves(*given)})  # fmt: skip
    shown = said(measured.rounding_reading("real"))
    assert "Over 4 to 4 bits" in shown and "\\sqrt 2 = 1.414$" in shown and all(one in shown for one in expected)
