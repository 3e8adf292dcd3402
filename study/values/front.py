"""Names of the front page, abstract, discussion and conclusions, such as `front.tasks.short`."""

from rtx_core.report import statistics
from rtx_core.report.evidence import badge
from rtx_core.report.values import Gap, Space, Task, look_up
from study import claims, paper

MODELS = ("baseline", "recurrent")


def of(name: str, model: str) -> list:
    return paper.records(name=name, model=model)


def front() -> Space:
    """Baseline − Recurrent of all tasks, p adjusted."""
    compared = look_up("compared").items()
    pairs = {task: [of(name, model) for model in MODELS] for task, (_, name) in compared}
    family = statistics.adjusted([statistics.difference(*pair) for pair in pairs.values()])
    tasks = {task: Gap(found, badge(pair)) for (task, pair), found in zip(pairs.items(), family)}
    full = [task for task, gap in tasks.items() if gap.badge.budget == "full"]
    return Space(
        {
            "tasks": tasks,
            "sst2": Task(statistics.common(*pairs["sst2"]), called="sst2"),  # of the seeds that both have
            "full": tuple(tasks[task] for task in full),
            "largest": max(abs(tasks[task]) for task in full),
            "tenth": learning("sst2-10pct"),
        }
    )


def learning(name: str) -> dict[str, float]:
    """The least of all runs: training accuracy of the last epoch, and its validation loss over the lowest."""
    histories = [run["history"] for model in MODELS for run in of(name, model)]
    rises = [rows[-1]["validation_loss"] / min(row["validation_loss"] for row in rows) for rows in histories]
    return {"trained": min(rows[-1]["train_accuracy"] for rows in histories), "least_rise": min(rises)}


def scoreboard() -> Space:
    """How many claims have which outcome: `scoreboard.reproduced`."""
    found = claims.judged()["outcome"]
    counts = {word.replace(" ", "_"): int((found == word).sum()) for word in claims.OUTCOMES}
    return Space(counts | {"all": len(found)})


VALUES = {"front": front, "scoreboard": scoreboard}
