"""Bench your loop: whether its quick budget ranks models as longer training does."""

from statistics import mean, median

from rtx_core.benchmark import card, suite
from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.evidence import by_model
from rtx_core.report.quantities import Quantities, words
from study.analysis import full_bench
from study.analysis.hops import wrong
from study.analysis.ranking import (
    Errors,
    by_seed,
    correlation,
    correlation_interval,
    errors,
    errors_at_best_rates,
    swapped,
)

HOPS = 4
LOOPS = ("1x4", "2x2", "1x6-random")  # of the ladder
QUICK = tuple(f"{suite.PREFIX}{task}-quick" for task in suite.BUDGETS["quick"].tasks)  # names of its runs
SMALL = ("Universal", "TRM", "Hyper", "LSTM")  # recurrences of others (`study/recurrences`) of about one layer


def quantities(
    pointers: list[Record],
    quick: list[Record],
    facts: list[Record],
    standard: list[Record],
    tuned: list[Record],
    longer: list[Record],
) -> Quantities:
    """Of runs on four hops with several seeds, runs at the quick budget, runs on facts with more exposures, and those
    at the standard budget; and of runs on four hops, each model at its best rate, and after four times the training."""

    s3 = [run for run in standard if run["experiment"] == f"{suite.PREFIX}s3"]

    def of(task: str, model: str) -> list[Record]:
        return [run for run in quick if (run["experiment"], run["model"]) == (f"{suite.PREFIX}{task}", model)]

    def missed(task: str, model: str) -> float:
        return mean(suite.error(task, run)[0] for run in of(task, model))

    def stored(model: str) -> float:
        return mean(map(suite.kilobits, of("facts", model)))

    def quick_facts() -> Errors:
        """Of the ladder."""
        return {
            model: [suite.error("facts", run)[0] for run in of("facts", model)]
            for model in suite.LADDER
            if of("facts", model)
        }

    def agreement() -> list[float]:
        return [value for _, value in by_seed(pointers, HOPS).values()]

    def models() -> list[int]:
        return [count for count, _ in by_seed(pointers, HOPS).values()]

    def products() -> tuple[Errors, Errors]:
        """The errors on S3 of the first seed at the quick budget, and at the standard budget."""
        first = [run for run in quick if run["experiment"] == f"{suite.PREFIX}s3" and run["seed"] == 0]
        return errors(first), errors_at_best_rates(s3)

    def standard_and_longer() -> tuple[Errors, Errors]:
        """The errors at four hops."""

        def of(runs: list[Record]) -> Errors:
            return {model: [wrong(run, HOPS) for run in tried] for model, tried in by_model(runs).items()}

        return of(tuned), of(longer)

    def universal(task: str, role: str) -> str:
        """The verdict on it beside a stack, at the standard budget."""
        return full_bench.judged("Universal", standard)[task, role][2].verdict

    compared = {"s3": products, "facts": lambda: (quick_facts(), errors(facts)), "longer": standard_and_longer}

    numbers = {
        **{
            f"{key}_{task}": lambda task=task, model=model: card.score(missed(task, model), "error")
            for task in ("pointers", "s3")
            for key, model in (("hyper", "Hyper"), ("loop", "1x4"))
        },
        "huginn_s3": lambda: card.score(missed("s3", "Huginn"), "error"),
        "pointer_models": lambda: f"{min(models())} to {max(models())}",
        "pointer_seeds": lambda: words(len(agreement())),
        "agreement": lambda: number(median(agreement()), ".2f"),
        "agreement_least": lambda: number(min(agreement()), ".2f"),
        "agreement_most": lambda: number(max(agreement()), ".2f"),
        **{
            f"{key}_models": lambda of=of: words(len(set.intersection(*(set(scores) for scores in of()))))
            for key, of in compared.items()
        },
        **{f"{key}_agreement": lambda of=of: number(correlation(*of()), ".2f") for key, of in compared.items()},
        **{
            f"{key}_agreement_{end}": lambda of=of, place=place: number(correlation_interval(*of())[place], ".2f")
            for key, of in compared.items()
            if key != "facts"
            for place, end in enumerate(("low", "high"))
        },
        "exposures": lambda: str(facts[0]["config"]["train"]["epochs"]),
    }
    checks = {
        "hyper_pointers": lambda: [
            missed("pointers", "Hyper")
            < min(missed("pointers", each) for each in ("2x2", "1x4", "4x1", "Huginn", "TRM")),
            missed("s3", "Huginn") < missed("s3", "Hyper") < min(missed("s3", loop) for loop in ("1x4", "2x2", "TRM")),
            max(map(stored, SMALL)) < stored("1x1") < stored("Huginn") < stored("2x1"),
            stored("Universal") < 1,
            missed("pointers", "LSTM") > 0.4 and missed("s3", "LSTM") < 0.001,
        ],
        "in_full": lambda: [
            universal("pointers", "as large") == "better",
            universal("pointers", "as deep") == "cannot say",
            universal("facts", "as large") == universal("facts", "as deep") == "worse",
            all(one.verdict != "better" for _, _, one in full_bench.judged("TRM", standard).values()),
            all(
                full_bench.judged(name, standard)[suite.TEXT, "as deep"][2].verdict == "worse"
                for name in ("Universal", "TRM")
            ),
            {full_bench.judged(name, standard)[suite.TEXT, "as large"][2].verdict for name in ("Universal", "TRM")}
            == {"cannot say"},
        ],
        "agreement": lambda: [median(agreement()) > 0.75, min(agreement()) < 0.85],
        "s3_agreement": lambda: [
            0.5 < correlation(*products()) < 0.8,
            all(min(map(mean, scores.values())) == mean(scores["LSTM"]) for scores in products()),
            max(mean(products()[0][m]) for m in LOOPS) < min(mean(products()[0][m]) for m in suite.STACKS),
            mean(products()[1]["4x1"]) < min(mean(products()[1][loop]) for loop in LOOPS),
        ],
        "facts_agreement": lambda: [
            correlation(*compared["facts"]()) > 0.7,
            swapped(*compared["facts"]()) == [("1x1", "1x4"), ("2x1", "2x2")]
            and mean(quick_facts()["1x1"]) < mean(quick_facts()["1x4"])
            and mean(quick_facts()["2x1"]) < mean(quick_facts()["2x2"]),
        ],
    }
    return Quantities(numbers, checks)
