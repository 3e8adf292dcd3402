"""What is published: the workflows name what exists and may do no more than they must; release files; the line at the foot of pages."""

import hashlib
import importlib
import json
import posixpath
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml
from factory import SST2, saved

from rtx_core import release
from rtx_core.__main__ import COMMANDS
from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY
from rtx_core.travel import bundle

WORKFLOWS = sorted((REPOSITORY / ".github/workflows").glob("*.yml"))
JOBS = {f"{path.stem}/{name}": job for path in WORKFLOWS for name, job in yaml.safe_load(path.read_text())["jobs"].items()}
STEPS = [step for job in JOBS.values() for step in job["steps"]]
RUN = "\n".join(step["run"] for step in STEPS if "run" in step)

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(REPOSITORY / "book/_ext")
    footer, side_by_side = importlib.import_module("footer"), importlib.import_module("side_by_side")
    del sys.modules["footer"], sys.modules["paper"], sys.modules["side_by_side"], sys.modules["kernels"]


# -- workflows --------------------------------------------------------------------------------------------------------


def test_every_target_command_and_file_of_a_workflow_exists():
    targets = {target for line in (REPOSITORY / "Makefile").read_text().splitlines() if (m := re.match(r"([\w./ -]+):(?!=)", line)) for target in m[1].split()}
    named = re.findall(r"^(?:.*&& )?make (\S+)", RUN, re.MULTILINE)
    assert {"test", "book", "paper", "pdf", "links"} <= set(named) <= targets
    assert set(re.findall(r"-m rtx_core (\w+)", RUN)) == {"release"} <= COMMANDS.keys()
    read = {step["with"]["cache-dependency-path"] for step in STEPS if "cache" in step.get("with", {})} | {"pyproject.toml"}
    assert all((REPOSITORY / name).is_file() for name in read)


def test_the_tag_is_compared_with_the_version(tmp_path):
    """The line of the workflow, as bash runs it."""
    (line,) = [step["run"] for step in STEPS if "GITHUB_REF_NAME#v" in step.get("run", "")]
    for tag, code in ((f"v{release.version()}", 0), (f"v{release.version()}.1", 1), ("v", 1)):
        assert subprocess.run(["bash", "-c", line], cwd=REPOSITORY, env={"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}).returncode == code


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_and_runs_once_at_a_time(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    assert "secrets." not in path.read_text()


def test_two_jobs_may_write_and_neither_runs_code_of_the_repository():
    writing = {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job}
    assert writing == {"publish/pages": {"pages": "write", "id-token": "write"}, "publish/release": {"contents": "write"}}
    for name in writing:
        assert not [step for step in JOBS[name]["steps"] if "checkout" in step.get("uses", "") or "make" in step.get("run", "")]


def test_jobs_end_and_actions_are_pinned_by_hash():
    assert len(WORKFLOWS) == 3 and all(job["timeout-minutes"] > 0 for job in JOBS.values())
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action) for action in used)
    for path in WORKFLOWS:  # the comment says to a reader which version that is
        assert len(re.findall(r"uses: \S+@\w{40}  # v\d+\.\d+\.\d+$", path.read_text(), re.MULTILINE)) == path.read_text().count("uses:")
    assert all(step["with"]["persist-credentials"] is False for step in STEPS if "checkout" in step.get("uses", ""))
    assert "${{" not in RUN  # what an event says never becomes a part of a command


def test_python_versions_are_those_of_the_project():
    versions = JOBS["tests/check"]["strategy"]["matrix"]["python"]
    assert versions[0] == "3.11" and len(versions) == 2 and all(isinstance(version, str) for version in versions)


# -- release ----------------------------------------------------------------------------------------------------------


EARLIER = {"code": {"commit": "0ld" * 5, "clean": True, "fingerprints": ["0" * 64]}}


@pytest.fixture
def two_records(home):
    """One of today's code, one of earlier; beside them a count, which is of no code, and a half-written file."""
    made = [saved(SST2, "baseline"), saved(SST2, "recurrent", **EARLIER)]
    (home / "results/counts.json").write_text('{"baseline": {"total": 1}}')
    (home / "results/sst2/.baseline-seed0.json.x").write_text("{")
    return made


def test_manifest_lists_everything_and_says_what_earlier_code_made(two_records):
    made = release.manifest()
    assert list(made["files"]) == [
        "results/counts.json", "results/sst2/baseline-seed0.json", "results/sst2/baseline-seed0.npz",
        "results/sst2/recurrent-seed0.json", "results/sst2/recurrent-seed0.npz",
    ]  # fmt: skip
    assert (made["records"], made["records_of_earlier_code"], made["version"]) == (2, 1, release.version())
    recurrent = made["files"]["results/sst2/recurrent-seed0.json"]
    assert (recurrent["commit"], recurrent["current"]) == ("0ld" * 5, False)
    assert made["files"]["results/sst2/baseline-seed0.json"]["current"] is True
    assert made["files"]["results/counts.json"].keys() == {"sha256", "bytes"}


def test_release_files_prove_one_another(two_records, tmp_path, capsys):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "paper.pdf").write_bytes(b"%PDF")
    release.main([str(folder)])
    assert "2 records, 1 of earlier code" in capsys.readouterr().out
    sums = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("manifest.json", "paper.pdf", "records.tar")}
    about, files = bundle.read(folder / "records.tar", bundle.RECORDS)  # as `bring` reads it
    listed = json.loads((folder / "manifest.json").read_text())["files"]
    assert listed.keys() - files.keys() == {"results/counts.json"}
    assert all(hashlib.sha256(content).hexdigest() == listed[name]["sha256"] for name, content in files.items())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    release.main([str(folder)])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(RtxError, match="is a file; expected a folder"):
        release.main([str(tmp_path / "out")])


