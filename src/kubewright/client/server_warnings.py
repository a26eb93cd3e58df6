"""Log the server's Warning headers, each text once."""

import logging
import re
from collections.abc import Iterable

_log = logging.getLogger("kubewright.client")

REMEMBERED = 1000
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


class WarningLog:
    """Log every warning text at its first appearance."""

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}

    def deliver(self, headers: Iterable[str], about: str) -> None:
        """Log the texts in the Warning headers of a response that were not logged before."""
        for header in headers:
            for text in parse_warnings(header):
                if text in self._seen:
                    continue
                if len(self._seen) >= REMEMBERED:
                    del self._seen[next(iter(self._seen))]
                self._seen[text] = None
                _log.warning("the API server warns: %s", text, extra={"request": about})


def parse_warnings(header: str) -> list[str]:
    """Return the texts in one Warning header; codes other than Kubernetes' 299 are ignored."""
    return [_ESCAPED.sub(r"\1", text) for text in _WARNING.findall(header)]
