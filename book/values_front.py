"""Names of the front page, abstract, discussion and conclusions, such as `front.words.short.recurrent`."""

from rtx_core import records
from rtx_core.models.registry import config_of
from rtx_core.report import statistics
from rtx_core.report.values import Gap, Space, Task, badge

FULL = {"sst2": "sst2", "official": "sst2-official", "short": "sst2-short", "tenth": "sst2-10pct"}
REDUCED = {
    "grouped": "sst2-grouped-epochs1",
    "half": "sst2-50pct-epochs1",
    "long": "sst2-long-epochs1",
    "yelp": "yelp-trainrows10000-epochs1",
    "yelp_512": "yelp-maxlength512-trainrows10000-epochs1",
}
MODELS = ("baseline", "recurrent")


def of(name: str, model: str) -> list:
    return records.records(name=name, model=model)


def front() -> Space:
    """Baseline − Recurrent of all tasks, p adjusted; models against word counts; the worth of a pass."""
    pairs = {task: [of(name, model) for model in MODELS] for task, name in (FULL | REDUCED).items()}
    family = statistics.adjusted([statistics.difference(*pair) for pair in pairs.values()])
    tasks = {task: Gap(found, badge(pair)) for (task, pair), found in zip(pairs.items(), family)}
    loop = of("sst2-10pct", "recurrent")
    return Space(
        {
            "tasks": tasks,
            "sst2": Task(statistics.common(*pairs["sst2"]), called="sst2"),  # of the seeds that both have
            "full": tuple(tasks[task] for task in FULL),
            "largest": max(abs(tasks[task]) for task in FULL),
            "reduced": tuple(tasks[task] for task in REDUCED),
            "words": {task: beside_words(name) for task, name in FULL.items()},
            "second_pass": gap(loop, of("sst2-10pct-numpasses1", "recurrent")),
            "third_pass": gap(of("sst2-10pct-numpasses3", "recurrent"), loop),
            "six_layers": gap(loop, of("sst2-10pct-numlayers6-numpasses1", "recurrent")),
            "wide": gap(of("sst2-10pct", "baseline"), of("sst2-10pct", "recurrent-wide")),
            "saved": saved(),
            "tenth": learning("sst2-10pct"),
            "chosen": [chosen(name) for name in FULL.values()],
        }
    )


def gap(first: list, second: list) -> Gap:
    return Gap(statistics.difference(first, second), badge([first, second]))


def beside_words(name: str) -> dict[str, Gap]:
    """Model − bag of words on the same texts; of three seeds or more by the t-test over seeds."""
    (words,) = records.measurements("yardstick", of=name)
    found = {}
    for model in MODELS:
        runs = of(name, model)
        if len(runs) < statistics.ENOUGH_SEEDS:
            found[model] = gap(runs, [words])
            continue
        scores = [run["test"]["accuracy"] for run in runs]
        other = [words["test"]["accuracy"]] * len(runs)
        by_seed = tuple(score - other[0] for score in scores)
        n = words["test"]["n"]
        over = statistics.Difference(*statistics.over_seeds(scores, other), n, by_seed, "t-test over seeds")
        found[model] = Gap(over, badge(runs))
    return found


def saved() -> dict[str, float]:
    """Shares the recurrent model is without: of parameters, of those outside the embedding, of arithmetic."""
    first, second = (of("sst2", model)[0]["parameters"] for model in MODELS)
    work = {model: products(model) for model in (*MODELS, "recurrent-wide")}
    return {
        "total": 1 - second["total"] / first["total"],
        "layers": 1 - second["non_embedding"] / first["non_embedding"],
        "embedding": 1 - first["non_embedding"] / first["total"],
        "products": 1 - work["recurrent"] / work["baseline"],
        "wide_products": 1 - work["recurrent-wide"] / work["baseline"],
    }


def products(model: str) -> int:
    """Operations of a token in the matrix products of an encoder's layers, scores of attention aside."""
    config = config_of(model)
    d, f = config.hidden_size, config.intermediate_size
    return 2 * config.num_passes * config.num_layers * (4 * d * d + 3 * d * f)


def learning(name: str) -> dict[str, float]:
    """Of all runs: least training accuracy of the last epoch, and its validation loss over the lowest."""
    histories = [run["history"] for model in MODELS for run in of(name, model)]
    ratios = [rows[-1]["validation_loss"] / min(row["validation_loss"] for row in rows) for rows in histories]
    return {
        "trained": min(rows[-1]["train_accuracy"] for rows in histories),
        "least_rise": min(ratios),
        "most_rise": max(ratios),
    }


def chosen(name: str) -> float:
    """The latest epoch that was chosen for a model of this task."""
    runs = [run for model in MODELS for run in of(name, model)]
    return max(
        row["epoch"] for run in runs for row in run["history"] if row["step"] == run["selected"]["step"]
    )


VALUES = {"front": front}
