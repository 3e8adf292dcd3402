"""The commands that this study adds to `python -m rtx_core`."""

from typing import Annotated

Reduced = Annotated[bool, "at the budgets of two CPU cores"]


def list_runs(missing: Annotated[bool, "only what is missing or stale"], reduced: Reduced) -> None:
    """the runs of the paper: recorded, stale or missing, and about what each costs"""
    from rtx_core import records
    from rtx_core.experiments.cost import minutes
    from study import plan

    runs, total = records.records(), 0.0
    for config in plan.everything(reduced):
        why = plan.why(config)
        if why or not missing:
            cost = minutes(config, runs) if why else None
            total += cost or 0.0
            status = "recorded" if not why else why if why == "missing" else f"stale: {why}"
            status += f"  about {cost:,.0f} min" if cost else ""
            print(f"{config.name:<42} {config.model:<17} seed {config.seed}  {status}")
    if total:
        print(f"in all about {total / 60:,.1f} hours of one thread, where a like run is recorded")


def measure_all(reduced: Reduced) -> None:
    """every measurement of the paper that is missing or stale"""
    from study.measuring import measure

    measure(reduced)


def export_demo(
    runs: Annotated[list, "such as khop/1x4-seed6"],
    folder: Annotated[str, "of the page"] = "book/demo/models",
    source: Annotated[str, "embedded: quick runs on generated text"] = "hub",
) -> None:
    """the scripts of the page Try it, of classifiers or of looped decoders; without a run, all of book/demo anew"""
    from rtx_core import records
    from rtx_core.errors import RtxError
    from study.demo import explorer, export

    for address in runs or explorer.exported(folder):
        try:
            texts = "max_length" in records.load(address, source)["config"]["data"]
            print(*(export.export_demo if texts else explorer.export_explorer)(address, folder, source), sep="\n")
        except RtxError as error:
            if runs:
                raise
            print(f"What is of {address} stays as it is. {error}")


COMMANDS = {"list": list_runs, "measure-all": measure_all, "export-demo": export_demo}
