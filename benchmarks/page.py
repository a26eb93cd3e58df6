"""How smooth the live page is in a browser with 10,000 objects and 100 changes a second.

The generated data of tests/ui/browser in chromium, once with changes and once at rest; a frame every 16.7 ms is as fast
as the screen. While it measures, the list is scrolled, as a user does.
"""

import argparse
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness import OURS, Bench, alternate
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "ui" / "browser"))

from fake_feed import FakeFeed, GeneratedState, with_operator

PER_SHELL = 6
"""Objects that belong to one Shell of the generated data."""
LOADED = "return document.querySelector('main')?.ariaBusy === 'false'"
MEASURE = """
const [seconds, finish] = arguments;
const list = document.querySelector("#object-list");
const frames = [];
let last = performance.now();
const end = last + seconds * 1000;
requestAnimationFrame(function frame(now) {
    frames.push(now - last);
    last = now;
    list.scrollTop = (list.scrollTop + 30) % (list.scrollHeight - list.clientHeight);
    if (now < end) requestAnimationFrame(frame);
    else finish(frames.slice(1).sort((a, b) => a - b));
});
"""


@dataclass(frozen=True)
class Frames:
    """The times between frames in milliseconds, and the CPU time of its thread in percent."""

    times: list[float]
    busy: float

    def quantile(self, part: float) -> float:
        return self.times[round((len(self.times) - 1) * part)]


def measure(objects: int, changes: int, seconds: float) -> Frames:
    """Open the page, wait for its objects, and watch its frames."""
    options = ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(option)
    options.binary_location = shutil.which("chromium") or ""
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.set_script_timeout(seconds + 60)
        # The CPU time of the page's thread does not depend on how busy the machine is, as the time between frames does.
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        with FakeFeed(with_operator(GeneratedState(shells=objects // PER_SHELL))) as feed:
            driver.get(feed.url)
            WebDriverWait(driver, 60).until(lambda it: it.execute_script(LOADED))
            if changes:
                feed.churn(changes)
            before = _task_seconds(driver)
            times: list[float] = driver.execute_async_script(MEASURE, seconds)
            return Frames(times, (_task_seconds(driver) - before) / seconds * 100)
    finally:
        driver.quit()


def _task_seconds(driver: Chrome) -> float:
    metrics: list[dict[str, Any]] = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=10_000, help="objects on the page (default 10000)")
    parser.add_argument("--changes", type=int, default=100, help="changes a second (default 100)")
    parser.add_argument("--seconds", type=float, default=8, help="how long frames are watched (default 8)")
    bench = Bench("page", "frames of the live page in chromium", parser=parser, rounds=3)
    given = bench.options
    bench.progress(f"{bench.rounds} runs of {given.seconds:g} s, with changes and at rest")
    runs = alternate(
        bench.rounds,
        {
            OURS: partial(measure, given.objects, given.changes, given.seconds),
            "at rest": partial(measure, given.objects, 0, given.seconds),
        },
    )
    work = f"{given.objects:,} objects, {given.changes} changes/s"
    for name, part in (("median", 0.5), ("95 %", 0.95), ("99 %", 0.99), ("longest", 1.0)):
        figures = {contender: [each.quantile(part) for each in frames] for contender, frames in runs.items()}
        bench.row(work, f"frame, {name}", "ms", figures)
    busy = {contender: [each.busy for each in frames] for contender, frames in runs.items()}
    bench.row(work, "CPU of the main thread", "%", busy, goal="<= 25 %")
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(main())
