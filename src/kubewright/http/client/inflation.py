"""Unpack a gzip body as it arrives, never into more memory than was agreed to."""

import zlib

from kubewright.http.client.failures import Malformed

MOST_AT_ONCE = 64 * 1024 * 1024
"""What one arrival of packed bytes may become: gzip packs a thousandfold where somebody means harm."""


class Inflater:
    """Unpack one body."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def complete(self) -> bool:
        """Tell whether the packed body has come to its end."""
        return self._stream.eof

    def feed(self, data: bytes) -> bytes:
        """Return what the next packed bytes hold."""
        try:
            unpacked = self._stream.decompress(data, MOST_AT_ONCE)
        except zlib.error:
            raise Malformed("the body is not packed as its headers say") from None
        if self._stream.unconsumed_tail:
            raise Malformed(f"a packed piece of the body holds more than {MOST_AT_ONCE} bytes")
        return unpacked
