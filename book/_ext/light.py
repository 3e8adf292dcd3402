"""Pages that are light on a phone: one style sheet, scripts that wait until a page is read, formulas that are set when
they are seen (reading.js), and of the theme's icons those in use, in a small font."""

import re
import shutil
from pathlib import Path
from typing import Any

import pydata_sphinx_theme
from docutils import nodes
from fontTools import subset
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx

from rtx_core import paths

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static"
THEME_STYLES = ("basic.css", "styles/theme.css", "styles/pydata-sphinx-theme.css")
FONTS = "vendor/fontawesome/webfonts"
SOLID_FONT = THEME / FONTS / "fa-solid-900.ttf"
ICON = re.compile(r'(?<=\})(?P<names>(?:\.fa-[\w-]+:before,?)+)\{content:"\\(?P<code>\w+)"\}')
FACE = re.compile(r"@font-face\{[^}]*/fa-(?P<kind>\w+)-\d+\.woff2[^}]*\}")
SOLID = f'@font-face{{font-family:"Font Awesome 6 Free";font-weight:900;src:url({FONTS}/icons.woff)}}'
AT_ONCE = ("documentation_options.js",)  # which a script in a page's head reads; those of the search page read all
if "searchtools.js" in (THEME.parent / "layout.html").read_text(encoding="utf-8"):  # in every head, as in newer themes
    AT_ONCE += ("doctools.js",)


def leave_math(app: Sphinx) -> None:
    """MathJax is loaded by reading.js."""
    for listener in list(app.events.listeners["html-page-context"]):
        if listener.handler.__module__ == "sphinx.ext.mathjax":
            app.disconnect(listener.id)


def lighten_page(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    def deferred(script: Any) -> Any:
        if page == "search" or not script.filename or str(script.filename).endswith(AT_ONCE):
            return script
        return type(script)(script.filename, priority=script.priority, **script.attributes | {"defer": "defer"})

    context["script_files"] = [deferred(script) for script in context["script_files"]]
    context["css_files"] = []  # which are all in book.css


def write_style(app: Sphinx, error: Exception | None) -> None:
    """`book.css`: all style sheets in one, with the icons that pages use, and the font of these."""
    if error or app.builder.format != "html":
        return
    out = Path(app.outdir)
    files = [f"_static/{name}" for name in THEME_STYLES] + [str(style.filename) for style in app.builder._css_files]
    style = "\n".join((out / name).read_text(encoding="utf-8") for name in files)
    style = re.sub(r'@charset "UTF-8";|@import "../basic.css";', "", style).replace("url(../", "url(")
    if SOLID_FONT.exists():  # a newer theme has its icons in another form: they stay as they are
        style = with_icons_in_use(out, style)
    paths.write_atomically(out / "_static" / "book.css", style.encode())


def with_icons_in_use(out: Path, style: str) -> str:
    pages = [path for path in out.rglob("*.html") if "_static" not in path.parts]
    texts = (path.read_text(encoding="utf-8") for path in [*pages, *out.glob("_static/scripts/*theme.js")])
    used = {name for text in texts for name in re.findall(r"\bfa-[a-z-]+", text)}

    def in_use(icon: re.Match) -> str:
        return icon[0] if used & set(re.findall(r"fa-[\w-]+", icon["names"])) else ""

    style = FACE.sub(lambda face: SOLID if face["kind"] == "solid" else "", ICON.sub(in_use, style))
    codes = {int(code, 16) for code in re.findall(r'content:"\\(f\w{3})"', style)}
    shutil.rmtree(out / "_static" / FONTS, ignore_errors=True)
    write_font(out / "_static" / FONTS / "icons.woff", codes)
    return style


def write_font(path: Path, characters: set[int]) -> None:
    font, cut = TTFont(SOLID_FONT), subset.Subsetter()
    cut.populate(unicodes=characters)
    cut.subset(font)
    font.flavor = "woff"
    path.parent.mkdir(parents=True)
    font.save(path)


def setup(app: Sphinx) -> dict:
    app.config.templates_path.append(str(Path(__file__).parents[1] / "_templates"))
    app.connect("builder-inited", leave_math)
    app.connect("html-page-context", lighten_page, priority=900)
    app.connect("build-finished", write_style, priority=900)  # after the theme has written its colors of code
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
