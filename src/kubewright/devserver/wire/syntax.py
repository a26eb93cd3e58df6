"""Syntax errors of JSON, with the messages of Go's scanner."""

from typing import NoReturn

_SPACE = frozenset(b" \t\r\n")
_DIGITS = frozenset(b"0123456789")
_HEX = _DIGITS | frozenset(b"abcdefABCDEF")
_LITERALS = {0x74: b"true", 0x66: b"false", 0x6E: b"null"}
_CONTROL_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r"}
_MAX_DEPTH = 10000


class _Fault(Exception):
    pass


def complaint(data: bytes) -> str:
    """Return Go's message for the first syntax error; empty if there is none."""
    try:
        _Scanner(data).document()
    except _Fault as fault:
        return str(fault)
    except IndexError:
        return "unexpected end of JSON input"
    return ""


class _Scanner:
    """Walk the data without building anything; nesting lives in a list, not on the call stack."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def document(self) -> None:
        closers = bytearray()
        complete = self._value(closers)
        while not complete or closers:
            complete = self._after_value(closers) if complete else self._value(closers)
        while self._at < len(self._data):
            if self._data[self._at] not in _SPACE:
                self._fail("after top-level value")
            self._at += 1

    def _skip_space(self) -> int:
        while self._data[self._at] in _SPACE:
            self._at += 1
        return self._data[self._at]

    def _value(self, closers: bytearray) -> bool:
        """Read one value or the opening of one; true when a value is complete."""
        byte = self._skip_space()
        if byte in b"{[":
            return self._opened(closers, byte)
        if byte == 0x22:
            self._string()
        elif byte in _LITERALS:
            self._literal(_LITERALS[byte])
        elif byte in _DIGITS or byte == 0x2D:
            self._number()
        else:
            self._fail("looking for beginning of value")
        return True

    def _opened(self, closers: bytearray, byte: int) -> bool:
        self._at += 1
        closers.append(0x7D if byte == 0x7B else 0x5D)
        if len(closers) > _MAX_DEPTH:
            raise _Fault("exceeded max depth")
        if self._skip_space() == closers[-1]:
            closers.pop()
            self._at += 1
            return True
        if byte == 0x7B:
            self._key()
        return False

    def _after_value(self, closers: bytearray) -> bool:
        """Read what follows a member: its container's end (true) or the comma before the next one."""
        byte = self._skip_space()
        in_object = closers[-1] == 0x7D
        if byte == closers[-1]:
            closers.pop()
            self._at += 1
            return True
        if byte != 0x2C:
            self._fail("after object key:value pair" if in_object else "after array element")
        self._at += 1
        if in_object:
            self._key()
        return False

    def _key(self) -> None:
        if self._skip_space() != 0x22:
            self._fail("looking for beginning of object key string")
        self._string()
        if self._skip_space() != 0x3A:
            self._fail("after object key")
        self._at += 1

    def _string(self) -> None:
        self._at += 1
        while (byte := self._data[self._at]) != 0x22:
            if byte < 0x20:
                self._fail("in string literal")
            self._at += 1
            if byte == 0x5C:
                self._escape()
        self._at += 1

    def _escape(self) -> None:
        byte = self._data[self._at]
        if byte not in b'bfnrt\\/"u':
            self._fail("in string escape code")
        self._at += 1
        if byte == 0x75:
            for _ in range(4):
                if self._data[self._at] not in _HEX:
                    self._fail("in \\u hexadecimal character escape")
                self._at += 1

    def _literal(self, word: bytes) -> None:
        for expected in word:
            if self._data[self._at] != expected:
                self._fail(f"in literal {word.decode()} (expecting {chr(expected)!r})")
            self._at += 1

    def _number(self) -> None:
        if self._data[self._at] == 0x2D:
            self._at += 1
            if self._data[self._at] not in _DIGITS:
                self._fail("in numeric literal")
        self._at += 1
        if self._data[self._at - 1] != 0x30:
            self._digits()
        if self._peek() == 0x2E:
            self._at += 1
            if self._data[self._at] not in _DIGITS:
                self._fail("after decimal point in numeric literal")
            self._digits()
        if self._peek() in {0x65, 0x45}:
            self._at += 1
            if self._data[self._at] in b"+-":
                self._at += 1
            if self._data[self._at] not in _DIGITS:
                self._fail("in exponent of numeric literal")
            self._digits()

    def _digits(self) -> None:
        while self._peek() in _DIGITS:
            self._at += 1

    def _peek(self) -> int:
        return self._data[self._at] if self._at < len(self._data) else 0

    def _fail(self, context: str) -> NoReturn:
        raise _Fault(f"invalid character {_quoted(self._data[self._at])} {context}")


def _quoted(byte: int) -> str:
    """Quote one byte as Go does, as the Latin-1 character it would be."""
    if byte == 0x27:
        return "'\\''"
    if byte == 0x5C:
        return "'\\\\'"
    if byte < 0x20 or byte == 0x7F:
        return f"'\\{_CONTROL_ESCAPES[byte]}'" if byte in _CONTROL_ESCAPES else f"'\\x{byte:02x}'"
    if 0x80 <= byte < 0xA1 or byte == 0xAD:
        return f"'\\u{byte:04x}'"
    return f"'{chr(byte)}'"
