"""Short names for contents: the same for the same, in letters that form no words."""

import hashlib
from typing import Any

import msgspec

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def short_hash(content: Any, collisions: int = 0) -> str:
    """Name a wire value; another number of collisions gives another name."""
    text = msgspec.json.encode([content, collisions], order="sorted")
    number = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
    letters: list[str] = []
    for _ in range(10):
        number, index = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return "".join(letters)
