"""Continue tokens: opaque to clients, in kube-apiserver's form."""

import base64
import binascii
import json
from typing import Any, NamedTuple, cast

from kubewright.devserver.objects.status import StatusError


class ContinueToken(NamedTuple):
    """A continue token of a chunked list; a negative revision means the newest state."""

    revision: int
    start: str


def encode_token(revision: int, last_key: str) -> str:
    """Return the token that continues after a key, relative to the list's prefix."""
    return _write(revision, f"/{last_key}\0")


def renewed_token(text: str) -> str:
    """Return the token that continues after the same key in the newest state."""
    parsed: Any = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return _write(-1, parsed["start"])


def _write(revision: int, start: str) -> str:
    body = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(body.encode()).rstrip(b"=").decode()


def decode_token(text: str) -> ContinueToken:
    """Read a token; anything else is the client's mistake."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _bad("illegal base64 data at input byte 0") from None
    try:
        parsed: Any = json.loads(raw)
    except ValueError:
        first = raw[:1].decode("latin-1")
        shown = first if first.isascii() and first.isprintable() else f"\\u{ord(first or chr(0)):04x}"
        raise _bad(f"invalid character '{shown}' looking for beginning of value") from None
    if not isinstance(parsed, dict):
        raise _bad("json: cannot unmarshal into Go value of type storage.continueToken")
    token = cast(dict[str, Any], parsed)
    if token.get("v") != "meta.k8s.io/v1":
        raise _bad(f"server does not recognize this encoded version {token.get('v', '')}")
    revision, start = token.get("rv", 0), token.get("start", "")
    if not isinstance(revision, int) or not isinstance(start, str):
        raise _bad("json: cannot unmarshal into Go struct field")
    if revision == 0:
        raise _bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not start or ".." in start.split("/"):
        raise _bad("encoded start key empty (version meta.k8s.io/v1)")
    return ContinueToken(revision, start.removeprefix("/"))


def _bad(why: str) -> StatusError:
    return StatusError.bad_request(f"invalid continue token: continue key is not valid: {why}")
