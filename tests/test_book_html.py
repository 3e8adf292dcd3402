"""The built book, if there is one (`make book` checks it in the same way), and the checks themselves."""

import pytest
from check_html import problems

from rtx_core.paths import REPOSITORY

HTML = REPOSITORY / "_build" / "html"


@pytest.mark.skipif(not (HTML / "index.html").exists(), reason="the book is not built: run `make book`")
def test_built_book():
    assert problems(HTML) == []


GOOD = """<p id="top">See <a href="https://arxiv.org">a paper</a>, <a href="#top">up</a>.</p>
<img src="a.svg" alt="A line.">"""
BAD = [
    ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js"),
    ('<link rel="stylesheet" href="//cdn.example/x.css">', "loads //cdn.example/x.css"),
    ('<script>import x from "https://cdn.example/x.js"</script>', "loads from another host"),
    ('<a href="gone.html">x</a>', "gone.html"),
    ('<a href="index.html#gone">x</a>', "anchor"),
    ('<img src="a.svg">', "alt text"),
    ("<pre>Traceback (most recent call last)</pre>", "error"),
    ("<p>About {val}`sst2.n` texts</p>", "{val}"),
    ('<div class="output stderr">A warning.</div>', "warning"),
    ("<table><thead><tr><th></th><th>a</th></tr></thead></table>", "header"),
]


@pytest.mark.parametrize(("html", "said"), BAD)
def test_a_good_page_passes_and_a_bad_one_is_found(tmp_path, html, said):
    (tmp_path / "a.svg").write_text("<svg/>")
    (tmp_path / "index.html").write_text(f"<html><body>{GOOD}</body></html>")
    assert problems(tmp_path) == []
    (tmp_path / "index.html").write_text(f"<html><body>{GOOD}{html}</body></html>")
    (found,) = problems(tmp_path)
    assert said in found


def test_remote_font_and_missing_start_page_are_found(tmp_path):
    (tmp_path / "a.css").write_text('@font-face { src: url("https://cdn.example/a.woff2") }')
    assert len(problems(tmp_path)) == 2
