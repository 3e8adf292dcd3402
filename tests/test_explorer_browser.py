"""Somebody plays with *Watch the loop*, opened from disk: by link, by keys and by pointer; opt-in,
where there is a Chromium."""
# ruff: noqa: F811  (fixtures)

import re
import shutil

import pytest
import torch
import torch.nn.functional as F
from chromium import OPT_IN, all_of, driver, one, wait  # noqa: F401
from selenium.webdriver.common.keys import Keys
from test_explorer import DEMO, WORDS, about, explorer_file, hop, np, small, stored_model, watched, write_catalogue

pytestmark = OPT_IN
PAGE = """<!doctype html><html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Watch the loop</title>
<style>body { font-family: sans-serif; }
[data-theme=dark] body { background: #121212; color: #ced6dd; --pst-color-background: #121212;
--pst-color-text-base: #ced6dd; --pst-color-text-muted: #9ca4af; --pst-color-border: #48566b; }</style>
<div class="rtx-explorer"><p>This needs JavaScript.</p></div><script src="demo/explorer.js"></script>"""
EXAMPLE = "cacacdbcacbadbdcabdcacbdcbabacda"
SIZES = {"wide": (1440, 2000), "narrow": (390, 3000)}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DEMO, folder / "demo", ignore=shutil.ignore_patterns("sst2*", "vocabulary*"))
    (folder / "page.html").write_text(PAGE)
    return (folder / "page.html").as_uri()


def size(driver, name: str) -> None:
    width, height = SIZES[name]
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": name == "narrow"},
    )


def visit(driver, address: str, link: str = "", screen: str = "wide") -> None:
    size(driver, screen)
    driver.get("about:blank")  # a new hash alone loads no page
    driver.get_log("browser")
    driver.get(address + link)
    done(driver)


def root(driver):
    return one(driver, ".rtx-explorer")


def done(driver) -> None:
    wait(driver, lambda d: root(d).get_attribute("data-state") in ("done", "failed"))
    assert root(driver).get_attribute("data-state") == "done", root(driver).text


