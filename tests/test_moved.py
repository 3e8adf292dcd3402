"""Pages that have moved."""

from bs4 import BeautifulSoup
from check_html import problems
from small_book import build_book


def test_the_old_address_of_a_page_leads_to_the_new_one(tmp_path):
    (tmp_path / "index.md").write_text("# Start\n\n```{toctree}\nnotebooks/new\n```\n")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "new.md").write_text("# New & better\n\nWords.\n")
    html = build_book(tmp_path, "moved", moved_pages={"old": "notebooks/new", "notebooks/older": "notebooks/new"})
    for old, to in {"old": "notebooks/new.html", "notebooks/older": "new.html"}.items():
        page = BeautifulSoup((html / f"{old}.html").read_text(), "html.parser")
        assert page.find("meta", {"http-equiv": "refresh"})["content"] == f"0; url={to}"
        assert page.a["href"] == to and page.a.text == "New & better"
    assert not [problem for problem in problems(html) if "older" in problem or "old.html" in problem]
