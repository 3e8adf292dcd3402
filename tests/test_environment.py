"""The lock pins everything exactly, and environment.yml says the same."""

import re

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


def lock() -> dict[str, str]:
    lines = (REPOSITORY / "requirements.lock").read_text().splitlines()
    return pins(line for line in lines if not line.startswith("#"))


def test_lock_is_exact_and_fits_any_machine():
    names = lock()
    assert {"torch", "jupyter-book", "papermill", "setuptools", "pytest"} <= names.keys()
    assert not [name for name in names if name.startswith("nvidia") or name in {"triton", "rtx-core"}]


def test_environment_agrees_with_lock():
    environment = yaml.safe_load((REPOSITORY / "environment.yml").read_text())
    direct = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    direct = pins(line for line in direct if not line.startswith("--"))
    locked = lock()
    assert direct == {name: locked.get(name) for name in direct}
