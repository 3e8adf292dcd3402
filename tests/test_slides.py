"""Slides from built pages: the figure, and the first sentence of its caption."""

import importlib.util

import pytest

from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY

SPEC = importlib.util.spec_from_file_location("slides", REPOSITORY / "workflow" / "slides.py")
slides = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(slides)
PAGE = """<h1>Facts &amp; passes</h1><figure id="fig-facts"><img src="_images/fig.svg" alt="One &quot;dot&quot;">
<figcaption><p><span class="caption-number">Fig. 1 </span><span class="caption-text">Passes add 4.1 bits
( <em>all</em> of them). One mark per seed.</span></p></figcaption></figure>"""


def test_a_slide_has_the_figure_and_the_first_sentence(tmp_path):
    (tmp_path / "facts.html").write_text(PAGE)
    (tmp_path / "_images").mkdir()
    (tmp_path / "_images" / "fig.svg").write_text("<svg/>")
    slide = slides.slide(tmp_path, "facts", "fig-facts")
    assert "<h1>Passes add 4.1 bits ( all of them).</h1>" in " ".join(slide.split())
    assert "<footer>Facts &amp; passes</footer>" in slide and "PHN2Zy8+" in slide  # <svg/> in base 64


@pytest.mark.parametrize("page, figure", [("facts", "fig-facts"), ("other", "fig-facts")])
def test_a_figure_that_is_not_built_is_one_sentence(page, figure, tmp_path):
    (tmp_path / "facts.html").write_text("<h1>Facts</h1>")
    with pytest.raises(RtxError, match="make book"):
        slides.slide(tmp_path, page, figure)
