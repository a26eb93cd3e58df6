"""Rules in CEL whose fate on a real API server is on record in `observed/`."""

from typing import Any

DEFINITIONS: dict[str, Any] = {}
VALUES: dict[str, Any] = {}
UPDATES: dict[str, Any] = {}
