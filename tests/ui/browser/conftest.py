"""One browser for all tests of the page; a test fails if the browser reports an error."""

import shutil
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from .fake_feed import FakeFeed, GeneratedState
from .page import Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # containers in which CI runs have no user namespaces; the page is ours
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def driver() -> Iterator[Chrome]:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    chromedriver = shutil.which("chromedriver")
    if browser is None or chromedriver is None:
        pytest.skip("no browser: install chromium and chromium-driver (apt-get install chromium-driver)")
    options = ChromeOptions()
    options.binary_location = browser
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(chromedriver))
    driver.set_script_timeout(120)
    yield driver
    driver.quit()


@pytest.fixture
def page(driver: Chrome) -> Iterator[Page]:
    page = Page(driver)
    yield page
    errors = page.errors()
    # The stream of this page ends before its server does.
    driver.get("about:blank")
    assert errors == []


@pytest.fixture
def state() -> GeneratedState:
    return GeneratedState(shells=3)


@pytest.fixture
def feed(state: GeneratedState) -> Iterator[FakeFeed]:
    with FakeFeed(state) as feed:
        yield feed
