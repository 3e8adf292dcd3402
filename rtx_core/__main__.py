"""The command line: `python -m rtx_core COMMAND`, or `rtx COMMAND` where the package is installed.

A command is a function, its docstring the help; switches and arguments with a default are options, all others words.
"""

import argparse
import inspect
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated, Any

import yaml

from rtx_core.errors import RtxError
from rtx_core.study import declaration

Words = Annotated[list, "EXPERIMENT|FILE [MODEL …] [name=value …]"]
TEXT_SETTINGS = ("text", "label", "validation", "test", "encoding", "name")  # of a file: text as it stands
BATCH_LINES = 256  # that `classify` reads, answers and prints
Source = Annotated[str, "embedded: quick runs on generated text"]


class Values(yaml.SafeLoader):
    """Values as YAML 1.2 reads them: 010, 1:30 and no are text, 1e-4 is a number."""

    yaml_implicit_resolvers: dict = {}


for tag, pattern, initials in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", "-+.0123456789"),
):
    Values.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(initials))


def parse_words(words: list[str]) -> tuple[list[str], dict[str, Any]]:
    """(plain words, {name: value}) of words such as `epochs=1` or `seeds=[0,1]`."""
    plain, settings = [], {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            plain.append(word)
            continue
        try:
            parsed = value if name in TEXT_SETTINGS else yaml.load(value, Values)
        except (yaml.YAMLError, ValueError, RecursionError):
            raise RtxError(f"{word:.80} cannot be read; write name=value, seeds=[0,1] for a list.") from None
        if (key := "seeds" if name == "seed" else name) in settings:
            raise RtxError(f"{word:.80} comes after {key}={settings[key]}; give it once, a list for several.")
        settings[key] = [parsed] if name == "seed" else parsed
    return plain, settings


def run(
    words: Words,
    replace: Annotated[bool, "make recorded runs again"],
    dry: Annotated[bool, "train none: say which runs follow, and about how long they take"],
) -> None:
    """train runs: an experiment or a file of your own, models, and settings as name=value: `run sst2 recurrent seed=1`,
    `run reviews.csv recurrent text=review label=stars epochs=3` (or .tsv, .jsonl, .parquet), `run book.txt gpt`; `rtx
    settings EXPERIMENT` lists the settings"""
    from rtx_core.data.files import from_words
    from rtx_core.experiments import run as runner

    names, settings = parse_words(words)
    if not names:
        raise RtxError("Nothing to run: give an experiment, as in `run sst2 recurrent seed=1`.")
    if names[1:] and "models" in settings or settings.keys() & {"replace", "only_recorded"}:
        raise RtxError("Give models as words or as models=[…], and --replace as a switch.")
    models = {"models": names[1:]} if names[1:] else {}
    if declaration("RECURRENCES").keys() & set(names[1:]):
        from rtx_core.benchmark.bench import register_declared

        register_declared()
    data = from_words(names[0], settings)
    if dry:
        configs = runner.run_configs(data, **models, **settings)
        if missing := [config for config in configs if replace or not runner.find_record(config)]:
            return runner.announce(missing)
        return print(f"No run follows: {f'all {len(configs)} are' if configs[1:] else 'it is'} recorded.")
    for result in runner.runs(data, replace=replace, **models, **settings):
        print(f"{result.config.name} · {result.config.model} · seed {result.config.seed} · {result.record.score}")


def settings(words: Annotated[list, "EXPERIMENT|FILE [MODEL] [name=value …]"]) -> None:
    """the settings of an experiment or file and a model: type, default and meaning: `settings khop 1x4`"""
    from rtx_core.data.files import from_words
    from rtx_core.experiments.configure import settings_of

    names, settings = parse_words(words)
    if not 1 <= len(names) <= 2:
        raise RtxError(f"Got {len(names)} words; give an experiment and perhaps a model, as `settings khop 1x4`.")
    settings.pop("seeds", None)  # which change nothing here
    table = settings_of(from_words(names[0], settings), *names[1:], **settings)
    table = table.map(lambda value: "null" if value is None else str(value))
    width = {column: table[column].str.len().max() for column in table}
    for part, rows in table.groupby("of", sort=False):
        print(f"{part}:")
        for row in rows.to_dict("records"):
            print("  " + "  ".join(row[column].ljust(width[column]) for column in width if column != "of").rstrip())


def results(names: Annotated[list, "only of these experiments or folders"], source: Source = "") -> None:
    """a table of the recorded runs"""
    from rtx_core import records

    columns = ["name", "model", "seed", "budget", "accuracy", "loss", "parameters", "minutes", "stale"]
    for name in names or [None]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = records.results(name, source=source)
        for warning in caught:
            print(warning.message, file=sys.stderr if len(table) else sys.stdout)
        if len(table):
            print(table[columns].round(4).to_string(index=False))


def classify(
    name: Annotated[str, "of the run's folder, as sst2"],
    model: Annotated[str, "as recurrent"],
    texts: Annotated[list, "none: standard input, one a line"],
    passes: Annotated[bool, "the answer after each pass"],
    seed: Annotated[int, "of the run"] = 0,
    source: Source = "",
) -> None:
    """label texts with a trained model: NAME MODEL "a text" …, or lines of standard input; columns are split at tabs"""
    from rtx_core.experiments.weights import load

    predictor, header = load(f"{name}/{model}-seed{seed}", source), True
    lines = filter(None, map(str.strip, texts or lines_of_input()))
    while batch := list(islice(lines, BATCH_LINES)):
        answers = predictor.classify(batch, passes)
        answers["text"] = answers.pop("text")  # last, as it alone is of any length
        answers.to_csv(sys.stdout, sep="\t", index=False, header=header, float_format="%.4f")
        sys.stdout.flush()
        header = False
    if header:
        raise RtxError("No text was given: write one after the model's name, or lines to standard input.")


def lines_of_input() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode("utf-8-sig")
        except UnicodeDecodeError:
            do = "convert it first, as `iconv -f cp1252 -t utf-8` does"
            raise RtxError(f"Line {number:,} of standard input is not UTF-8: {do}.") from None


def doctor() -> None:
    """whether machine, data, records and unfinished runs are in order, and what to type where not"""
    from rtx_core.benchmark.bench import register_declared
    from rtx_core.experiments.doctor import main

    register_declared()
    sys.exit(main())


def audit(
    record: Annotated[str, "results/sst2-10pct/recurrent-seed0.json"],
    keep: Annotated[bool, "write the outcome to results/audits/"],
    steps: Annotated[int, "only so many optimizer steps"] = 0,
) -> None:
    """train a recorded run again and compare: history, metrics, predictions"""
    from rtx_core.experiments.audit import audit

    print(*(f"{name}: {value}" for name, value in audit(record, steps, keep).items()), sep="\n")


def golden(
    accept: Annotated[bool, "register today's code if it gives the same numbers"],
    new: Annotated[bool, "register today's code as new: older records are stale"],
) -> None:
    """tiny runs that tell whether the code gives the same numbers; --accept registers today's code"""
    from rtx_core.benchmark.bench import register_declared
    from rtx_core.records.golden import main

    register_declared()
    main(accept, new)


def migrate() -> None:
    """bring the files of results/ to today's form; no number changes"""
    from rtx_core.records.migrate import main

    main()


def measure(words: Annotated[list, "KIND EXPERIMENT [name=value …]"]) -> None:
    """measure trained models and data, a kind of measurement of an experiment"""
    from rtx_core.experiments.measure import measure
    from rtx_core.paths import home

    names, settings = parse_words(words)
    if len(names) != 2:
        raise RtxError(
            "Nothing to measure: give KIND and EXPERIMENT, as `measure yardstick sst2`; models as models=[…]."
        )
    print(*(record.path.relative_to(home()) for record in measure(*names, **settings)), sep="\n")


def check(
    words: Annotated[list, "MODEL [name=value …]: file.py:Name, or a registered name"],
    json: Annotated[bool, "print JSON"],
) -> None:
    """whether a model is a loop and is sound, in seconds and without training; also passes=, vocab_size= and length="""
    from rtx_core.benchmark.check import check
    from rtx_core.benchmark.subject import named

    names, settings = parse_words(words)
    if len(names) != 1:
        raise RtxError("Nothing to check: give one model, as in `check model.py:MyLoop passes=4`.")
    options = {name: settings.pop(name) for name in ("passes", "vocab_size", "length") if name in settings}
    if "vocab_size" in options and ":" not in names[0]:
        settings["vocab_size"] = options["vocab_size"]  # of a registered model's configuration, too
    passes = {name: value for name, value in options.items() if name == "passes"}
    report = check(named(names[0], passes, **settings), **options)
    print(report.json() if json else report)
    sys.exit(bool(report.failed))


def bench(
    words: Annotated[list, "MODEL [name=value …]: file.py:Name, or a registered name; with --compare two"],
    ladder: Annotated[bool, "record the models that `quick` compares with"],
    compare: Annotated[bool, "the differences of two models, each a card's JSON or a recorded name such as 1x4"],
    replace: Annotated[bool, "make recorded runs again"],
    budget: Annotated[str, "quick (15 minutes on two cores), standard (a night), trial (seconds)"] = "quick",
    jobs: Annotated[int, "runs at once"] = 1,
    text: Annotated[str, "a file whose characters it reads as well"] = "",
    rate: Annotated[float, "a learning rate in place of the budget's"] = 0.0,
    seeds: Annotated[int, "how many seeds, in place of the budget's"] = 0,
    name: Annotated[str, "of its records; else that of the class, with its settings"] = "",
) -> None:
    """train a model on pointers, facts, state tracking and characters, and write its card (`check` comes first)"""
    from rtx_core.benchmark import bench as bench_module
    from rtx_core.benchmark import pair
    from rtx_core.benchmark.card import folder

    names, settings = parse_words(words)
    if ladder:
        return bench_module.ladder(jobs, seeds)
    if compare:
        return print(*pair.compare(*names, budget=budget), sep="\n")
    if len(names) != 1:
        raise RtxError("Nothing to bench: give one model, as in `bench model.py:MyLoop passes=4`.")
    options: dict[str, Any] = {"budget": budget, "jobs": jobs, "text": text, "rate": rate, "name": name}
    options |= {"replace": replace, "seeds": seeds}
    card = bench_module.bench(names[0], **options | settings)
    print(folder() / f"{card.name}-{card.budget}.html")


def choose(
    words: Annotated[list, "EXPERIMENT|FILE [name=value …]: a text, or an experiment that decoders are trained on"],
    replace: Annotated[bool, "make recorded runs again"],
    layers: Annotated[int, "of the loop"] = 2,
    passes: Annotated[int, "of the loop"] = 2,
    width: Annotated[int, "of the loop"] = 64,
    seeds: Annotated[int, "of every model; a verdict needs three"] = 3,
    jobs: Annotated[int, "runs at once"] = 1,
    model: Annotated[str, "a loop of your own, as file.py:Name, in place of the loop of this library"] = "",
) -> None:
    """train a loop and three stacks on a task of your own, each at three learning rates, and say which to take:
    `choose book.txt steps=2000`; other rates as rates=[1e-3,2e-3]"""
    from rtx_core.benchmark import choose as chooser
    from rtx_core.data.files import from_words

    names, settings = parse_words(words)
    if len(names) != 1:
        raise RtxError("Nothing to choose for: give a text or an experiment, as in `choose book.txt steps=2000`.")
    if switches := settings.keys() & {"layers", "passes", "width", "seeds", "jobs", "replace", "model"}:
        name = min(switches)
        raise RtxError(f"Got {name}={settings[name]}; write --{name} {settings[name]}.")
    data = from_words(names[0], settings)
    options = {"seeds": seeds, "jobs": jobs, "replace": replace}
    print(chooser.choose(data, layers, passes, width, model=model or None, **options | settings))


def show(words: Annotated[list, "NOTEBOOK …"]) -> None:
    """fill the numbers into the text of executed notebooks, such as papermill's outputs"""
    from pathlib import Path

    from rtx_core.foreign import read_json
    from rtx_core.paths import write_json
    from rtx_core.report.filling import fill

    if not words:
        raise RtxError("Nothing to show: give executed notebooks, as in `show _build/facts.ipynb`.")
    for path in map(Path, words):
        notebook = read_json(path)
        fill(notebook)
        write_json(path, notebook)


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="rtx", description="Recurrent against standard transformers.")
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    functions = (run, settings, results, check, bench, choose, classify, doctor, audit, golden, migrate, measure, show)
    named: dict[str, Callable] = {one.__name__: one for one in functions}
    for name, function in {**named, **declaration("COMMANDS")}.items():
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        command.set_defaults(function=function)
        for argument in inspect.signature(function).parameters.values():
            kind, (help,) = argument.annotation.__origin__, argument.annotation.__metadata__
            if kind is bool:
                command.add_argument(f"--{argument.name}", action="store_true", help=help)
            elif argument.default is not argument.empty:
                command.add_argument(f"--{argument.name}", type=kind, default=argument.default, help=help)
            else:
                command.add_argument(argument.name, help=help, nargs="*" if kind is list else None)
    return root


def main() -> None:
    for stream in (sys.stdout, sys.stderr):  # letters that the terminal's encoding lacks become "?"
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
    try:
        arguments, extra = (root := parser()).parse_known_args()
        arguments = vars(arguments)
        words = next((value for value in arguments.values() if isinstance(value, list)), None)
        if extra and (words is None or any(word.startswith("-") for word in extra)):
            root.error(f"unrecognized arguments: {' '.join(extra)}")
        if extra and words is not None:  # words after an option
            words += extra
        function = arguments.pop("function")
        del arguments["command"]
        function(**arguments)
        if sys.stdout:
            sys.stdout.flush()
    except (RtxError, UnicodeError) as error:  # standard input may be no UTF-8
        sys.exit(str(error))
    except KeyboardInterrupt:  # ends as if uncaught, so that a shell's loop ends, too
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except OSError as error:  # what is still to be written goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # `list | head`
            sys.exit(f"A file, or where the output goes, was refused ({error}); make room, or name another place.")


if __name__ == "__main__":
    main()
