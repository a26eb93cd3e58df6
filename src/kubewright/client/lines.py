"""Cut a stream of bytes into lines, at a cost that does not grow with their length."""

from kubewright.api import (
    UnexpectedAnswer,
)

LONGEST_LINE = 64 * 1024 * 1024


class LineSplitter:
    """Collect chunks and hand out whole lines; every byte is looked at once."""

    def __init__(self, limit: int = LONGEST_LINE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._held = 0

    @property
    def pending(self) -> bool:
        """Tell whether the stream stands in the middle of a line."""
        return self._held > 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next chunk and return the lines that it completes, without their ends; blank ones are left out."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
            self._held = 0
        if rest:
            self._parts.append(rest)
            self._held += len(rest)
            if self._held > self._limit:
                raise UnexpectedAnswer(f"the server sent a line of more than {self._limit} bytes")
        return [line for line in lines if line]
