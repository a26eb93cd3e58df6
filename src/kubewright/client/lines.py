"""Split a stream of bytes into lines, in linear time also for very long lines."""

from kubewright.api import UnexpectedResponse

LONGEST_LINE = 64 * 1024 * 1024


class LineSplitter:
    """Collect chunks and return whole lines; every byte is scanned once."""

    def __init__(self, limit: int = LONGEST_LINE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._held = 0

    @property
    def pending(self) -> bool:
        """Return True if the last line is incomplete."""
        return self._held > 0

    def feed(self, chunk: bytes) -> bytes:
        """Add a chunk and return all complete lines as one piece; an incomplete line is kept."""
        end = chunk.rfind(b"\n") + 1
        rest = chunk[end:] if end else chunk
        whole = b""
        if end:
            whole = b"".join((*self._parts, chunk[:end]))
            self._parts.clear()
            self._held = 0
        if rest:
            self._parts.append(rest)
            self._held += len(rest)
            if self._held > self._limit:
                raise UnexpectedResponse(f"the server sent a line of more than {self._limit} bytes")
        return whole