def quiet(driver) -> None:
    assert [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def answer(driver) -> str:
    return root(driver).get_attribute("data-answer")


def link(driver) -> str:
    return one(driver, ".rtx-link").get_attribute("data-link")


def status(driver) -> str:
    return one(driver, ".rtx-status").text


def expected(model: str, letters: str, hops: int, steps: int, asked: int = 0, off=()) -> tuple[str, str]:
    """What torch answers, and whether it is right."""
    net, _ = stored_model(DEMO / "models" / f"khop-{model}.js")
    items = ["abcd".index(letter) for letter in letters]
    at = asked or len(items)
    out = frozenset((step - 1, head - 1) for step, head in off)
    *_, (_, state) = watched(net, torch.tensor([[5 + hops, *items]]), steps, out)
    with torch.inference_mode():
        best = int(F.linear(net.norm(state[0, at]), net.head)[:4].argmax())
    true = hop(np.array([items]), np.array([hops]), -1)[0, at - 1]
    return "abcd"[best], "none" if true < 0 else "yes" if best == true else "no"


def test_it_answers_as_torch_does_without_being_asked(driver, address):
    visit(driver, address)
    assert (answer(driver), root(driver).get_attribute("data-right")) == expected("1x6-random", EXAMPLE, 4, 6)
    assert len(all_of(driver, ".rtx-strip")) == 6
    models = [s.get_attribute("src") for s in all_of(driver, "script[src*='models/khop']")]
    assert len(models) == 1 and models[0].endswith("khop-1x6-random.js")
    shown = [strip.get_attribute("data-answer") for strip in all_of(driver, ".rtx-strip")]
    assert shown == [expected("1x6-random", EXAMPLE, 4, n)[0] for n in range(1, 7)]
    said = one(driver, ".rtx-strip:nth-child(3) .rtx-hidden").get_attribute("textContent")
    assert (
        said.startswith("pass 3: head 1 looks at where it stands, ")
        and "head 2 jumps to hop 3" in said
        and "places back" in said
    )
    ready = driver.execute_script("return performance.now()")
    assert ready < 60_000
    quiet(driver)


@pytest.mark.parametrize("model", ["1x4", "2x2", "1x1", "4x1"])
def test_every_model_answers_by_link(driver, address, model):
    steps = {"1x4": 4, "2x2": 4, "1x1": 1, "4x1": 4}[model]
    visit(driver, address, f"#letters={EXAMPLE}&hops=3&model={model}&asked=30")
    found = answer(driver), root(driver).get_attribute("data-right")
    assert found == expected(model, EXAMPLE, 3, steps, asked=30)
    assert len(all_of(driver, ".rtx-strip")) == steps
    quiet(driver)


def test_a_link_switches_a_head_off_and_another_link_is_followed(driver, address):
    first = f"#letters={EXAMPLE}&hops=4&passes=3&model=1x6-random&off=3.2"
    visit(driver, address, first)
    assert answer(driver) == expected("1x6-random", EXAMPLE, 4, 3, off=[(3, 2)])[0] != "c"
    assert link(driver) == first
    assert status(driver).startswith("Without head 2 in pass 3") and status(driver).endswith("it is c.")
    assert one(driver, "[data-key='off=3.2']").get_attribute("aria-checked") == "false"
    one(driver, ".rtx-count").click()
    wait(driver, lambda d: root(d).get_attribute("data-counted"))
    without, whole = map(float, root(driver).get_attribute("data-counted").split(","))
    _, header = stored_model(DEMO / "models" / "khop-1x6-random.js")
    assert abs(whole - header["right"][4][2]) < 0.06 and without < whole - 0.05
    said = one(driver, ".rtx-counted").text
    assert abs(int(re.search(r"(\d+) % of the answers are right without it", said)[1]) - 100 * without) < 0.6
    driver.execute_script("location.hash = '#hops=2&passes=2&letters=abcabdabca&model=1x4'")
    wait(driver, lambda d: "model=1x4" in link(d))
    assert link(driver) == "#letters=abcabdabca&hops=2&passes=2&model=1x4"
    quiet(driver)


def test_a_bad_link_is_repaired_and_said_and_nothing_becomes_html(driver, address):
    visit(driver, address, "#letters=<img src=x onerror=alert(1)>abbdacbd&hops=77&passes=<b>&model=<i>9&off=a.b")
    said = status(driver)
    for words in ("no such model", "Only the letters", "hops goes from 0 to 4", "passes is a number", "pass.head"):
        assert words in said, said
    assert all_of(driver, ".rtx-explorer img, .rtx-explorer b, .rtx-explorer i") == []
    quiet(driver)


def press(driver, *keys: str) -> None:
    for key in keys:
        driver.switch_to.active_element.send_keys(key)


def test_keys_walk_the_letters_and_change_them(driver, address):
    visit(driver, address, f"#letters={EXAMPLE}&model=1x4&hops=4")
    driver.execute_script("document.querySelector('.rtx-cell[tabindex=\"0\"]').focus()")
    press(driver, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert "asked=30" in link(driver) and answer(driver) == expected("1x4", EXAMPLE, 4, 4, asked=30)[0]
    press(driver, "2")
    assert "hops=2" in link(driver) and answer(driver) == expected("1x4", EXAMPLE, 2, 4, asked=30)[0]
    press(driver, "b")
    changed = EXAMPLE[:29] + "b" + EXAMPLE[30:]
    assert f"letters={changed}&" in link(driver) and answer(driver) == expected("1x4", changed, 2, 4, asked=30)[0]
    press(driver, changed[28])
    assert f"letters={changed}&" in link(driver) and "never the same letter" in status(driver)
    press(driver, Keys.ARROW_UP)
    assert f"letters={changed}&" not in link(driver) and "never" not in status(driver)
    press(driver, Keys.END)
    assert "asked" not in link(driver)
    press(driver, Keys.HOME)
    assert "asked=1&" in link(driver) and root(driver).get_attribute("data-right") == "none"
    assert driver.switch_to.active_element.get_attribute("data-key") == "asked"
    one(driver, "input[type=range]").send_keys(Keys.ARROW_RIGHT)
    assert "passes=5" in link(driver)
    quiet(driver)


@pytest.mark.parametrize("screen", SIZES)
def test_a_pointer_asks_switches_and_plays(driver, address, screen):
    visit(driver, address, f"#letters={EXAMPLE}&model=1x6-random&hops=4&passes=3", screen)
    one(driver, "[data-key='off=2.1']").click()
    assert answer(driver) == expected("1x6-random", EXAMPLE, 4, 3, off=[(2, 1)])[0]
    one(driver, ".rtx-whole").click()
    assert "off" not in link(driver)
    one(driver, "[data-item='28']").click()
    assert "asked=29" in link(driver)
    before = link(driver)
    one(driver, "[data-item='28']").click()  # again: another letter
    assert link(driver) != before and "asked=29" in link(driver)
    one(driver, "[data-key='on']").click()
    assert "asked=30" in link(driver)
    driver.execute_script("document.querySelector(\"[data-key='model=khop-4x1']\").click()")
    wait(driver, lambda d: "model=4x1" in link(d))
    assert one(driver, ".rtx-title").text == "layer 1" and not one(driver, ".rtx-far").is_displayed()
    driver.execute_script("document.querySelector(\"[data-key='model=khop-1x4']\").click()")
    wait(driver, lambda d: "model=1x4" in link(d))
    one(driver, ".rtx-far").click()
    assert "passes=64" in link(driver) and one(driver, ".rtx-strip:last-child").get_attribute("data-step") == "64"
    one(driver, ".rtx-far").click()
    one(driver, "[data-key='shuffle']").click()
    assert root(driver).get_attribute("data-right") in ("yes", "no")
    one(driver, ".rtx-play").click()
    assert root(driver).get_attribute("data-state") == "playing" and len(all_of(driver, ".rtx-strip")) == 1
    done(driver)
    assert len(all_of(driver, ".rtx-strip")) == 4
    quiet(driver)


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
var first = ".rtx-strip:first-child";
var groups = [".rtx-hop", `${first} .rtx-item`, `${first} .rtx-head`, ".rtx-controls label", ".rtx-run > *"];
var found = [], beside = (a, b) => a.right <= b.left + 1 || a.bottom <= b.top + 1;
for (var group of groups) {
  var boxes = [...document.querySelectorAll(".rtx-explorer " + group)].map((one) => one.getBoundingClientRect());
  boxes = boxes.filter((box) => box.width);
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => beside(a, b) || beside(b, a) || found.push(group)));
}
for (var strip of document.querySelectorAll(".rtx-strip")) {
  var ends = [...strip.querySelectorAll(".rtx-does")].map((one) => one.getBoundingClientRect());
  var side = [...strip.querySelectorAll(".rtx-column-of")].map((one) => one.getBoundingClientRect());
  ends.forEach((a) => side.forEach((b) => beside(a, b) || beside(b, a) || found.push("heads and answer")));
}
return found;
"""


@pytest.mark.parametrize("screen", SIZES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_spills_or_overlaps(driver, address, screen, dark):
    links = [f"#model={model}" for model in ("1x4", "1x1", "4x1")]
    for given in (*links, "", "#model=2x2&passes=12&off=1.1", f"#letters={EXAMPLE}&asked=11&hops=2", "#passes=64"):
        visit(driver, address, given, screen)
        if dark:
            driver.execute_script("document.documentElement.dataset.theme = 'dark'")
        assert driver.execute_script(SPILLS) == [] and driver.execute_script(OVERLAPS) == []
        assert all_of(driver, ".rtx-cell[aria-checked='true']")
        if screen == "narrow":
            assert one(driver, ".rtx-cell").rect["width"] >= 19
    quiet(driver)


@pytest.mark.parametrize("screen", SIZES)
def test_cups_are_a_second_toy(driver, address, tmp_path, screen):
    shutil.copytree(DEMO, tmp_path / "demo", ignore=shutil.ignore_patterns("sst2*", "vocabulary*", "state-*"))
    (tmp_path / "page.html").write_text(PAGE)
    content = explorer_file(small(1, 3, vocabulary=12), "state-tracking-1x3", about("1x3"), WORDS)
    (tmp_path / "demo" / "models" / "state-tracking-1x3.js").write_bytes(content)
    write_catalogue(tmp_path / "demo" / "models")
    visit(driver, (tmp_path / "page.html").as_uri(), "#toy=cups&letters=uldr&passes=2", screen)
    assert root(driver).get_attribute("data-toy") == "cups" and len(all_of(driver, ".rtx-strip")) == 2
    assert link(driver) == "#letters=uldr&toy=cups&passes=2&model=1x3"
    assert sorted(answer(driver).split()) == ["blue", "gold", "red"]
    driver.execute_script("document.querySelector('.rtx-cell[tabindex=\"0\"]').focus()")
    press(driver, "o", Keys.ARROW_LEFT)
    assert link(driver) == "#letters=uldo&asked=3&toy=cups&passes=2&model=1x3"
    assert driver.execute_script(SPILLS) == []
    driver.execute_script("document.querySelector(\"[data-key='toy=hops']\").click()")
    wait(driver, lambda d: "hops=" in link(d))
    quiet(driver)


def test_a_missing_model_is_said(driver, address, tmp_path):
    (tmp_path / "page.html").write_text(PAGE)
    shutil.copytree(DEMO, tmp_path / "demo", ignore=shutil.ignore_patterns("sst2*", "vocabulary*", "khop*"))
    driver.get((tmp_path / "page.html").as_uri())
    wait(driver, lambda d: root(d).get_attribute("data-state") == "failed")
    assert "is not in this copy of the book" in one(driver, "[role=alert]").text
