"""Sets of characters as sorted ranges of code points, and the named classes of RE2."""

import unicodedata
from collections.abc import Iterable
from functools import cache

Ranges = tuple[tuple[int, int], ...]

MAX_RUNE = 0x10FFFF
ANY: Ranges = ((0, MAX_RUNE),)
NOT_NEWLINE: Ranges = ((0, 9), (11, MAX_RUNE))

_DIGIT: Ranges = ((0x30, 0x39),)
_UPPER: Ranges = ((0x41, 0x5A),)
_LOWER: Ranges = ((0x61, 0x7A),)

PERL: dict[str, Ranges] = {
    "d": _DIGIT,
    "s": ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)),
    "w": (*_DIGIT, *_UPPER, (0x5F, 0x5F), *_LOWER),
}

POSIX: dict[str, Ranges] = {
    "alnum": (*_DIGIT, *_UPPER, *_LOWER),
    "alpha": (*_UPPER, *_LOWER),
    "ascii": ((0, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0, 0x1F), (0x7F, 0x7F)),
    "digit": _DIGIT,
    "graph": ((0x21, 0x7E),),
    "lower": _LOWER,
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": _UPPER,
    "word": PERL["w"],
    "xdigit": (*_DIGIT, (0x41, 0x46), (0x61, 0x66)),
}

# The standard library has categories but no scripts; the names of characters begin with their script.
_SCRIPTS = {
    name: name.upper()
    for name in (
        *("Arabic", "Armenian", "Bengali", "Bopomofo", "Cherokee", "Coptic", "Cyrillic", "Devanagari"),
        *("Ethiopic", "Georgian", "Greek", "Gujarati", "Gurmukhi", "Hangul", "Hebrew", "Hiragana", "Kannada"),
        *("Katakana", "Khmer", "Lao", "Latin", "Malayalam", "Mongolian", "Myanmar", "Oriya", "Sinhala"),
        *("Syriac", "Tamil", "Telugu", "Thaana", "Thai", "Tibetan"),
    )
} | {"Han": "CJK "}


def normalized(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the ranges sorted, with adjacent ones joined."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


def negated(ranges: Ranges) -> Ranges:
    """Return the characters that are not in the set."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in normalized(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= MAX_RUNE:
        gaps.append((start, MAX_RUNE))
    return tuple(gaps)


@cache
def folded(ranges: Ranges) -> Ranges:
    """Return the set with the other case of each cased character added."""
    extra = [
        (other, other)
        for rune, others in _fold_partners().items()
        if contains(ranges, rune)
        for other in others
    ]
    return normalized((*ranges, *extra))


def contains(ranges: Ranges, rune: int) -> bool:
    """Return True if a code point is in the set."""
    return any(low <= rune <= high for low, high in ranges)


@cache
def unicode_class(name: str) -> Ranges | None:
    """Return the characters of a general category or script, or None if the name is unknown."""
    if name == "Any":
        return ANY
    if name in _SCRIPTS:
        prefix = _SCRIPTS[name]
        return normalized(
            (rune, rune) for rune in range(MAX_RUNE + 1) if unicodedata.name(chr(rune), "").startswith(prefix)
        )
    found = [spans for category, spans in _categories().items() if name in (category, category[0])]
    return normalized(span for spans in found for span in spans) if found else None


@cache
def _categories() -> dict[str, list[tuple[int, int]]]:
    spans: dict[str, list[tuple[int, int]]] = {}
    start, current = 0, unicodedata.category("\0")
    for rune in range(1, MAX_RUNE + 2):
        category = unicodedata.category(chr(rune)) if rune <= MAX_RUNE else ""
        if category != current:
            spans.setdefault(current, []).append((start, rune - 1))
            start, current = rune, category
    spans.pop("Cn", None)
    return spans


@cache
def _fold_partners() -> dict[int, tuple[int, ...]]:
    partners: dict[int, set[int]] = {}
    for rune in range(0x1E944):
        char = chr(rune)
        for other in (char.lower(), char.upper()):
            if len(other) == 1 and other != char:
                partners.setdefault(rune, set()).add(ord(other))
                partners.setdefault(ord(other), set()).add(rune)
    return {rune: tuple(others) for rune, others in partners.items()}
