"""The command line: `python -m rtx_core COMMAND`, or `rtx COMMAND` where the package is installed."""

import argparse
import os
import signal
import sys
from collections.abc import Callable

import yaml

from rtx_core import study
from rtx_core.errors import RtxError

SOURCE = {"default": "hub", "help": "embedded: quick runs on generated text"}


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
        except (yaml.YAMLError, ValueError, RecursionError):
            raise RtxError(f"{word:.80} cannot be read; write name=value, seeds=[0,1] for a list.") from None
    return plain, given


def run(words: list[str], replace: bool) -> None:
    """train runs: an experiment, its models, and settings as name=value"""
    from rtx_core.experiments.run import runs

    names, given = settings_of(words)
    if not names:
        raise RtxError("Nothing to run: give an experiment, as in `run sst2 recurrent seed=1`.")
    if "seed" in given:
        given["seeds"] = [given.pop("seed")]
    if "replace" in given:
        raise RtxError("Recorded runs are made again by --replace, not by a setting.")
    if "models" in given and names[1:]:
        raise RtxError(f"Give the models once: {' '.join(names[1:])!r:.60}, or models=[…].")
    models = given.pop("models", names[1:] or None)
    for made in runs(names[0], models=models, replace=replace, **given):
        print(f"{made.config.name} · {made.config.model} · seed {made.config.seed} · {made.record.score}")


def results(experiment: str | None, source: str) -> None:
    """a table of the recorded runs"""
    from rtx_core import records

    columns = ["name", "model", "seed", "budget", "accuracy", "loss", "parameters", "minutes", "stale"]
    table = records.results(experiment, source=source)
    print(table[columns].round(4).to_string(index=False) if len(table) else "no run is recorded")


def classify(name: str, model: str, seed: int, source: str, texts: list[str], passes: bool) -> None:
    """label texts with a trained model: NAME MODEL "a text" …, or texts from standard input, one a line"""
    from rtx_core.experiments.predict import load

    if not texts and sys.stdin:
        # What is no UTF-8 comes in, too, and is refused as a text.
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        texts = [line.strip() for line in sys.stdin if line.strip()]
    found = load(f"{name}/{model}-seed{seed}", source).classify(texts, passes)
    print(found.round(4).to_string(index=False))


def doctor() -> None:
    """whether environment, data, records and unfinished runs are in order, and what to type where not"""
    from rtx_core.experiments.doctor import main

    sys.exit(main())


def audit(record: str, steps: int, keep: bool) -> None:
    """train a recorded run again and compare: history, metrics, predictions"""
    from rtx_core.experiments.audit import audit

    print(audit(record, steps, keep))


def golden(**asked: bool) -> None:
    """tiny runs that tell whether the code gives the same numbers; --accept registers today's code"""
    from rtx_core.records.golden import main

    main(**asked)


def import_records(folder: str, replace: bool) -> None:
    """bring records made elsewhere into results/, if all of them are sound"""
    from rtx_core.experiments.importing import import_records

    print(f"{len(import_records(folder, replace))} new records imported")


def export(name: str, model: str, seed: int, source: str, folder: str) -> None:
    """a trained model as a folder with weights, settings, tokenizer and a card, as the hub lays models out"""
    from rtx_core.experiments.export import export

    print(export(f"{name}/{model}-seed{seed}", folder, source))


def measure(words: list[str]) -> None:
    """measure trained models and data, a kind of measurement of an experiment"""
    from rtx_core.experiments.measure import measure
    from rtx_core.paths import home

    names, given = settings_of(words)
    if "seed" in given:
        given["seeds"] = [given.pop("seed")]
    if len(names) != 2:
        raise RtxError("Nothing to measure: give KIND and EXPERIMENT, as `measure yardstick sst2`.")
    print(*(found.path.relative_to(home()) for found in measure(*names, **given)), sep="\n")


def parser() -> argparse.ArgumentParser:
    commands = argparse.ArgumentParser(prog="rtx", description="Recurrent against standard transformers.")
    found = commands.add_subparsers(dest="command", metavar="COMMAND", required=True)
    of_run = argparse.ArgumentParser(add_help=False)
    of_run.add_argument("name", help="of the run's folder, as sst2")
    of_run.add_argument("model")
    of_run.add_argument("--seed", type=int, default=0)
    of_run.add_argument("--source", **SOURCE)

    def add(name: str, function: Callable, exclusive: bool = False, **options) -> Callable:
        one = found.add_parser(name, help=function.__doc__, description=function.__doc__, **options)
        one.set_defaults(function=function)
        return (one.add_mutually_exclusive_group() if exclusive else one).add_argument

    def flags(argument: Callable, **helps: str) -> None:
        for name, text in helps.items():
            argument(f"--{name}", action="store_true", help=text)

    argument = add("run", run)
    argument("words", nargs="*", metavar="WORD", help="EXPERIMENT [MODEL …] [name=value …]")
    flags(argument, replace="make recorded runs again")
    argument = add("results", results)
    argument("experiment", nargs="?", help="only of this experiment")
    argument("--source", **SOURCE | {"default": ""})
    argument = add("classify", classify, parents=[of_run])
    argument("texts", nargs="*")
    flags(argument, passes="the answer after each pass")
    add("doctor", doctor)
    argument = add("audit", audit)
    argument("record", help="results/sst2-10pct/recurrent-seed0.json")
    argument("--steps", type=int, default=0, help="only so many optimizer steps")
    flags(argument, keep="write the outcome to results/audits/")
    argument = add("golden", golden, exclusive=True)
    flags(argument, accept="register today's code if it gives the same numbers")
    flags(argument, new="register today's code as new: older records are stale")
    flags(argument, show="print the numbers as JSON")
    argument = add("import", import_records)
    argument("folder", help="a results/ folder of another machine")
    flags(argument, replace="overwrite records of the same name")
    add("export", export, parents=[of_run])("folder", help="a new or empty one")
    argument = add("measure", measure)
    argument("words", nargs="*", metavar="WORD", help="KIND EXPERIMENT [name=value …]")
    study.commands(add, flags)
    return commands


def main() -> None:
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)  # what follows is text
    chosen, more = parser().parse_known_args(words[:end])
    given = vars(chosen)
    function, command = given.pop("function"), given.pop("command")
    texts = command == "classify"  # they may stand after an option, too
    if odd := [word for word in more if not texts or word.startswith("-")] or words[end:] * (not texts):
        parser().error(f"unknown words: {' '.join(odd)}")
    if texts:
        given["texts"] += more + words[end + 1 :]
    try:
        function(**given)
    except RtxError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:  # ends as if uncaught, so that a shell's loop ends, too
        goes_on = "; the same command goes on from the last checkpoint" * (command == "run")
        print(f"\nStopped{goes_on}.", file=sys.stderr, flush=True)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BrokenPipeError:  # `list | head`; what is still to be written goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        sys.exit(f"A file cannot be read or written ({error}); make room, or name another place.")


if __name__ == "__main__":
    main()
