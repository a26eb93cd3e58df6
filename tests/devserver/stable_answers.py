"""Replace what differs from run to run in recorded answers, so that recording again gives the same files."""

import re
from datetime import UTC, datetime, timedelta

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_VERSION = re.compile(r'("resourceVersion":\s*")(\d+)(?=")')
_CONTINUE = re.compile(r'("continue":\s*")[\w=-]+(?=")')
_ADDRESS = re.compile(r'"clusterIP":\s*"(10\.[\d.]+)"')
# The API server's own, which is chosen again each time it starts.
_PORT = re.compile(r'("targetPort":\s*)2\d{4}\b')
_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def stable(text: str, began: datetime, *, ordered: bool) -> str:
    """Number UIDs, allocated addresses, and the resource versions and times since the recording began, in JSON.

    With `ordered` the order of versions and times is kept; otherwise all of them become the same one.
    """
    uids = list(dict.fromkeys(_UID.findall(text)))
    text = _UID.sub(lambda match: f"{uids.index(match[0]) + 1:08d}-0000-4000-8000-000000000000", text)
    versions = sorted({int(match[2]) for match in _VERSION.finditer(text)})
    text = _VERSION.sub(
        lambda match: f"{match[1]}{versions.index(int(match[2])) + 1 if ordered else 1}", text
    )
    for number, address in enumerate(dict.fromkeys(_ADDRESS.findall(text)), 1):
        text = text.replace(f'"{address}"', f'"10.0.0.{number}"')
    text = _PORT.sub(r"\g<1>6443", text)
    text = _CONTINUE.sub(r"\1CONTINUE", text)
    start = began.strftime(_FORMAT)
    times = sorted({time for time in _TIME.findall(text) if time >= start})

    def renamed(match: re.Match[str]) -> str:
        if match[0] not in times:
            return match[0]
        return (_FIRST + timedelta(seconds=times.index(match[0]) if ordered else 0)).strftime(_FORMAT)

    return _TIME.sub(renamed, text)
