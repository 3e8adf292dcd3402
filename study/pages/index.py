"""The front page: what a second pass of one layer gains, on three tasks."""

from collections.abc import Mapping
from statistics import mean, median

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from study.analysis.hops import unpaired_odds
from study.folders import LONGER, Folders
from study.second_pass import ASKED, four_hops, questions


def quantities(folders: Mapping[str, list[Record]], parts: list[str], predictions: Mapping[str, int]) -> Quantities:
    """Of runs on pointers, facts and text by folder, the parts without which the animated model fails, and how many
    predictions came to which verdict."""
    runs = Folders(lambda name: folders.get(name, []))

    def head_in_the_second_pass() -> str:
        """Of two layers, whose third and fourth application make up pass 2."""
        step, head = next(map(int, part.split(".")) for part in parts if int(part[0]) > 2)
        return f"head {head} of layer {step - 2} in pass 2"

    asked = questions(runs)

    def single() -> list[float]:
        """Bits of a fact that one layer stores, run once, by seed."""
        return list(asked["bits"].scores["1x1"].values())

    def layer_sizes() -> list[int]:
        single = *runs.again("1x1"), *runs.wider_runs("1x1"), *runs.wide_text("1x1")
        return [run["parameters"]["non_embedding"] for run in single]

    numbers = {
        **{
            f"{key}_{name}": lambda one=one, model=model: number(mean(one.scores[model].values()), one.form)
            for key, one in asked.items()
            for name, model in zip(("once", "twice", "two"), ASKED)
        },
        **{f"{key}_share": lambda one=one: number(100 * one.share(), ".0f") for key, one in asked.items()},
        **{f"{key}_interval": lambda one=one: one.interval for key, one in asked.items()},
        **{f"{key}_seeds": lambda one=one: one.seeds for key, one in asked.items()},
        **{
            f"{key}_odds_share": lambda key=key: number(100 * asked[key].share_in_log_odds(), ".0f")
            for key in ("hops", "hops_long", "hops_wide")
        },
        "text_steps": lambda: str(runs.text_again("1x2-64")[0]["config"]["train"]["steps"]),
        "longer_seeds": lambda: words(len(runs.longer_single("hops"))),
        "head": head_in_the_second_pass,
        "loop_mean": lambda: number(mean(map(four_hops, runs.at_equal_work()[0])), ".1%"),
        "narrow_mean": lambda: number(mean(map(four_hops, runs.at_equal_work()[1])), ".1%"),
        **{
            f"{key}_{name}": lambda one=one, name=name: number(mean(one.scores_of(name)), one.form)
            for key, one in asked.items()
            for name in one.others
            if key in LONGER or (key, name) == ("hops_wide", "split")
        },
        "narrow_seeds": lambda: words(len(runs.at_equal_work()[1])),
        "four_passes": lambda: number(mean(map(four_hops, runs.again("1x4"))), ".1%"),
        "four_layers": lambda: number(mean(map(four_hops, runs.again("4x1"))), ".1%"),
        "single_least": lambda: number(min(single()), ".1f"),
        "single_most": lambda: number(max(single()), ".1f"),
        "hops_steps": lambda: number(runs.again("1x2")[0]["config"]["train"]["steps"], ","),
        "least_weights": lambda: number(min(layer_sizes()) / 1000, ".0f") + " thousand",
        "most_weights": lambda: number(max(layer_sizes()) / 1000, ".0f") + " thousand",
        "predictions": lambda: str(predictions["judged"]),
        "predictions_contradicted": lambda: str(predictions["contradicted"]),
        "predictions_kept": lambda: str(predictions["kept"]),
    }
    checks = {
        "second_pass": lambda: [0.6 < asked["hops"].share() < 0.85, 0.9 < asked["hops_wide"].share() < 1.15],
        "bits_share": lambda: [asked["bits"].share() < 0.25, asked["bits_wide"].share() < 0.1],
        "bits_long_share": lambda: [min(asked["bits_long"].shares) / 100 > -0.05, asked["bits_long"].share() < 0.3],
        "bits_wide_shares": lambda: [min(asked["bits"].p, asked["bits_wide"].p) > 0.1],
        "text_wide_share": lambda: [0.25 < asked["text_wide"].share() < 0.4, asked["text_wide"].p < 0.05],
        "four_passes": lambda: [unpaired_odds(runs.again("1x4"), runs.again("4x1")).p > 0.05],
        "text_long_share": lambda: [0.3 < asked["text_long"].share() < 0.6, asked["text_long"].p < 0.05],
        "text_share": lambda: [0.38 < asked["text"].share() < 0.62],
        "single_least": lambda: [min(single()) < 0.8 * max(single())],
        "split": lambda: [
            unpaired_odds(runs.again("1x2"), runs.split("hops", False)).p > 0.05,
            unpaired_odds(runs.again("1x2"), runs.split("hops", True)).odds[1] > 1,
        ],
        "ways": lambda: [
            asked["hops"].gain("longer") < 0.3 < asked["hops"].share() < asked["hops"].gain("split"),
            min(asked["text"].gain(way) for way in ("longer", "split")) > 0.9 > asked["text"].share(),
            max(asked[key].p_against("split") for key in ("hops", "hops_wide", "text")) < 0.05,
            asked["hops_wide"].gain("split") > 1.1,
            max(asked[key].p_against("longer") for key in ("hops", "text")) < 0.05,
            max(asked[key].p_against("split_steps") for key in ("text", "bits")) < 0.05,
            asked["hops"].p_against("split_steps") > 0.05,
            asked["bits"].p_against("longer") < 0.05 < asked["bits"].p_against("split"),
            max(asked["bits"].share(), asked["bits"].gain("split")) < 0.3 and asked["bits"].gain("longer") < 0.7,
        ],
        "same_weights": lambda: [len({runs.again(m)[0]["parameters"]["total"] for m in ("2x1", "2x2")}) == 1],
        "again_seeds": lambda: [
            len(runs.again("4x1-w44")) == len(runs.again("2x2")) == 20,
            unpaired_odds(runs.again("2x2"), runs.again("4x1")).p > 0.05,
            unpaired_odds(*runs.at_equal_work()).p > 0.05,
            median(map(four_hops, runs.at_equal_work()[1])) < median(map(four_hops, runs.at_equal_work()[0])),
            sum(four_hops(run) > 0.03 for run in runs.counted_again("2x2")) > 0,
            unpaired_odds(runs.again("2x2"), runs.again("4x1-w44")).odds[2] < 1,
        ],
    }
    return Quantities(numbers, checks)
