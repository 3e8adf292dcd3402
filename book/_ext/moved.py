"""The addresses of pages that have moved: each leads on to the page that has its content now."""

import posixpath
from html import escape
from pathlib import Path

from sphinx.application import Sphinx

from rtx_core.paths import write_atomically

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>This page has moved</title>
<meta http-equiv="refresh" content="0; url={to}">
<link rel="canonical" href="{to}">
</head>
<body><p>This page has moved: <a href="{to}">{title}</a>.</p></body>
</html>
"""


def write(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    for old, new in app.config.moved_pages.items():
        to = posixpath.relpath(f"{new}.html", posixpath.dirname(old) or ".")
        title = app.env.titles[new].astext()
        page = PAGE.format(to=escape(to), title=escape(title))
        file = Path(app.outdir, f"{old}.html")
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, page.encode())


def setup(app: Sphinx) -> dict:
    app.add_config_value("moved_pages", {}, "html", dict)
    app.connect("build-finished", write, priority=950)  # after those that read the built pages
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