def test_commit_says_what_it_does_not_hold(monkeypatch):
    answers = {"rev-parse": "abc123def", "status": " M README.md"}
    monkeypatch.setattr(release, "git", lambda command, *_: answers[command])
    assert release.commit() == "abc123def + changes"
    answers["status"] = ""
    assert release.commit() == "abc123def"
    answers["rev-parse"] = answers["status"] = None  # no repository
    assert release.commit() == "unknown"


# -- the foot of every page -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "every", "said"),
    [
        (0, 0, "no records yet"),
        (0, 1, "the one record was made by today's code"),
        (0, 9, "all 9 records were made by today's code"),
        (1, 1, "1 of 1 record was made by earlier code"),
        (3, 9, "3 of 9 records were made by earlier code"),
    ],
)
def test_currency_in_words(old, every, said):
    assert footer.currency(old, every) == said


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A finished book of two pages, one in a folder, and one of the theme's own."""
    config = SimpleNamespace(html_theme_options={})
    footer.make_room(None, config)
    html = f"<html><p>Text.</p>{config.html_theme_options['extra_footer']}</html>"
    for name in ("index", "notebooks/sst2", "genindex"):
        (tmp_path / "html" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "html" / f"{name}.html").write_text(html)
    monkeypatch.setattr(release, "commit", lambda: "abc123def")
    titles = {"index": "A & B", "notebooks/sst2": "SST-2"}
    called = {name: SimpleNamespace(astext=lambda title=title: title) for name, title in titles.items()}
    env = SimpleNamespace(found_docs=set(titles), titles=called, doctreedir=str(tmp_path / "trees"))
    uri = lambda page, other: posixpath.relpath(f"{other}.html", posixpath.dirname(page) or ".")  # noqa: E731
    builder = SimpleNamespace(format="html", get_relative_uri=uri)
    return SimpleNamespace(outdir=str(tmp_path / "html"), env=env, builder=builder)


def pages(app) -> dict[str, str]:
    return {path.stem: path.read_text() for path in footer.Path(app.outdir).rglob("*.html")}


def test_every_page_says_what_it_was_built_from(built, home):
    saved(SST2)
    footer.fill(built, None)
    line = f"Version {release.version()}, commit abc123def; the one record was made by today&#x27;s code."
    assert all(text.count(line) == 1 and "Text." in text for text in pages(built).values())


def test_pages_that_show_earlier_code_are_named(built, two_records, tmp_path):
    (tmp_path / "trees/notebooks").mkdir(parents=True)
    (tmp_path / "trees/index.reads").write_text(f"{two_records[0].path}\n")
    (tmp_path / "trees/notebooks/sst2.reads").write_text(f"{two_records[1].path}\n")
    footer.fill(built, None)
    said = pages(built)
    assert 'earlier code.</summary>Shown on: <a href="notebooks/sst2.html">SST-2</a>.</details>' in said["index"]
    assert "Shown on: SST-2.</details>" in said["sst2"]  # no link to itself
    assert "1 of 2 records" in said["genindex"]


def test_a_new_record_rewrites_the_line_and_nothing_else(built, home):
    footer.fill(built, None)
    first, stamps = pages(built), {path: path.stat().st_mtime_ns for path in footer.Path(built.outdir).rglob("*.html")}
    footer.fill(built, None)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    saved(SST2, **EARLIER)
    footer.fill(built, None)
    assert all(text == first[name].replace("no records yet", "1 of 1 record was made by earlier code") for name, text in pages(built).items())


def test_a_failed_build_or_another_kind_of_it_is_left_alone(built, home):
    first = pages(built)
    footer.fill(built, RuntimeError())
    built.builder.format = "latex"
    footer.fill(built, None)
    assert pages(built) == first


@pytest.mark.parametrize(("gib", "pages"), [(0, 1), (1, 2), (2, 5), (64, 12)])
def test_no_more_pages_at_once_than_memory_holds(gib, pages, monkeypatch):
    monkeypatch.setattr(side_by_side.psutil, "virtual_memory", lambda: SimpleNamespace(available=gib << 30))
    assert side_by_side.at_once() == pages


def test_the_book_has_the_extensions():
    config = yaml.safe_load((REPOSITORY / "_config.yml").read_text())
    for name in config["sphinx"]["local_extensions"]:
        assert (REPOSITORY / f"book/_ext/{name}.py").is_file()
    assert {"footer", "pdf"} <= config["sphinx"]["local_extensions"].keys() and not config["latex"]["use_jupyterbook_latex"]
