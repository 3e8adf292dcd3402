"""Tasks and models: what is scored in each task, and what guessing gives."""

from collections.abc import Callable
from math import log

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from study.analysis.hops import copying
from study.experiments import EXPERIMENTS


def quantities(recorded: list[Record], counted: list[Record]) -> Quantities:
    """Of one recorded run of each experiment, and of what counted pairs and triples of characters predict."""

    def run(experiment: str) -> Record:
        return next(record for record in recorded if record["experiment"] == experiment)

    def data(experiment: str, setting: str) -> int:
        return run(experiment)["config"]["data"][setting]

    def answers(experiment: str, part: int) -> str:
        """In the test, at the most hops or at one length."""
        return number(run(experiment)["test"]["parts"][part]["answers"], ",")

    def copied(experiment: str, at_best: bool) -> str:
        """The error of giving the letter two hops before the answer, or the letter in question."""
        hops = data(experiment, "hops")
        return number(copying(hops, hops - 2 if at_best else 0, data(experiment, "letters"), texts=500), ".0%")

    def pointers(name: str, experiment: str) -> dict[str, Callable[[], str]]:
        return {
            f"{name}_letters": lambda: number(data(experiment, "letters"), ","),
            f"{name}_answers": lambda: answers(experiment, -1),
            f"{name}_copied_best": lambda: copied(experiment, True),
            f"{name}_copied": lambda: copied(experiment, False),
        }

    def vocabulary(experiment: str) -> int:
        return run(experiment)["data"]["vocabulary"]

    def wrong_by_guessing(elements: int) -> str:
        return number(1 - 1 / elements, ".0%")

    numbers = {
        **pointers("four_hops", "khop"),
        **pointers("eight_hops", "khop-hard"),
        **pointers("sixteen_hops", "khop-published"),
        "alphabet": lambda: words(data("khop", "alphabet")),
        "keys": lambda: number(data("facts", "keys"), ","),
        "values": lambda: number(data("facts", "values"), ","),
        "fewer_facts": lambda: number(EXPERIMENTS["facts"].data.model_dump()["facts"], ","),
        "facts": lambda: number(data("facts", "facts"), ","),
        "all_bits": lambda: number(data("facts", "facts") * log(data("facts", "values"), 2), ",.0f"),
        "guessed_value": lambda: number(log(data("facts", "values")), ".2f"),
        "products_letters": lambda: number(data("state-tracking", "letters"), ","),
        "products_answers": lambda: answers("state-tracking", -1),
        "s3_guess": lambda: wrong_by_guessing(6),
        "a5_guess": lambda: wrong_by_guessing(60),
        "characters": lambda: number(vocabulary("iso-depth"), ","),
        "guessed_character": lambda: number(log(vocabulary("iso-depth")), ".2f"),
        "pairs": lambda: number(counted[0]["losses"]["2"], ".2f"),
        "triples": lambda: number(counted[0]["losses"]["3"], ".2f"),
        "characters_answers": lambda: number(run("iso-depth")["test"]["n"], ","),
        "pieces": lambda: number(vocabulary("tinystories-small"), ","),
        "guessed_piece": lambda: number(log(vocabulary("tinystories-small")), ".2f"),
        "stories_answers": lambda: number(run("tinystories-small")["test"]["n"], ","),
    }
    return Quantities(numbers)
