"""The live page in a real browser: open it, wait for conditions in it, act as a user does."""

import json
from collections.abc import Sequence
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait

TIMEOUT = 30.0
"""Seconds after which a condition has failed; a busy machine is slow."""
NOT_ERRORS = ("Failed to load resource", "net::ERR")
"""Messages of the browser about requests that tests refuse or interrupt."""


class Page:
    """One page in the browser of the session."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, url: str, *, width: int = 1280, height: int = 800, dark: bool = False) -> None:
        """Open the page and wait until it has its objects."""
        self.resize(width, height, dark=dark)
        self.driver.get(url)
        self.until("document.querySelector('main')?.ariaBusy === 'false'")

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the window and the theme of the system."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme, motion]})

    def js(self, expression: str, *arguments: Any) -> Any:
        """Return the value of an expression of JavaScript; `arguments` has the arguments."""
        return self.driver.execute_script(f"return ({expression});", *arguments)

    def until(self, expression: str, *arguments: Any) -> Any:
        """Wait until an expression is true, and return it."""
        waiting = WebDriverWait(self.driver, TIMEOUT, poll_frequency=0.03)
        return waiting.until(lambda _: self.js(expression, *arguments), expression)

    def module(self, name: str, body: str, *arguments: Any) -> Any:
        """Run the body of an async function with a module of the page as `m`, and return its result."""
        script = f"""
            const finish = arguments[arguments.length - 1];
            const given = JSON.parse(arguments[0]);
            (async () => {{
                const m = await import("/static/{name}.js");
                {body}
            }})().then((value) => finish({{ value }}), (error) => finish({{ error: String(error) }}));
        """
        # As text: the driver sorts the keys of objects.
        result = self.driver.execute_async_script(script, json.dumps(arguments))
        assert "error" not in result, result["error"]
        return result["value"]

    def click(self, selector: str, place: int = 0) -> None:
        """Click an element once it is there."""
        # By an event: a node of a graph may lie outside of the window. In one step: rows are drawn again.
        self.until(
            "document.querySelectorAll(arguments[0])[arguments[1]]"
            "?.dispatchEvent(new MouseEvent('click', { bubbles: true })) ?? false",
            selector,
            place,
        )

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, on what has the focus."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def set_value(self, selector: str, value: object, event: str = "input") -> None:
        """Set a control as a user does."""
        self.driver.execute_script(
            "const it = document.querySelector(arguments[0]); it.value = arguments[1];"
            " it.dispatchEvent(new Event(arguments[2], { bubbles: true }))",
            selector,
            value,
            event,
        )

    def texts(self, selector: str) -> list[str]:
        """Return the texts of the visible elements."""
        return self.js(
            "[...document.querySelectorAll(arguments[0])].filter((e) => e.getClientRects().length)"
            ".map((e) => e.textContent)",
            selector,
        )

    def until_text(self, selector: str, *parts: str) -> str:
        """Wait until an element contains all these texts, and return its text."""
        return self.until(
            "(() => { const text = document.querySelector(arguments[0])?.textContent ?? '';"
            " return arguments[1].every((part) => text.includes(part)) ? text || ' ' : null; })()",
            selector,
            list(parts),
        )

    def errors(self) -> Sequence[str]:
        """Return what the browser has reported: exceptions, violations of the Content-Security-Policy."""
        messages = [
            entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"
        ]
        return [message for message in messages if not any(part in message for part in NOT_ERRORS)]
