"""The numbers that the original study published, with where each stands: quoted in `published.json`, never computed with."""

import json
from functools import cache
from pathlib import Path


@cache
def published() -> dict:
    return json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
