"""The lock pins everything exactly, environment.yml and pyproject.toml agree with it; all Python is linted."""

import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.utils import canonicalize_name

from rtx_core.paths import REPOSITORY

PIN = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[\w.!]+)")


def pins(lines) -> dict[str, str]:
    found = {}
    for line in lines:
        match = PIN.fullmatch(line)
        assert match, f"not an exact pin: {line!r}"
        name = canonicalize_name(match["name"])
        assert name not in found, f"pinned twice: {name}"
        found[name] = match["version"]
    return found


def test_all_three_agree():
    lines = (REPOSITORY / "requirements.lock").read_text().splitlines()
    locked = pins(line for line in lines if not line.startswith("#"))
    assert not [name for name in locked if name.startswith("nvidia") or name in {"triton", "rtx-core"}]
    environment = yaml.safe_load((REPOSITORY / "environment.yml").read_text())
    listed = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    direct = pins(line for line in listed if not line.startswith("--"))
    assert direct == {name: locked.get(name) for name in direct}
    needed = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {canonicalize_name(name) for name in needed} <= direct.keys()


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff(command):
    words = [sys.executable, "-m", "ruff", *command, "--quiet", "--no-cache", "."]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
