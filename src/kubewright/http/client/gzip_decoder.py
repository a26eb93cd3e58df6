"""Decompress a gzip body as it arrives, within a bound on memory."""

import zlib

from kubewright.http.client.failures import MalformedResponse

MAX_OUTPUT = 64 * 1024 * 1024
"""Bytes that one arrival may decompress to: gzip can expand a thousandfold."""


class GzipDecoder:
    """Decompress one body, which may consist of several members (RFC 1952)."""

    def __init__(self) -> None:
        self._member = _new_member()
        self._begun = False

    @property
    def complete(self) -> bool:
        """Return True if the body may end here; an empty body, as of a 304, is not compressed."""
        return self._member.eof or not self._begun

    def feed(self, data: bytes) -> bytes:
        """Return the decompressed content of the next bytes."""
        pieces: list[bytes] = []
        room = MAX_OUTPUT
        while data:
            if self._member.eof:
                self._member = _new_member()
            self._begun = True
            try:
                # A limit of 0 would mean no limit.
                pieces.append(self._member.decompress(data, max(1, room)))
            except zlib.error:
                raise MalformedResponse("the body is not gzip, although Content-Encoding says so") from None
            if self._member.unconsumed_tail:
                raise MalformedResponse(f"a piece of the body decompresses to more than {MAX_OUTPUT} bytes")
            room -= len(pieces[-1])
            data = self._member.unused_data
        return b"".join(pieces)


def _new_member() -> "zlib._Decompress":  # pyright: ignore[reportPrivateUsage]  (its only name)
    return zlib.decompressobj(16 + zlib.MAX_WBITS)
