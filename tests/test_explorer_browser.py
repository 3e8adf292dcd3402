"""Somebody plays with *Watch the loop* in the built book, by link, key and pointer; opt-in, after `make book`."""
# ruff: noqa: F811  (fixtures)

import re
import shutil

import pytest
from chromium import HTML, OPT_IN, all_of, driver, errors, one, sized, wait  # noqa: F401
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from test_explorer import DEMO, hop, np, stored_model
from test_explorer_texts import EXAMPLE, OPENED, answered

BUILT = HTML / "_static" / "demo"
pytestmark = OPT_IN
FRONT, TRY_IT = (page.as_uri() for page in (HTML / "index.html", HTML / "notebooks" / "try-it.html"))
FOOLS = "bdbadabcabcbcbabacabacacacbcabcd"  # two layers run twice, on one of the four numbers of hops
SIZES = {"wide": (1440, 2000), "narrow": (390, 3000)}


def test_the_book_is_built_of_todays_files():
    for path in DEMO.rglob("*.[jcs]*s"):
        assert (BUILT / path.relative_to(DEMO)).read_bytes() == path.read_bytes(), path.name


def visit(driver, link: str = "", screen: str = "wide", page: str = TRY_IT) -> None:
    sized(driver, *SIZES[screen], mobile=screen == "narrow")
    driver.get("about:blank")  # a new hash alone loads no page
    driver.get_log("browser")
    driver.get(page + link)
    done(driver)


def root(driver):
    return one(driver, ".rtx-explorer")


def done(driver) -> None:
    wait(driver, lambda d: root(d).get_attribute("data-state") in ("done", "failed"))
    assert root(driver).get_attribute("data-state") == "done", root(driver).text


@pytest.fixture(autouse=True)
def quiet(driver):
    yield
    assert errors(driver) == []


def told(driver) -> tuple[str, str]:
    """The answer that is shown, and whether it is said to be right."""
    return tuple(root(driver).get_attribute(f"data-{name}") for name in ("answer", "right"))


def link(driver) -> str:
    return one(driver, ".rtx-link").get_attribute("data-link")


def status(driver) -> str:
    return one(driver, ".rtx-status").text


def expected(model: str, letters: str, hops: int, steps: int, asked: int = 0, off=()) -> tuple[str, str]:
    """What torch answers, and whether it is right."""
    net, _ = stored_model(DEMO / "models" / f"khop-{model}.js")
    items = ["abcd".index(letter) for letter in letters]
    at = asked or len(items)
    best = answered(net, [5 + hops, *items], at, 4, steps, off)[-1]
    true = hop(np.array([items]), np.array([hops]), -1)[0, at - 1]
    return "abcd"[best], "none" if true < 0 else "yes" if best == true else "no"


def test_it_answers_as_torch_does_without_being_asked(driver):
    visit(driver, page=FRONT)  # it plays once
    assert told(driver) == expected("2x2", EXAMPLE, 4, 4)
    models = [script.get_attribute("src") for script in all_of(driver, "script[src*='models/khop']")]
    assert [model.rpartition("/")[2] for model in models] == ["khop-2x2.js", "khop-2x1.js"]  # no other is loaded
    assert not all_of(driver, ".rtx-strip") and not one(driver, ".rtx-controls").is_displayed()  # under More
    once, twice = ([expected(name, EXAMPLE, k, 2) for k in (1, 2, 3, 4)] for name in ("2x1", "2x2"))
    assert grid_row(driver, 1) == once + twice
    assert grid_row(driver, 2) == [expected("2x2", EXAMPLE, k, 4) for k in (1, 2, 3, 4)]


def grid_row(driver, number: int) -> list[tuple[str, str]]:
    """The answers of a pass in the grid, and whether each is right."""
    cells = all_of(driver, f".rtx-grid tr[data-pass='{number}'] td[data-answer]")
    return [(cell.get_attribute("data-answer"), cell.get_attribute("data-right")) for cell in cells]


def test_it_plays_when_it_is_seen_and_nothing_loads_before(driver):
    sized(driver, 1440, 300)
    driver.get("about:blank")
    driver.get(FRONT)
    assert not all_of(driver, "script[src*='models/']")
    sized(driver, 1440, 600)
    driver.execute_script("document.querySelector('.rtx-explorer').scrollIntoView({behavior: 'instant'})")
    wait(driver, lambda d: root(d).get_attribute("data-state") == "playing")
    assert len(grid_row(driver, 1)) == 8 and not grid_row(driver, 2)
    done(driver)
    assert len(grid_row(driver, 2)) == 4


