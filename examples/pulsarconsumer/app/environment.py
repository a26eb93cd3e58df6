"""Environment variables of the two programs next to the operator."""

import os
import sys


def required(*names: str) -> list[str]:
    """Read these variables; ends the program with one line when some are missing."""
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        sys.exit(f"missing in the environment: {', '.join(missing)}")
    return [os.environ[name] for name in names]
