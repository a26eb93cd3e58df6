"""Whether to paint: on a terminal, unless its owner says no by NO_COLOR (no-color.org)."""

import os
from typing import TextIO


def painted(stream: TextIO) -> bool:
    """Tell whether colours are wanted in what is written here."""
    return stream.isatty() and not os.environ.get("NO_COLOR")