def test_who_wants_less_motion_sees_the_end_at_once(driver):
    reduced = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", reduced)
    visit(driver, page=FRONT)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert len(grid_row(driver, 2)) == 4


def test_a_head_is_broken_by_the_list_and_a_sequence_that_fools_is_passed_on(driver):
    visit(driver, page=FRONT)
    Select(one(driver, ".rtx-break select")).select_by_value("3.4")
    assert told(driver) == expected("2x2", EXAMPLE, 4, 4, off=["3.4"]) and link(driver).endswith("&off=3.4")
    one(driver, ".rtx-whole").click()
    assert told(driver)[1] == "yes"
    visit(driver, f"#letters={FOOLS}&model=2x2&passes=2&hops=4&tries=7", page=FRONT)
    assert "7 tries" in one(driver, ".rtx-dare").text and link(driver).endswith("&tries=7")
    one(driver, "[data-key='shuffle']").click()
    assert "7 tries" not in one(driver, ".rtx-dare").text


def test_a_link_switches_a_head_off_and_another_link_is_followed(driver):
    part = next(part for part in OPENED["hops"]["serves"] if part > "2")  # what is missed most often
    first = f"#letters={EXAMPLE}&hops=4&passes=2&model=2x2&off={part}"
    visit(driver, first)
    assert told(driver)[1] == "no" and told(driver) == expected("2x2", EXAMPLE, 4, 4, off=[part])
    assert link(driver) == first
    assert one(driver, f"[data-key='off={part}']").get_attribute("aria-checked") == "false"
    wait(driver, lambda d: root(d).get_attribute("data-counted"))
    without, whole = map(float, root(driver).get_attribute("data-counted").split(","))
    _, header = stored_model(DEMO / "models" / "khop-2x2.js")
    assert abs(whole - header["right"][4][3]) < 0.06 and without < whole - 0.05
    said = list(map(int, re.findall(r"\d+", one(driver, ".rtx-counted").text)))
    assert said == pytest.approx([200, 100 * whole, 100 * without], abs=0.6)
    driver.execute_script("location.hash = '#hops=2&passes=2&letters=abcabdabca&model=1x4'")
    wait(driver, lambda d: "model=1x4" in link(d))
    assert link(driver) == "#letters=abcabdabca&hops=2&passes=2&model=1x4"


def test_a_bad_link_is_repaired_and_said_and_nothing_becomes_html(driver):
    visit(driver, "#letters=<img src=x onerror=alert(1)>abbdacbd&hops=77&passes=<b>&model=<i>9&off=a.b")
    assert all(name in status(driver) for name in ("model", "letters", "hops", "passes", "pass.head"))
    assert all_of(driver, ".rtx-explorer img, .rtx-explorer b, .rtx-explorer i") == []


def press(driver, *keys: str) -> None:
    for key in keys:
        driver.switch_to.active_element.send_keys(key)


def press_at_the_letters(driver, *keys: str) -> None:
    driver.execute_script("document.querySelector('.rtx-cell[tabindex=\"0\"]').focus()")
    press(driver, *keys)


