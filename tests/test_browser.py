"""The built book in a browser, from the disk as without a network: an opt-in test, after `make book`."""
# ruff: noqa: F811  (fixtures)

import re

import numpy as np
import pytest
from chromium import HTML, OPT_IN, all_of, driver, errors, one, sized, wait  # noqa: F401
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from test_demo import ask, committed

pytestmark = OPT_IN
PAGES = sorted(path.relative_to(HTML).as_posix() for path in HTML.rglob("*.html") if "_static" not in path.parts)
SIZES = {"desk": (1440, 900), "phone": (390, 844)}
OVERFLOWING = """
const wide = document.documentElement.clientWidth;
const scrolls = (e) => e && e !== document.body &&
  (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
return [...document.querySelectorAll("main *")]
  .filter((e) => e.getBoundingClientRect().right > wide + 1 && e.getClientRects().length && !scrolls(e))
  .map((e) => e.tagName + "." + e.className).slice(0, 5);
"""


AT_ONCE = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})"
LINKS = [("main a[href^='#fig-'].reference", "img"), ("main a[href*='related-work.html#']", "p, span")]


def visit(driver, page: str, size: str = "desk") -> None:
    """Open a page of the book as it looks on a desk or a phone."""
    sized(driver, *SIZES[size])
    driver.get((HTML / page).as_uri())


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_console_error_and_fits(driver, page):
    for size, (width, _) in SIZES.items():
        visit(driver, page, size)
        assert driver.execute_script(OVERFLOWING) == [], size
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width, size
        assert errors(driver) == [], size


UNREADABLE = """
const mode = arguments[0];
Object.assign(document.documentElement.dataset, { mode, theme: mode });
const channel = (x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
const light = (color) => {
  const [r, g, b] = color.match(/[\\d.]+/g).map((x) => channel(x / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
};
const ground = (e) => {
  const { backgroundColor } = getComputedStyle(e);
  return /, 0\\)$/.test(backgroundColor) ? ground(e.parentElement) : backgroundColor;
};
const contrast = (e) => {
  const [a, b] = [getComputedStyle(e).color, ground(e)].map(light);
  return Math.max(a, b) / Math.min(a, b);
};
const links = [...document.querySelectorAll("main table a:not(.headerlink)")];
return links.filter((e) => contrast(e) < 4.5).map((e) => e.outerHTML.slice(0, 99));
"""
NAMELESS = """
const shown = [...document.querySelectorAll("button, summary")].filter((e) => e.getClientRects().length);
return shown.filter((e) => !(e.ariaLabel || e.textContent).trim()).map((e) => e.outerHTML.slice(0, 99));
"""


@pytest.mark.parametrize("page", ["related-work.html", "notebooks/claims.html", "notebooks/sst2.html"])
def test_links_of_tables_can_be_read_and_controls_have_names(driver, page):
    visit(driver, page)
    assert driver.execute_script(NAMELESS) == []
    for mode in ("light", "dark"):
        assert driver.execute_script(UNREADABLE, mode) == [], mode


def test_one_switch_opens_all_code_and_is_remembered(driver):
    visit(driver, "notebooks/sst2.html")
    cells = all_of(driver, "main details.hide")
    assert len(cells) > 3 and not any(cell.get_attribute("open") for cell in cells)
    one(driver, ".code-switch").click()
    assert all(cell.get_attribute("open") for cell in cells)
    visit(driver, "notebooks/reviews.html")
    assert all(cell.get_attribute("open") for cell in all_of(driver, "main details.hide"))
    one(driver, ".code-switch").click()
    assert not any(cell.get_attribute("open") for cell in all_of(driver, "main details.hide"))


def test_the_scoreboard_is_filtered_searched_and_sorted(driver):
    visit(driver, "notebooks/claims.html")
    rows = all_of(driver, "#tab-claims tbody tr")
    Select(one(driver, ".board-controls select[aria-label='Outcome']")).select_by_value("contradicted")
    shown = [row for row in rows if row.is_displayed()]
    assert 0 < len(shown) < len(rows) and all("contradicted" in row.text for row in shown)
    one(driver, ".board-search").send_keys("loss")
    fewer = [row for row in rows if row.is_displayed()]
    assert 0 < len(fewer) < len(shown) and all("loss" in row.text.lower() for row in fewer)
    visit(driver, "notebooks/claims.html")
    head = one(driver, "#tab-claims th:nth-child(5) button")
    driver.execute_script(AT_ONCE, head)
    head.click()
    said = [cell.text for cell in all_of(driver, "#tab-claims td:nth-child(5)")]
    assert said == sorted(said, key=str.lower)


def test_the_forest_plot_answers_to_the_metric(driver):
    visit(driver, "notebooks/claims.html")
    marks = "#fig-claims-tests svg .mark-symbol.role-mark path"
    driver.execute_script(AT_ONCE, one(driver, "#fig-claims-tests"))
    one(driver, "#fig-claims-tests .ask").click()
    assert len(wait(driver, lambda d: all_of(d, marks))) > 3
    assert not one(driver, "#fig-claims-tests img").is_displayed()
    before = [mark.get_attribute("transform") for mark in all_of(driver, marks)]
    Select(one(driver, "#fig-claims-tests select")).select_by_visible_text("recall")
    wait(driver, lambda d: before != [mark.get_attribute("transform") for mark in all_of(d, marks)])


def test_a_visitor_types_a_text_and_opens_a_link(driver):
    """The bars are what V8 computes with the same files, which `test_demo` sets beside torch."""
    text = "<b>the humor</b> , you will regret"
    visit(driver, "notebooks/try-it.html")
    (shares,) = ask(committed("sst2-recurrent"), "shares", [text])

    def agrees(passes: int) -> None:
        wait(driver, lambda d: one(d, ".rtx-try").get_attribute("data-state") == "done")
        bars = all_of(driver, ".rtx-panel section:first-child .rtx-bars li")
        shown = [float(re.search(r"([\d.]+) %", bar.get_attribute("textContent"))[1]) for bar in bars]
        np.testing.assert_allclose(shown, 100 * np.array(shares[passes - 1]), atol=0.06)

    assert not all_of(driver, "script[src*='models/sst2']")  # nothing heavy before the first use
    driver.execute_script("arguments[0].focus()", one(driver, ".rtx-try textarea"))
    driver.execute_cdp_cmd("Input.insertText", {"text": text})
    agrees(passes=2)
    assert all_of(driver, ".rtx-try b") == []
    driver.execute_script("arguments[0].click()", one(driver, ".rtx-copy"))
    driver.get(driver.current_url.replace("passes=2", "passes=5"))
    wait(driver, lambda d: one(d, ".rtx-try output").get_property("value").startswith("5"))
    agrees(passes=5)


@pytest.mark.parametrize(("link", "shown"), LINKS)
def test_a_link_shows_what_it_leads_to(driver, link, shown):
    visit(driver, "notebooks/sst2.html")
    target = one(driver, link)
    ActionChains(driver).scroll_to_element(target).move_to_element(target).perform()
    wait(driver, lambda d: one(d, ".preview").is_displayed())
    assert all_of(driver, f".preview :is({shown})")
    target.send_keys(Keys.ESCAPE)
    wait(driver, lambda d: not one(d, ".preview").is_displayed())
    visit(driver, "notebooks/sst2.html")
    driver.execute_script("arguments[0].focus()", one(driver, link))
    wait(driver, lambda d: one(d, ".preview").is_displayed())
    assert one(driver, link).get_attribute("aria-describedby") == "preview"
