"""`rtx doctor`: is everything here that a run needs, and is what is here sound?  A line a finding."""

import fcntl
import os
import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path

from rtx_core.errors import RtxError
from rtx_core.experiments.configure import configure
from rtx_core.experiments.weights import differences, local_weights
from rtx_core.foreign import invalid_file_errors
from rtx_core.models import registry
from rtx_core.paths import REPOSITORY, build, user_path
from rtx_core.records import NAMES, fingerprint, folder, folders, read, read_or_none, record_paths, released, short_name
from rtx_core.records import records as every_run
from rtx_core.study import declaration

Finding = tuple[str, str, str]  # (its level, what was found, what to type)
OK, WARNING, WRONG = "ok", "warning", "wrong"  # the last fails the command
SET_DATA = "export RTX_DATA=/path/to/data"


def machine() -> Iterator[Finding]:
    import torch

    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else ""
    yield OK, f"torch {torch.__version__}, {gpu or f'{torch.get_num_threads()} threads of the CPU'}", ""
    above = ((place, *place.absolute().parents) for place in (build(), folder()))
    existing = {next(path for path in places if path.exists()) for places in above}  # a run makes the folders below
    free = min(shutil.disk_usage(place).free for place in existing) / 2**30  # a checkpoint, and the next in writing
    advice = "" if free > 1 else f"du -sh {shlex.quote(str(build()))}/*"
    yield WRONG if advice else OK, f"{free:,.1f} GiB are free, and a large run takes 1", advice
    for place in sorted(existing):
        try:
            with tempfile.TemporaryFile(dir=place):
                pass
        except OSError as error:
            yield WRONG, f"{place} cannot be written ({error.strerror})", "export RTX_HOME=/path/to/a/folder"


def data() -> Iterator[Finding]:
    from rtx_core.data import corpora, sources, tokens

    if not (mirror := os.environ.get("RTX_DATA")):
        yield WARNING, "RTX_DATA is not set, so real texts are fetched from the hub", SET_DATA
        return
    by_name = {name: entry for name, entry in corpora.CORPORA.items() if isinstance(entry, corpora.Corpus)}
    reads = {corpus.folder: partial(sources.load, name) for name, corpus in by_name.items()}
    reads |= {
        text.folder: import_module(text.task_class.partition(":")[0]).load for text in corpora.LANGUAGE_CORPORA.values()
    }
    for place, load in (reads | {"bert-base-uncased": tokens.bert_vocabulary}).items():
        try:
            load("mirror")
            yield OK, f"RTX_DATA: {place} is as expected, by its hash", ""
        except RtxError as error:  # a mirror need not have all
            exists = (user_path(mirror) / place).is_dir()
            yield (WRONG, str(error), "") if exists else (WARNING, str(error), SET_DATA)


def links() -> Iterator[Finding]:
    """Whether the two links of `book/` are there, which some zips and git on Windows turn into files."""
    for link in (REPOSITORY / "book" / "_toc.yml", REPOSITORY / "book" / "notebooks"):
        if link.is_file() and link.read_text(encoding="utf-8") == f"../{link.name}":
            yield (
                WRONG,
                f"book/{link.name} has to be a link to {link.name}, and is a file that only names it",
                "make whole",
            )


def records() -> Iterator[Finding]:
    """Whether the form, name and settings of every record agree, its metrics follow from its predictions, its data are
    those of the other runs of that name, and the run that it measures is there; and how many other code made."""
    valid, first_by_name = [], {}
    tracked = {REPOSITORY / name for name in (fingerprint.git("ls-files", "-z", "results") or "").split("\0")}
    for path in record_paths():
        try:
            record = read_or_none(path, measurement=True) or read(path, measurement=True)
            with invalid_file_errors():
                check_settings(record)
                in_future = datetime.fromisoformat(record["finished"]) > datetime.now(UTC) + timedelta(days=1)
            if in_future:
                raise RtxError(f"{record} was finished in the future ({record['finished']}): its clock was wrong.")
            reference = first_by_name.setdefault(record["name"] if record.get("key") else record["of"], record)
            if record.synthetic or reference["data"]["sha256"] != record["data"]["sha256"]:
                raise RtxError(f"{record} is of generated text, or of other data than {reference}; do not mix them.")
            valid.append(record)
        except RtxError as error:
            stem = shlex.quote(str(path.with_suffix("")))
            message = str(error) if short_name(path) in str(error) else f"{short_name(path)}: {error}"
            yield WRONG, message, f"git checkout -- {stem}.*" if path in tracked else ""
    for root in folders():
        inner = (Path(parent, name) for parent, names, _ in os.walk(root) for name in names)
        for link in filter(Path.is_symlink, inner):
            yield WRONG, f"{link} is a symbolic link, which is not followed; put its files there, or remove it.", ""
    keys = {record.get("key") for record in valid}
    for record in valid:
        runs = record.get("runs", [])
        if missing := {record.get("run"), *(runs.values() if isinstance(runs, dict) else runs)} - {None} - keys:
            yield WRONG, f"{record} is of the run {missing.pop()}, which has no record; add that too.", ""
    stale = sum(bool(record.stale_reason()) for record in valid)
    message = f"results/: {len(valid)} records and measurements are sound, {stale} of them by other code than today's"
    yield WARNING if stale else OK, message, "python -m rtx_core list" if stale else ""