def test_keys_walk_the_letters_and_change_them(driver):
    visit(driver, f"#letters={EXAMPLE}&model=1x4&hops=4")
    press_at_the_letters(driver, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert "asked=30" in link(driver) and told(driver) == expected("1x4", EXAMPLE, 4, 4, asked=30)
    press(driver, "2")
    assert "hops=2" in link(driver) and told(driver) == expected("1x4", EXAMPLE, 2, 4, asked=30)
    press(driver, "d")
    changed = EXAMPLE[:29] + "d" + EXAMPLE[30:]
    assert f"letters={changed}&" in link(driver) and told(driver) == expected("1x4", changed, 2, 4, asked=30)
    press(driver, changed[28])
    refused = status(driver)
    assert f"letters={changed}&" in link(driver) and refused  # it would be its neighbour's equal
    press(driver, Keys.ARROW_UP)
    assert f"letters={changed}&" not in link(driver) and status(driver) != refused
    press(driver, Keys.END)
    assert "asked" not in link(driver)
    press(driver, Keys.HOME)
    assert "asked=1&" in link(driver) and told(driver)[1] == "none"
    assert driver.switch_to.active_element.get_attribute("data-key") == "asked"
    one(driver, "input[type=range]").send_keys(Keys.ARROW_RIGHT)
    assert "passes=5" in link(driver)


def choose(driver, model: str, name: str = "") -> None:
    driver.execute_script(f"document.querySelector(\"[data-key='model={name or 'khop-' + model}']\").click()")
    wait(driver, lambda d: f"model={model}" in link(d))


@pytest.mark.parametrize("screen", SIZES)
def test_a_pointer_asks_switches_and_plays(driver, screen):
    visit(driver, f"#letters={EXAMPLE}&model=1x6-random&hops=4&passes=3", screen)
    one(driver, "[data-key='off=2.1']").click()
    assert told(driver) == expected("1x6-random", EXAMPLE, 4, 3, off=["2.1"])
    one(driver, ".rtx-whole").click()
    assert "off" not in link(driver)
    one(driver, "[data-item='28']").click()
    assert "asked=29" in link(driver)
    before = link(driver)
    one(driver, "[data-item='28']").click()  # again: another letter
    assert link(driver) != before and "asked=29" in link(driver)
    one(driver, "[data-key='on']").click()
    assert "asked=30" in link(driver)
    choose(driver, "4x1")
    assert one(driver, ".rtx-title").text == "layer 1" and not one(driver, ".rtx-far").is_displayed()
    choose(driver, "1x4")
    one(driver, ".rtx-far").click()
    assert "passes=64" in link(driver) and one(driver, ".rtx-strip:last-child").get_attribute("data-step") == "64"
    one(driver, ".rtx-far").click()
    one(driver, "[data-key='shuffle']").click()
    assert told(driver)[1] in ("yes", "no")
    slider = one(driver, ".rtx-slide input")
    ActionChains(driver).move_to_element_with_offset(slider, slider.rect["width"] // 2 - 3, 0).click().perform()
    assert "passes=12" in link(driver) and len(all_of(driver, ".rtx-strip")) == 12
    one(driver, ".rtx-play").click()
    assert root(driver).get_attribute("data-state") == "playing" and len(all_of(driver, ".rtx-strip")) == 1
    wait(driver, lambda d: len(all_of(d, ".rtx-strip")) == 2)
    one(driver, ".rtx-play").click()  # stops
    done(driver)
    stopped = len(all_of(driver, ".rtx-strip"))
    one(driver, ".rtx-play").click()  # and goes on
    assert stopped < len(all_of(driver, ".rtx-strip")) < 12


def test_another_model_begins_as_it_was_trained_with_all_heads(driver):
    visit(driver, f"#letters={EXAMPLE}&off=2.4&passes=6")
    for model, passes in (("1x4", 4), ("2x2", 2), ("1x1", 1), ("1x6-random", 4)):
        choose(driver, model)
        assert f"passes={passes}&" in link(driver) and "off" not in link(driver)
    driver.execute_script("document.querySelector(\"[data-key='toy=cups']\").click()")
    wait(driver, lambda d: "toy=cups" in link(d))
    assert f"letters={OPENED['cups']['letters']}&asked=8&" in link(driver) and "passes=8" in link(driver)
    serves = f"off={OPENED['cups']['serves'][-1]}"
    assert told(driver)[1] == "yes"
    one(driver, f"[data-key='{serves}']").click()
    assert told(driver)[1] == "no"
    press(driver, Keys.ARROW_DOWN)
    keys = [head.get_attribute("data-key") for head in all_of(driver, ".rtx-head")]
    assert driver.switch_to.active_element.get_attribute("data-key") == keys[keys.index(serves) + 1]


SPILLS = """
var root = document.querySelector(".rtx-explorer"), box = root.getBoundingClientRect(), found = [];
for (var one of root.querySelectorAll("*:not(.rtx-hidden)")) {
  var r = one.getBoundingClientRect();
  if (r.width && (r.left < box.left - 0.5 || r.right > box.right + 0.5)) found.push(one.outerHTML.slice(0, 80));
}
if (document.documentElement.scrollWidth > innerWidth) found.push("the page scrolls sideways");
return found;
"""
OVERLAPS = """
var first = ".rtx-strip:first-child", strips = [...document.querySelectorAll(".rtx-strip")];
var groups = [".rtx-hop", `${first} .rtx-item`, `${first} .rtx-head`, ".rtx-controls label"];
groups.push(".rtx-run > *", ".rtx-slide > *", ".rtx-grid :is(td, th)");
groups.push(...strips.map((_, i) => `.rtx-strip:nth-child(${i + 1}) :is(.rtx-does, .rtx-column-of)`));
var found = [], beside = (a, b) => a.right <= b.left + 1 || a.bottom <= b.top + 1;
for (var group of groups) {
  var boxes = [...document.querySelectorAll(".rtx-explorer " + group)].map((one) => one.getBoundingClientRect());
  boxes = boxes.filter((box) => box.width);
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => beside(a, b) || beside(b, a) || found.push(group)));
}
return found;
"""
SMALL = """
const kinds = ":is(button, select, summary, .rtx-choice label, input[type=range])";
return [...document.querySelectorAll(`.rtx-explorer ${kinds}:not(.rtx-cell)`)]
  .map((one) => [one.getBoundingClientRect(), one.className + one.textContent])
  .filter(([box]) => box.width && (box.height < 44 || box.width < 44)).map(([, name]) => name);
"""


@pytest.mark.parametrize("screen", SIZES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_spills_or_overlaps_and_a_finger_finds_its_target(driver, screen, dark):
    links = ["", "#model=1x4", "#model=1x1", "#model=4x1&off=1.1", "#model=2x2&passes=12&off=1.1"]
    for given in (*links, f"#letters={EXAMPLE}&asked=11&hops=2", "#passes=64", "#toy=cups"):
        visit(driver, given, screen)
        if dark:
            driver.execute_script("document.documentElement.dataset.theme = 'dark'")
        assert driver.execute_script(SPILLS) == [] and driver.execute_script(OVERLAPS) == []
        assert all_of(driver, ".rtx-cell[aria-checked='true']")
        if screen == "narrow":
            boxes = "return [...document.querySelectorAll('.rtx-cell')].map((cell) => cell.getBoundingClientRect())"
            assert all(box["width"] >= 9 and box["height"] >= 44 for box in driver.execute_script(boxes))
            assert driver.execute_script(SMALL) == []
            hops = int(re.search(r"hops=(\d)|$", link(driver))[1] or 0)
            assert len(all_of(driver, ".rtx-led")) == hops or told(driver)[1] == "none"


def test_cups_are_a_second_toy(driver):
    visit(driver, "#toy=cups&letters=uldr&passes=2", "narrow")
    assert link(driver) == "#letters=uldr&toy=cups&passes=2&model=1x8" and len(all_of(driver, ".rtx-strip")) == 2
    assert sorted(told(driver)[0].split()) == ["blue", "gold", "red"]
    press_at_the_letters(driver, "o", Keys.ARROW_LEFT)
    assert link(driver) == "#letters=uldo&asked=3&toy=cups&passes=2&model=1x8"


RINGED = """
const one = document.activeElement, seen = one.type === "radio" ? one.nextElementSibling : one;
const style = getComputedStyle(seen);
return [one.dataset.key, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
"""


def test_the_tab_key_reaches_everything_with_a_ring_and_a_name(driver):
    visit(driver, "#model=1x4&passes=2&off=1.1")
    before = "var before = document.querySelector('.rtx-explorer').previousElementSibling;"
    driver.execute_script(f"{before} before.tabIndex = -1; before.focus()")
    reached = []
    while len(reached) < 40 and (not reached or reached[-1] != "off=2.4"):
        press(driver, Keys.TAB)
        key, ringed = driver.execute_script(RINGED)
        if key or reached:
            assert ringed and driver.switch_to.active_element.accessible_name, key
            reached.append(key)
    heads = [f"off={step}.{head}" for step in (1, 2) for head in (1, 2, 3, 4)]
    first = ["asked", "play", "shuffle", "back", "on", "break", "whole", "link", "more"]
    assert reached == [*first, "toy=hops", "model=khop-1x4", "hops=4", "passes", "far", *heads]


@pytest.mark.parametrize("screen", SIZES)
def test_a_model_of_more_letters_and_hops_is_offered_with_what_it_can_do(driver, screen):
    visit(driver, f"#letters={EXAMPLE}&hops=4", screen)
    choose(driver, "2x3", "khop-hard-2x3")
    assert re.match(rf"#letters=[abcd]{{16}}{EXAMPLE}&hops=8&", link(driver))
    assert told(driver)[1] in ("yes", "no")  # there are so many hops
    assert len(all_of(driver, ".rtx-choose-hops input")) == 9
    cells = len(all_of(driver, ".rtx-cell"))
    assert cells == 48 if screen == "wide" else 8 < cells < 48
    assert driver.execute_script(SPILLS) == []
    choose(driver, "1x4")
    assert link(driver).startswith(f"#letters={EXAMPLE}&hops=4")


def test_a_missing_model_is_said(driver, tmp_path):
    (tmp_path / "page.html").write_text('<div class="rtx-explorer"></div><script src="demo/explorer.js"></script>')
    shutil.copytree(DEMO, tmp_path / "demo", ignore=shutil.ignore_patterns("sst2*", "vocabulary*", "khop*"))
    driver.get((tmp_path / "page.html").as_uri())
    wait(driver, lambda d: root(d).get_attribute("data-state") == "failed")
    assert one(driver, "[role=alert]").text and errors(driver)
