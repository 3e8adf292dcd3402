"""Pages stay light: the theme's icons are cut to those in use, MathJax and scripts wait, and budgets are held."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx

from rtx_core.paths import REPOSITORY

BOOK = REPOSITORY / "book"
CONF = f"""
import sys; sys.path.insert(0, {str(BOOK / "_ext")!r})
extensions, html_theme = ["light"], "sphinx_book_theme"
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    source = tmp_path_factory.mktemp("light")
    (source / "conf.py").write_text(CONF)
    (source / "index.rst").write_text("Light\n=====\n\n.. math:: x = y\n\nOne\n---\n\n.. toctree::\n\n   other\n")
    (source / "other.rst").write_text("Other\n=====\n")
    before = list(sys.path)
    Sphinx(source, source, source / "html", source / "trees", "html", status=None, freshenv=True).build()
    sys.path[:] = before
    return source / "html"


def test_a_page_waits_for_one_style_sheet_and_no_script(built):
    page = (built / "index.html").read_text(encoding="utf-8")
    scripts = re.findall(r"<script[^>]* src=[^>]*>", page)
    waiting = [script for script in scripts if "defer" not in script]
    assert len(scripts) > 4 and len(waiting) == 1 and "documentation_options.js" in waiting[0]
    assert "fontawesome.js" not in page and "mathjax/" not in page
    (style,) = re.findall(r'<link[^>]* href="([^"]*\.css[^"]*)"', page)
    assert ".bd-main" in (content := (built / style).read_text(encoding="utf-8")) and "@import" not in content
    assert 'html[data-theme="dark"] .highlight .nc' in content  # the theme's colors of code, which have contrast


def test_the_search_page_has_its_scripts_in_time(built):
    page = (built / "search.html").read_text(encoding="utf-8")
    needed, user = (re.search(rf"<script[^>]*{name}[^>]*>", page) for name in ("doctools", "searchtools"))
    assert "defer" not in needed[0] or "defer" in user[0]


def test_icons_in_use_are_kept_and_no_others(built):
    page, style = (built / name for name in ("index.html", "_static/book.css"))
    found = re.findall(r'((?:\.fa-[\w-]+:before,?)+)\{content:"\\(\w+)"\}', style.read_text(encoding="utf-8"))
    rules = {name: code for names, code in found for name in re.findall(r"fa-[\w-]+", names)}
    used = set(re.findall(r'class="fa-solid (fa-[\w-]+)', page.read_text(encoding="utf-8")))
    assert used and used <= rules.keys() and len(rules) < 100
    (file,) = (built / "_static/vendor/fontawesome/webfonts").iterdir()
    font = TTFont(file).getBestCmap()
    assert {int(rules[name], 16) for name in used} <= font.keys() and file.stat().st_size < 20_000


class Compressed(SimpleHTTPRequestHandler):
    """Serves a folder as GitHub Pages does, texts compressed."""

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if path.suffix not in (".html", ".js", ".css", ".svg") or not path.is_file():
            return super().do_GET()
        content = gzip.compress(path.read_bytes())
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


SLOW = 800  # Lighthouse calls a machine with a lower benchmark index too slow to stand for a phone by throttling
HTML, LIGHTHOUSE, BROWSER = REPOSITORY / "_build/html", shutil.which("lighthouse"), shutil.which("chromium")


@pytest.mark.long
@pytest.mark.skipif(not os.environ.get("RTX_LONG"), reason="set RTX_LONG=1 to run it")
@pytest.mark.skipif(
    not (LIGHTHOUSE and BROWSER), reason="there is no lighthouse (npm install lighthouse) or no chromium"
)
@pytest.mark.skipif(not HTML.exists(), reason="the book is not built: run `make book`")
@pytest.mark.parametrize("page", ["index.html", "notebooks/looping.html"])
def test_a_page_is_fast_on_a_phone(page):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Compressed, directory=HTML))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [LIGHTHOUSE, f"http://127.0.0.1:{server.server_port}/{page}", "--output=json", "--quiet"]
    command += ["--only-categories=performance", "--chrome-flags=--headless=new --no-sandbox --disable-gpu"]
    try:
        done = subprocess.run(command, env={**os.environ, "CHROME_PATH": BROWSER}, capture_output=True, check=True)
    finally:
        server.shutdown()
        server.server_close()
    report = json.loads(done.stdout)
    requests = report["audits"]["network-requests"]["details"]["items"]
    counted = [one for one in requests if one["resourceType"] != "Image" and "/demo/models/" not in one["url"]]
    assert sum(one["transferSize"] for one in counted) <= 350_000
    speed = report["environment"]["benchmarkIndex"]
    if speed < SLOW:
        pytest.skip(f"the machine is busy: lighthouse measures a speed of {speed:.0f}, less than that of a phone")
    assert report["audits"]["largest-contentful-paint"]["numericValue"] <= 2500
    assert report["categories"]["performance"]["score"] >= 0.9
