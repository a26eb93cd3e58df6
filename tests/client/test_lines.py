"""A stream is cut into lines whatever its chunks are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.client import UnexpectedResponse
from kubewright.client.lines import LineSplitter


@given(
    st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line)),
    st.lists(st.integers(1, 7), min_size=1),
)
def test_lines_are_the_same_however_they_are_split(lines: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    found = b""
    position = turn = 0
    while position < len(stream):
        size = sizes[turn % len(sizes)]
        whole = splitter.feed(stream[position : position + size])
        assert not whole or whole.endswith(b"\n")
        found += whole
        position, turn = position + size, turn + 1
    assert found == stream
    assert not splitter.pending


def test_the_rest_of_a_line_is_pending() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b'{"a":1}\n{"b"') == b'{"a":1}\n'
    assert splitter.pending
    assert splitter.feed(b":2") == b""
    assert splitter.feed(b"}\n") == b'{"b":2}\n'
    assert not splitter.pending


def test_a_line_without_end_is_refused() -> None:
    splitter = LineSplitter(limit=10)
    splitter.feed(b"123456")
    with pytest.raises(UnexpectedResponse, match="more than 10 bytes"):
        splitter.feed(b"7890ab")
