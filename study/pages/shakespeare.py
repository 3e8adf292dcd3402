"""The recurrence along the text, at width 128 and at its author's size."""

from collections.abc import Mapping

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from study.analysis.benchmarks import by_length, times_as_slow
from study.analysis.language import Language, rate_gain, short_run_losses
from study.analysis.records import seeds_in_words, seeds_of
from study.analysis.wording import seeds

LAYERS = ("gpt-1", "gpt-2", "gpt-4", "gpt-6")
STANDARD, RECURRENT = ("gpt-1", "gpt-2", "gpt-6"), ("kausik", "kausik-positions")


def quantities(
    runs: list[Record],
    in_full: list[Record],
    small: list[Record],
    short: list[Record],
    wide: list[Record],
    ngrams: list[Record],
    recurrence: Mapping,
    published: Mapping,
) -> Quantities:
    """Of the start of training by both recipes, of nanoGPT's recipe in full, of models of width 128 to the end, in
    short runs at two learning rates and of twice the width, of counted pairs and triples, of the recurrence's times by
    length, and of the study's published losses."""
    start = {
        recipe: Language([run for run in runs if run["recipe"] == recipe], f"shakespeare by the recipe {recipe}")
        for recipe in ("report", "nanogpt")
    }
    full, narrow = Language(in_full, "shakespeare in full"), Language(small, "width 128")
    wider = Language(wide, "width 256")

    def leads() -> list[float]:
        """By how many nats each recurrent model is ahead of each standard one at the start, by recipe and seed."""
        pairs = [(standard, recurrent) for standard in STANDARD for recurrent in RECURRENT]
        return [gap for language in start.values() for pair in pairs for gap in language.gaps(*pair)]

    def counted(letters: int) -> float:
        """The loss of a table of counted pairs or triples."""
        return ngrams[0]["losses"][str(letters)]

    def first_loss(model: str) -> float:
        return full.of(model)[0]["history"][0]["validation_loss"]

    def last(model: str, measure: str = "validation_loss") -> float:
        return full.of(model)[0]["history"][-1][measure]

    def steps(model: str) -> int:
        return full.of(model)[0]["config"]["train"]["steps"]

    def best_step(model: str) -> int:
        return full.of(model)[0]["selected"]["step"]

    def printed(recipe: str, model: str) -> dict:
        return published["losses"][recipe][model]

    def early_lead(rate: float) -> float:
        """Nats by which the recurrence leads the best standard model in short runs."""
        losses = short_run_losses(short)
        return min(losses[model][rate] for model in LAYERS) - losses["kausik"][rate]

    def gain_of_recurrence_runs(model: str) -> float:
        return rate_gain(short, model, 0.003)

    numbers = {
        # At width 128
        "recurrence_seeds": lambda: words(len(narrow.gaps("gpt-2", "kausik"))),
        "wide_recurrence": lambda: seeds(len(seeds_of(wide))),
        # In full
        "steps": lambda: number(steps("kausik"), ","),
        "characters": lambda: number(full.tokens("kausik") / 1e6, ".0f"),  # millions
        "seeds": lambda: seeds_in_words(in_full),
        "one_layer_seeds": lambda: words(len(full.of("gpt-1"))),
        "six_layers": lambda: number(full.loss("gpt-6"), ".3f"),
        "two_layers": lambda: number(full.loss("gpt-2"), ".3f"),
        "recurrence": lambda: number(full.loss("kausik"), ".3f"),
        "one_layer": lambda: number(full.loss("gpt-1"), ".3f"),
        "gain": lambda: number(full.gap("gpt-1", "kausik"), ".2f"),
        "best_step": lambda: number(best_step("gpt-6"), ","),
        "one_layer_end": lambda: number(last("gpt-1"), ".2f"),  # validation loss after the last step
        "two_layers_end": lambda: number(last("gpt-2"), ".2f"),
        "recurrence_end": lambda: number(last("kausik"), ".2f"),
        "six_layers_best": lambda: number(full.of("gpt-6")[0]["selected"]["validation_loss"], ".2f"),
        "six_layers_end": lambda: number(last("gpt-6"), ".2f"),
        "six_layers_training": lambda: number(last("gpt-6", "train_loss"), ".2f"),
        # At the start
        "own_share": lambda: number(start["report"].share("kausik"), ".2%"),
        "nanogpt_share": lambda: number(start["nanogpt"].share("kausik"), ".0%"),
        "start_seeds": lambda: seeds_in_words(runs),
        # Published
        "printed_recurrence": lambda: number(printed("report", "kausik")["loss"], ".4f"),
        "printed_six_layers": lambda: number(printed("report", "gpt-6")["loss"], ".4f"),
        "documented_six_layers": lambda: number(printed("nanogpt", "gpt-6")["loss"], ".4f"),
        # Time
        "slow_as_two_layers": lambda: number(times_as_slow(recurrence, "gpt-2")[0], ".1f"),
    }
    checks = {
        "recurrence_seeds": lambda: [
            max(narrow.gaps("gpt-2", "kausik")) < 0 < min(narrow.gaps("gpt-1", "kausik")),
            full.gap("gpt-2", "kausik") < 0 < full.gap("gpt-1", "kausik"),
            0 < early_lead(0.003) < early_lead(0.001),
            all(gain_of_recurrence_runs(model) > 0 for model in (*LAYERS, "kausik")),
        ],
        "wide_recurrence": lambda: [
            wider.loss("gpt-2") < wider.loss("kausik") < wider.loss("gpt-1"),
            narrow.gap("kausik-2", "gpt-2") < 0,
            min(narrow.gap("kausik-w4", "kausik"), narrow.gap("kausik-w8", "kausik-w4")) > 0,
        ],
        "order": lambda: [
            full.gap("gpt-1", "kausik") > 0.05,
            0 < full.gap("kausik", "gpt-2") < 0.02 < full.gap("kausik", "gpt-6"),
            first_loss("kausik") < min(map(first_loss, STANDARD)),
            min(leads()) > 0.4,
        ],
        "gain": lambda: [
            full.loss("gpt-6") < full.loss("gpt-2") < full.loss("kausik") < full.loss("gpt-1"),
            full.gap("gpt-1", "kausik") > 0.8 * full.gap("gpt-1", "gpt-2"),
            full.of("kausik")[0]["parameters"]["total"] < 0.5 * full.of("gpt-2")[0]["parameters"]["total"],
        ],
        "best_step": lambda: [
            full.gap("kausik", "gpt-6") > 0.03,
            best_step("gpt-6") <= steps("gpt-6") / 2,
            best_step("kausik") == steps("kausik"),
        ],
        "own_share": lambda: [
            min(leads()) > 0.4,
            max(leads()) < 0.6,
            abs(min(map(start["nanogpt"].loss, STANDARD)) - counted(2)) < 0.06,
            abs(max(map(start["report"].loss, STANDARD)) - counted(2)) < 0.06,
            max(language.loss("kausik-positions") for language in start.values()) < counted(3),
        ],
        "printed_recurrence": lambda: [
            abs(printed("nanogpt", "gpt-6")["loss"] - printed("report", "kausik")["loss"]) < 0.001,
            10 < printed("report", "kausik")["corrected_error"] / printed("report", "kausik")["error"] < 12,
        ],
        "slow_as_two_layers": lambda: [
            by_length(recurrence, "next_character", "kausik")[-1]
            < 1.05 * by_length(recurrence, "next_character", "kausik")[0],
            by_length(recurrence, "next_character", "gpt-6")[-1]
            > 1.5 * by_length(recurrence, "next_character", "gpt-6")[0],
            min(times_as_slow(recurrence, "gpt-6")[:4]) > 1,
            max(times_as_slow(recurrence, "gpt-6")[4:]) < 1,
            min(times_as_slow(recurrence, "gpt-2")) > 1,
        ],
    }
    return Quantities(numbers, checks)
