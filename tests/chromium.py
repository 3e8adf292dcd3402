"""A Chromium that opt-in tests drive, with `pip install -e .[browser]` and Debian's chromium and chromium-driver."""

import os
import shutil

import pytest

selenium = pytest.importorskip("selenium", reason="selenium is not installed: pip install -e .[browser]")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

from rtx_core.paths import REPOSITORY  # noqa: E402

BROWSER, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
HTML = REPOSITORY / "_build" / "html"
OPT_IN = [
    pytest.mark.long,
    pytest.mark.skipif(not os.environ.get("RTX_LONG"), reason="set RTX_LONG=1 to run it"),
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="there is no chromium with its chromedriver"),
    pytest.mark.skipif(not (HTML / "_static" / "demo").exists(), reason="the book is not built: run `make book`"),
]


@pytest.fixture(scope="module")
def driver():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER, log_output=os.devnull))
    yield found
    found.quit()


def sized(driver, width: int, height: int, mobile: bool = False) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def errors(driver) -> list[str]:
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def wait(driver, condition):
    return WebDriverWait(driver, 60).until(condition)


def all_of(driver, css: str) -> list:
    return driver.find_elements(By.CSS_SELECTOR, css)


def one(driver, css: str):
    return wait(driver, lambda d: all_of(d, css))[0]
