"""Unpack a gzip body as it arrives, never into more memory than was agreed to."""

import zlib

from kubewright.http.client.failures import MalformedResponse

MOST_AT_ONCE = 64 * 1024 * 1024
"""What one arrival of packed bytes may become: gzip packs a thousandfold where somebody means harm."""


class Inflater:
    """Unpack one body, which may have been packed in several parts (RFC 1952)."""

    def __init__(self) -> None:
        self._part = _new_part()
        self._begun = False

    @property
    def complete(self) -> bool:
        """Tell whether the packed body may end here; no body at all, as with a 304, need not be packed."""
        return self._part.eof or not self._begun

    def feed(self, data: bytes) -> bytes:
        """Return what the next packed bytes hold."""
        pieces: list[bytes] = []
        room = MOST_AT_ONCE
        while data:
            if self._part.eof:
                self._part = _new_part()
            self._begun = True
            try:
                # Room for nothing would mean room for everything.
                pieces.append(self._part.decompress(data, max(1, room)))
            except zlib.error:
                raise MalformedResponse("the body is not packed as its headers say") from None
            if self._part.unconsumed_tail:
                raise MalformedResponse(f"a packed piece of the body holds more than {MOST_AT_ONCE} bytes")
            room -= len(pieces[-1])
            data = self._part.unused_data
        return b"".join(pieces)


def _new_part() -> "zlib._Decompress":  # pyright: ignore[reportPrivateUsage]  (its only name)
    return zlib.decompressobj(16 + zlib.MAX_WBITS)
