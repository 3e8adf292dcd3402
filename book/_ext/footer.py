"""What the reader holds, at the foot of every page: version, commit, and whether today's code made all records.

It is put into the finished html, so a new commit or record rewrites this line on every page and nothing else; no page is
read, executed or typeset again for it, and no script is needed to see it.  On paper it stands on the title page.
"""

import re
from html import escape
from pathlib import Path

from paper import reads_log
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.texescape import escape as escape_latex

from rtx_core import release
from rtx_core.pages.reads import read_by

PLACE = '<div class="built-from">{}</div><!-- built-from -->'
FILLED = re.compile(re.escape(PLACE).replace(re.escape("{}"), "(.*?)"), re.DOTALL)


def make_room(app: Sphinx, config: Config) -> None:
    config.html_theme_options["extra_footer"] = PLACE.format("")


def built_from() -> str:
    return f"Version {release.version()}, commit {release.commit()}"


def currency(old: int, every: int) -> str:
    """Whether the records are those of today's code, in words."""
    if not every:
        return "no records yet"
    if not old:
        return f"all {every} records were made by today's code" if every > 1 else "the one record was made by today's code"
    return f"{old} of {every} {'record was' if every == 1 else 'records were'} made by earlier code"


def fill(app: Sphinx, exception: Exception | None) -> None:
    """Put the line into every page; a page that has it already is left alone."""
    if exception or app.builder.format != "html":
        return
    made = release.records()
    old, every = release.earlier(made), len(made)
    built, shown_on = escape(built_from()), [page for page in sorted(app.env.found_docs) if old & (read_by(reads_log(app.env, page)) or set())]
    for file in Path(app.outdir).rglob("*.html"):
        html = file.read_text(encoding="utf-8")
        if room := FILLED.search(html):
            page = file.relative_to(app.outdir).with_suffix("").as_posix()
            line = f"{built}; {state(app, page, len(old), every, shown_on)}"
            if room[1] != line:
                file.write_text(html[: room.start(1)] + line + html[room.end(1) :], encoding="utf-8")


def state(app: Sphinx, page: str, old: int, every: int, shown_on: list[str]) -> str:
    """The records' state; where some are of earlier code, the pages that show them unfold."""
    said = escape(currency(old, every)) + "."
    if not shown_on:
        return said
    titles = {other: escape(app.env.titles[other].astext()) for other in shown_on}
    links = [title if other == page else f'<a href="{app.builder.get_relative_uri(page, other)}">{title}</a>' for other, title in titles.items()]
    return f"<details><summary>{said}</summary>Shown on: {', '.join(links)}.</details>"


def on_title_page(app: Sphinx) -> None:
    if app.builder.name == "latex":
        made = release.records()
        app.builder.context["date"] = escape_latex(f"{built_from()}; {currency(len(release.earlier(made)), len(made))}.", app.config.latex_engine)


def setup(app: Sphinx) -> dict:
    app.connect("config-inited", make_room)
    app.connect("builder-inited", on_title_page)
    app.connect("build-finished", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
