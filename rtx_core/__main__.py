"""The command line: `python -m rtx_core COMMAND`, or `rtx COMMAND` where the package is installed."""

import argparse
import os
import sys

import yaml

from rtx_core.errors import RtxError


def settings_of(words: list[str]) -> tuple[list[str], dict[str, object]]:
    """(plain words, {name: value}) of words such as `epochs=1` or `seeds=[0,1]`."""
    plain, given = [], {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            plain.append(word)
            continue
        try:
            given[name] = yaml.safe_load(value)
        except (yaml.YAMLError, RecursionError):
            raise RtxError(f"{word:.80} cannot be read; write name=value, seeds=[0,1] for a list.") from None
    return plain, given


def list_runs(chosen: argparse.Namespace) -> None:
    """the runs of the paper: recorded, stale or missing, and about what each costs"""
    from rtx_core import plan, records

    known, total = records.records(), 0.0
    for config in plan.planned(chosen.reduced):
        why = plan.why(config)
        if chosen.missing and not why:
            continue
        cost = plan.minutes(config, known) if why else None
        total += cost or 0.0
        said = "recorded" if not why else why if why == "missing" else f"stale: {why}"
        about = f"  about {cost:,.0f} min" if cost else ""
        print(f"{config.name:<42} {config.model:<17} seed {config.seed}  {said}{about}")
    if total:
        print(f"in all about {total / 60:,.1f} hours of one thread")


def run(chosen: argparse.Namespace) -> None:
    """train runs: an experiment, its models, and settings as name=value; or --plan, all of the paper"""
    from rtx_core import plan, runner
    from rtx_core.train.distributed import distributed

    with distributed() as ranks:
        if chosen.plan:
            plan.make(chosen.reduced, chosen.missing)
            return
        names, given = settings_of(chosen.words)
        if not names:
            raise RtxError(
                "Nothing to run: give an experiment, as in `run sst2 recurrent seed=1`, or --plan."
            )
        if "seed" in given:
            given["seeds"] = [given.pop("seed")]
        models = given.pop("models", names[1:] or None)
        done = runner.runs(names[0], models=models, replace=chosen.replace, **given)
        for made in done if ranks.first else ():
            print(f"{made.config.name} · {made.config.model} · seed {made.config.seed} · {made.record.score}")


def results(chosen: argparse.Namespace) -> None:
    """a table of the recorded runs"""
    from rtx_core import records

    columns = ["name", "model", "seed", "budget", "accuracy", "loss", "parameters", "minutes", "stale"]
    table = records.results(**({"experiment": chosen.experiment} if chosen.experiment else {}))
    print(table[columns].round(4).to_string(index=False) if len(table) else "no run is recorded")


def classify(chosen: argparse.Namespace) -> None:
    """label texts with a trained model: NAME MODEL "a text" …, or texts from standard input, one a line"""
    from rtx_core.predict import load

    texts = chosen.texts or [line.strip() for line in sys.stdin if line.strip()]
    model = load(f"{chosen.name}/{chosen.model}-seed{chosen.seed}", chosen.source)
    print(model.classify(texts, passes=chosen.passes).round(4).to_string(index=False))


def doctor(chosen: argparse.Namespace) -> None:
    """whether environment, data, records and unfinished runs are in order, and what to type where not"""
    from rtx_core import checkup

    sys.exit(checkup.main())


def audit(chosen: argparse.Namespace) -> None:
    """train a recorded run again and compare: history, metrics, predictions"""
    from rtx_core.audit import audit

    print(audit(chosen.record, chosen.steps, chosen.keep))


def golden(chosen: argparse.Namespace) -> None:
    """tiny runs that tell whether the code gives the same numbers; --accept registers today's code"""
    from rtx_core.golden import main

    main(accept=chosen.accept, new=chosen.new, show=chosen.show)


def import_records(chosen: argparse.Namespace) -> None:
    """bring records made elsewhere into results/, verified, all or none"""
    from rtx_core import importing

    importing.main(chosen.folder, chosen.replace)


def export(chosen: argparse.Namespace) -> None:
    """a trained model as a folder with weights, settings, tokenizer and a card, as the hub lays models out"""
    from rtx_core.export import export

    print(export(f"{chosen.name}/{chosen.model}-seed{chosen.seed}", chosen.folder, chosen.source))


def export_demo(chosen: argparse.Namespace) -> None:
    """the scripts that the page Try it loads: a trained encoder in int8, a bag of words, the vocabulary"""
    from rtx_core.export_demo import export_demo

    for file in export_demo(f"{chosen.name}/{chosen.model}-seed{chosen.seed}", chosen.folder, chosen.source):
        print(file)


def measure(chosen: argparse.Namespace) -> None:
    """measure trained models: transfer, precision, rounding, attention, yardstick, ngrams, initial, judge, demo"""
    from rtx_core import plan
    from rtx_core.measure import measure

    names, given = settings_of(chosen.words)
    if chosen.plan:
        plan.measure(chosen.reduced)
    elif len(names) != 2:
        raise RtxError(
            "Nothing to measure: give KIND and EXPERIMENT, as `measure yardstick sst2`, or --plan."
        )
    else:
        measure(*names, **given)


def parser() -> argparse.ArgumentParser:
    commands = argparse.ArgumentParser(prog="rtx", description="Recurrent against standard transformers.")
    found = commands.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, function) -> argparse.ArgumentParser:
        one = found.add_parser(name, help=function.__doc__, description=function.__doc__)
        one.set_defaults(function=function)
        return one

    def add_of_run(name: str, function) -> argparse.ArgumentParser:
        one = add(name, function)
        one.add_argument("name", help="of the run's folder, as sst2")
        one.add_argument("model")
        one.add_argument("--seed", type=int, default=0)
        one.add_argument("--source", default="hub", help="embedded: a quick run on generated text")
        return one

    one = add("list", list_runs)
    one.add_argument("--missing", action="store_true", help="only what is missing or stale")
    one.add_argument("--reduced", action="store_true", help="at the budgets of two CPU cores")
    one = add("run", run)
    one.add_argument("words", nargs="*", metavar="WORD", help="EXPERIMENT [MODEL …] [name=value …]")
    one.add_argument("--replace", action="store_true", help="make recorded runs again")
    one.add_argument("--plan", action="store_true", help="every run of the paper that is missing or stale")
    one.add_argument("--missing", action="store_true", help="with --plan: leave stale ones as they are")
    one.add_argument("--reduced", action="store_true", help="with --plan: at the budgets of two CPU cores")
    add("results", results).add_argument("experiment", nargs="?", help="only of this experiment")
    one = add_of_run("classify", classify)
    one.add_argument("texts", nargs="*")
    one.add_argument("--passes", action="store_true", help="the answer after each pass")
    add("doctor", doctor)
    one = add("audit", audit)
    one.add_argument("record", help="results/sst2-10pct/recurrent-seed0.json")
    one.add_argument("--steps", type=int, default=0, help="only so many optimizer steps")
    one.add_argument("--keep", action="store_true", help="write the outcome to results/audits/")
    one = add("golden", golden)
    one.add_argument(
        "--accept", action="store_true", help="register today's code if it gives the same numbers"
    )
    one.add_argument(
        "--new", action="store_true", help="register today's code as new: older records are stale"
    )
    one.add_argument("--show", action="store_true", help="print the numbers as JSON")
    one = add("import", import_records)
    one.add_argument("folder", help="a results/ folder of another machine")
    one.add_argument("--replace", action="store_true", help="overwrite records of the same name")
    one = add_of_run("export", export)
    one.add_argument("folder", help="a new or empty one")
    one = add_of_run("export-demo", export_demo)
    one.add_argument("folder", help="book/demo/models, for the book")
    one = add("measure", measure)
    one.add_argument("words", nargs="*", metavar="WORD", help="KIND EXPERIMENT [name=value …]")
    one.add_argument("--plan", action="store_true", help="every measurement that is missing or stale")
    one.add_argument(
        "--reduced", action="store_true", help="with --plan: of runs at the budgets of two cores"
    )
    return commands


def main() -> None:
    chosen, more = parser().parse_known_args()
    if more and (chosen.command != "classify" or any(word.startswith("-") for word in more)):
        parser().error(f"unknown words: {' '.join(more)}")
    if more:  # texts after an option
        chosen.texts += more
    try:
        chosen.function(chosen)
    except RtxError as error:
        sys.exit(str(error))
    except BrokenPipeError:  # `list | head`; what is still to be written goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
