"""Report on standard error that a long step is still running."""

import sys
import threading
import time
from typing import Self


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Progress:
    """One moving line on a terminal, else a line now and then."""

    def __init__(self, title: str) -> None:
        self.downloads = 0
        self._title = title
        self._began = time.monotonic()
        self._over = threading.Event()
        self._terminal = sys.stderr.isatty()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._over.set()
        self._thread.join()
        say(f"{self._clear()}{self._line()} {'done' if error is None else 'failed'}")

    def _show(self) -> None:
        if not self._terminal:
            say(f"{self._title} ...")
        while not self._over.wait(0.5 if self._terminal else 30.0):
            print(
                self._clear() + self._line(), end="" if self._terminal else "\n", file=sys.stderr, flush=True
            )

    def _clear(self) -> str:
        return "\r\033[K" if self._terminal else ""

    def _line(self) -> str:
        downloads = f", {self.downloads} modules downloaded" if self.downloads else ""
        return f"{self._title} {time.monotonic() - self._began:.0f} s{downloads}"
