"""Take the picture of the live page that the README shows: `python tools/picture_of_the_page.py [PATH]`.

It runs the demo's operators and their scenario up to the failing VmGroup, opens the live page in chromium, chooses the
reconcile that repaired a Deployment, and writes docs/images/live-page.png. The operators and the steps are the same each
time; times and the generated names of Pods are not.
"""

import asyncio
import base64
import logging
import shutil
import sys
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "live-page.png"
WIDTH, HEIGHT, SCALE = 1400, 860, 1.0
LIMIT = 300_000
"""Bytes: a picture in a README is loaded with it."""
# Its operator would have no leader for 15 seconds.
LEFT_OUT = "The leader of the two MyOwnShell replicas is killed"
LAST_STEP = "A VmGroup gets a template that does not exist"
TIMEOUT = 60.0
sys.path.insert(0, str(ROOT / "examples"))

from show.environment import set_up  # noqa: E402
from show.scenario import Scenario  # noqa: E402

# The reconcile that set the size of the Deployment back: it was caused by the Deployment's spec, and wrote it.
CHOOSE = """
const rows = [...document.querySelectorAll("#timeline-list .row")].filter((row) => !row.hidden);
const row = rows.find(({ item }) => item.causes.some((cause) => cause.changes?.includes("spec.replicas"))
    && item.writes.some((write) => write.resource === "deployments.apps" && write.changes));
row?.click();
return Boolean(row);
"""
# The list is read from its newest entry on, so that it is scrolled until the reconcile is in view.
SCROLL = "document.querySelector('#timeline-list').scrollTop += 200;"
SHOWN = "return document.querySelector('.write .diff') !== null && document.querySelector('.node.selected') !== null;"


def take(link: str) -> bytes:
    """Open the page and return its picture."""
    options = ChromeOptions()
    for option in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    ):
        options.add_argument(option)
    options.binary_location = shutil.which("chromium") or ""
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        metrics = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": SCALE, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "UTC"})
        theme = {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", theme)
        driver.get(link)
        waiting = WebDriverWait(driver, TIMEOUT)
        waiting.until(lambda it: it.execute_script(CHOOSE) or it.execute_script(SCROLL), "no such reconcile")
        waiting.until(lambda it: it.execute_script(SHOWN), "the reconcile is not shown")
        driver.execute_script("document.querySelector('#timeline-list').scrollTop = 0;")
        picture = driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"format": "png", "optimizeForSpeed": False}
        )
    finally:
        driver.quit()
    return base64.b64decode(picture["data"])


async def picture_of_the_demo() -> bytes:
    """Run the demo as far as the picture needs it."""
    async with set_up(ui=True) as environment:
        async for step in Scenario(environment).steps():
            if step.title == LEFT_OUT:
                continue
            await step.play()
            if step.title == LAST_STEP:
                break
        return await asyncio.to_thread(take, environment.link)


def main() -> None:
    """Write the picture."""
    logging.basicConfig(handlers=[logging.NullHandler()])
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    picture = asyncio.run(picture_of_the_demo())
    if len(picture) > LIMIT:
        sys.exit(f"the picture has {len(picture):,} bytes, more than {LIMIT:,}")
    path.write_bytes(picture)
    print(f"wrote {path}, {len(picture):,} bytes")


if __name__ == "__main__":
    main()
