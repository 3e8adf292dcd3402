"""What the workflow asks of the project.  Snakemake has an environment of its own, so it asks by command.

    python workflow/stages.py plan FILE [--reduced] [--source SOURCE] [--keep-stale] [--only NOTEBOOK …]
    python workflow/stages.py corpus CORPUS SOURCE           fetch a text, or check the mirror's
    python workflow/stages.py tokens EXPERIMENT PARAMETERS   cut and tokenise the texts of a run into the cache
"""

import argparse
import json
import os
import shlex
import sys
from importlib import import_module
from pathlib import Path

from rtx_core import paper
from rtx_core.corpora import sources
from rtx_core.errors import RtxError, unknown
from rtx_core.language import LANGUAGE, LanguageSettings
from rtx_core.parameters import Settings, settings
from rtx_core.paths import write_json

ENVIRONMENT = ("PATH", "JUPYTER_PREFER_ENV_PATH", "RTX_DATA", "RTX_HOME")  # that a job on another machine has as the workflow had


def plan(reduced: bool, source: str, keep_stale: bool, only: list[str]) -> dict[str, dict]:
    """Stage -> name -> its command and what it needs; every record is looked at once, here."""
    listed = list(paper.runs(reduced, source))
    notebooks = list(dict.fromkeys(run.notebook for run in listed))
    for name in only:
        if name not in notebooks:
            raise unknown("notebook", name, notebooks)
    listed = [run for run in listed if not only or run.notebook in only]
    made: dict[str, dict] = {"corpus": {}, "tokens": {}, "run": {}, "page": {}}
    made["environment"] = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    for run in listed:
        tokens, corpora = texts(run.settings)
        for corpus in corpora:
            made["corpus"][corpus] = {"command": stage("corpus", *corpus.split("-", 1)[::-1])}
        made["tokens"][tokens] = {"command": stage("tokens", run.settings.experiment, json.dumps(plain(run.given))), "corpora": corpora}
        why = reason(run)
        made["run"][run.name] = {
            "command": shlex.join(run.command), "tokens": tokens, "record": str(run.record), "stale": why not in ("", "missing"),
            "why": why, "needed": why == "missing" or bool(why and not keep_stale),
        }  # fmt: skip
    for notebook in dict.fromkeys(run.notebook for run in listed):
        own = [run for run in listed if run.notebook == notebook]
        agreed = {k: v for k, v in plain(own[0].given).items() if all(run.given.get(k) == v for run in own)}
        experiments = {run.settings.experiment for run in own}  # a page may show the runs of another notebook too
        made["page"][notebook] = {
            "command": shlex.join(paper.papermill(notebook, agreed, f"pages/{notebook}")),
            "runs": [run.name for run in listed if run.settings.experiment in experiments],
        }
    return made


def reason(run: paper.Run) -> str:
    try:
        return run.why
    except RtxError as error:  # a record that cannot be read
        return str(error)


def stage(*words: str) -> str:
    return shlex.join(["python", "workflow/stages.py", *words])


def plain(given: dict) -> dict:
    """The parameters that are no lists: those which do not name one run among several."""
    return {k: v for k, v in given.items() if not isinstance(v, list)}


def texts(asked: Settings | LanguageSettings) -> tuple[str, list[str]]:
    """(name of the tokenised data, names of the texts it is made of)"""
    source = sources.resolve(asked.source)
    if asked.experiment in LANGUAGE:
        return f"{source}-{asked.experiment}", [f"{source}-{asked.experiment}"]
    spec = sources.CORPORA[asked.corpus]
    members = spec.members if isinstance(spec, sources.Mixture) else [asked.corpus]
    return f"{source}-{asked.corpus}-{asked.split}{asked.subset}-{asked.max_length}", [f"{source}-{member}" for member in members]


def corpus(name: str, source: str) -> None:
    if name == "shakespeare":
        import_module("rtx_core.corpora.characters").text(source)
    elif name == "tinystories":
        import_module("rtx_core.corpora.stories").texts(source)
    else:
        sources.load(name, source)
        if source != "embedded":
            import_module("rtx_core.corpora.tokens").vocabulary(source, [])


def tokens(experiment: str, given: str) -> None:
    asked = settings(experiment, json.loads(given))
    if experiment in LANGUAGE:
        import_module(f"rtx_core.corpora.{LANGUAGE[experiment].corpus}").data(asked.source, asked.training)
    else:
        import_module("rtx_core.corpora.dataset").dataset(**asked.data)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python workflow/stages.py")
    commands = parser.add_subparsers(dest="stage", required=True)
    asked = commands.add_parser("plan")
    asked.add_argument("file", type=Path)
    asked.add_argument("--reduced", action="store_true")
    asked.add_argument("--source", default="real", choices=sources.SOURCES)
    asked.add_argument("--keep-stale", action="store_true")
    asked.add_argument("--only", nargs="*", default=[])
    for name, words in (("corpus", ("name", "source")), ("tokens", ("experiment", "given"))):
        command = commands.add_parser(name)
        for word in words:
            command.add_argument(word)
    chosen = vars(parser.parse_args(arguments))
    name = chosen.pop("stage")
    if name == "plan":
        write_json(chosen.pop("file"), plan(**chosen))
    else:
        {"corpus": corpus, "tokens": tokens}[name](**chosen)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RtxError as error:
        sys.exit(str(error))
