"""Colored output: on a terminal, unless NO_COLOR is set (no-color.org)."""

import os
from typing import TextIO


def painted(stream: TextIO) -> bool:
    """Return True if output to this stream may be colored."""
    return stream.isatty() and not os.environ.get("NO_COLOR")
