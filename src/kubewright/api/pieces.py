"""Split JSON into its outermost values by counting brackets, for objects nested too deeply for a decoder."""

import re
from collections.abc import Iterator

import msgspec

from kubewright.api.errors import DecodeError

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\],]')


def members(data: bytes) -> dict[str, bytes]:
    """Return the values of a JSON object, each as its bytes."""
    found: dict[str, bytes] = {}
    for piece in elements(data):
        name = _TOKEN.match(piece)
        if name is None or not piece.startswith(b":", name.end()):
            raise DecodeError("not JSON: a member of an object has no name")
        found[msgspec.json.decode(name.group(), type=str)] = piece[name.end() + 1 :]
    return found


def elements(data: bytes) -> Iterator[bytes]:
    """Yield the elements of a JSON array or object as bytes."""
    depth, begin = 0, 1
    for token in _TOKEN.finditer(data):
        mark = token.group()[:1]
        if mark in b"{[":
            depth += 1
        elif mark in b"}]":
            depth -= 1
            if depth == 0:
                if piece := data[begin : token.start()].strip():
                    yield piece
                return
        elif mark == b"," and depth == 1:
            yield data[begin : token.start()].strip()
            begin = token.end()
    raise DecodeError("not JSON: it ends before its brackets do")
