"""Formatting and lint of everything that is Python, notebooks included."""

import subprocess
import sys

import pytest

from rtx_core.paths import REPOSITORY


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff(command):
    words = [sys.executable, "-m", "ruff", *command, "--quiet", "--no-cache", "."]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