def weights() -> Iterator[Finding]:
    """Whether the weights beside the records are those that a record names, and the other way round."""
    expected = {released.released_weights(record.path): record for record in every_run()}
    files = [path for root in folders() for path in sorted(root.glob("weights/*/*.safetensors"))]
    for path in files:
        if (record := expected.pop(path, None)) is None:
            yield WRONG, f"results/weights: {short_name(path)} has no sound record", ""
        elif (unaltered := released.matches_record(record, path)) is None:
            yield WRONG, f"{record} does not name its weights by a hash", "python -m rtx_core migrate"
        elif not unaltered:
            restore = f"git checkout -- {shlex.quote(str(path))}"
            yield WRONG, f"results/weights: {short_name(path)} is not what {record} names", restore
    restorable, not_kept = (fingerprint.git("ls-files", "results/weights") or "").splitlines(), 0
    for path, record in expected.items():
        if not record.get("tensors_sha256"):
            continue
        source, place = local_weights(record), shlex.quote(str(path))
        if source.exists() or "/".join(path.parts[-4:]) in restorable:
            command = f"cp {shlex.quote(str(source))} {place}" if source.exists() else f"git checkout -- {place}"
            yield WARNING, f"results/weights: what {record} names is missing", command
        else:
            not_kept += 1
    others = f"; those of {not_kept} more runs were not kept" if not_kept else ""
    yield OK, f"results/weights: {len(files)} files were compared with their records{others}", ""


def check_settings(record) -> None:
    """An error unless the names and the settings of a run are those of what was asked for, as far as a record says that
    and the experiment and the model are known here."""
    is_known = (
        record.get("experiment") in declaration("EXPERIMENTS") and record["config"]["architecture"] in registry.MODELS
    )
    if not is_known or not (request := record.get("asked")):
        return
    config = configure(record["experiment"], request["model"], record["seed"], **request["settings"])
    names = [(part, record[part], getattr(config, part)) for part in NAMES]
    wrong = [f"{part} {value} instead of {expected}" for part, value, expected in names if value != expected]
    if wrong := wrong + differences(config, record):
        raise RtxError(f"{record} is not what was asked for: {', '.join(wrong)}.")


def unfinished() -> Iterator[Finding]:
    """Checkpoints of runs that do not go on now."""
    running, commands = set(), {}
    for lock in sorted(filter(Path.is_file, (build() / "locks").glob("*"))):
        with open(lock, encoding="utf-8", errors="replace") as file:
            run, command, *_ = [*file.read().splitlines(), "", ""]  # as the runner left them
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                commands[run] = command
            except BlockingIOError:
                running.add(run)
                yield OK, f"{run} is being trained now", ""
    checkpoints = (build() / "runs").glob("*/*/checkpoint*")
    for run in sorted({str(path.parent.relative_to(build())) for path in checkpoints} - running):
        yield WARNING, f"{run} is not finished", commands.get(run) or "the command that began it"


def main() -> int:
    """Print every finding; a check that raises an error is one, too.  The exit code: 1 where something is wrong."""
    levels: Counter = Counter()
    for check in (machine, data, links, records, weights, unfinished):
        try:
            findings = list(check())
        except (ImportError, RtxError, OSError, ValueError) as error:
            findings = [(WRONG, f"The check of {check.__name__} ended early: {error}", "")]
        for level, message, advice in findings:
            levels[level] += 1
            print(f"{level:<8} {message}" + (f"  →  {advice}" if advice else ""), flush=True)
    print(", ".join(f"{levels[level]} {level}" for level in (OK, WARNING, WRONG)))
    return 1 if levels[WRONG] else 0
