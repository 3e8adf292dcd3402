"""The pages' text for readers that are programs."""

from small_book import build_book

PAGES = {
    "index": "# Start\n\nFirst *words*.\n\n```{toctree}\nlater\nearlier\n```\n",
    "later": "# Second page\n\n| a | b |\n|:--|--:|\n| one | 28 % |\n\n- an item\n- another\n",
    "earlier": "# Third page\n\n```python\nprint(1)\n```\n\nLast words.\n",
}


def test_all_pages_are_listed_and_written_as_text_in_the_order_of_the_contents(tmp_path):
    for name, text in PAGES.items():
        (tmp_path / f"{name}.md").write_text(text)
    html = build_book(tmp_path, "plain_text", html_title="A book")
    assert (html / "llms.txt").read_text().splitlines() == [
        "# A book",
        "",
        "- [Start](index.html)",
        "- [Second page](later.html)",
        "- [Third page](earlier.html)",
    ]
    text = (html / "llms-full.txt").read_text()
    assert "one | 28 %" in text and "# Second page\n" in text and "an item\n\nanother" in text
    assert text.index("First words.") < text.index("Second page") < text.index("print(1)") < text.index("Last words.")
    assert "<p>" not in text and "</" not in text
