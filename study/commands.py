"""The commands that this study adds to `python -m rtx_core`."""

from argparse import ArgumentParser
from collections.abc import Callable


def list_runs(missing: bool, reduced: bool) -> None:
    """the runs of the paper: recorded, stale or missing, and about what each costs"""
    from rtx_core import records
    from study import plan

    known, total = records.records(), 0.0
    for config in plan.planned(reduced):
        why = plan.why(config)
        if missing and not why:
            continue
        cost = plan.minutes(config, known) if why else None
        total += cost or 0.0
        said = "recorded" if not why else why if why == "missing" else f"stale: {why}"
        about = f"  about {cost:,.0f} min" if cost else ""
        print(f"{config.name:<42} {config.model:<17} seed {config.seed}  {said}{about}")
    if total:
        print(f"in all about {total / 60:,.1f} hours of one thread")


def measure_all(reduced: bool) -> None:
    """every measurement of the paper that is missing or stale"""
    from study.plan import measure

    measure(reduced)


def export_demo(name: str, model: str, seed: int, source: str, folder: str) -> None:
    """the scripts that the page Try it loads: of texts an encoder in int8, a bag of words and the vocabulary, of
    pointers or cups the looped decoder"""
    from rtx_core import records
    from study.demo.explorer import export_explorer
    from study.demo.export import export_demo

    address = f"{name}/{model}-seed{seed}"
    if "corpus" in records.at(address, source)["config"]["data"]:
        print(*export_demo(address, folder, source), sep="\n")
    else:
        print(export_explorer(address, folder))


def commands(add: Callable, flags: Callable, of_run: ArgumentParser) -> None:
    """`add(name, function)` gives what adds an argument, `flags` adds switches,
    `of_run` are the arguments that name a run."""
    argument = add("list", list_runs)
    flags(argument, missing="only what is missing or stale", reduced="at the budgets of two CPU cores")
    flags(add("measure-all", measure_all), reduced="of runs at the budgets of two cores")
    add("export-demo", export_demo, parents=[of_run])("folder", help="book/demo/models, for the book")
