"""Many lines of a watch are read at once, and as each would be alone."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import DecodeError, decode_event, decode_events

TYPES = st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
TEXT = st.text(max_size=8)
OBJECTS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": TEXT, "resourceVersion": TEXT, "labels": st.none() | st.dictionaries(TEXT, TEXT)}
        )
    },
    optional={"spec": st.dictionaries(TEXT, TEXT), "status": st.none()},
)
EVENTS = st.builds(lambda kind, obj: {"type": kind, "object": obj}, TYPES, OBJECTS)


@given(st.lists(EVENTS, max_size=5), st.booleans())
def test_lines_decoded_together_equal_lines_decoded_alone(events: list[object], spaced: bool) -> None:
    lines = [msgspec.json.encode(event) for event in events]
    if spaced:
        lines = [msgspec.json.format(line, indent=0) for line in lines]
    together = decode_events(b"".join(line + b"\n" for line in lines))
    alone = [decode_event(line) for line in lines]
    assert [(one.type, one.object) for one in together] == [(one.type, one.object) for one in alone]


@pytest.mark.parametrize(
    "line",
    [
        b'{"object":{"metadata":{"name":"a"}},"type":"ADDED"}',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}},"more":{}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}} }',
        b'{ "type":"ADDED","object":{"metadata":{"name":"a"}}}',
    ],
)
def test_lines_written_in_another_way_are_read_too(line: bytes) -> None:
    usual = b'{"type":"ADDED","object":{"metadata":{"name":"b"}}}'
    found = decode_events(usual + b"\n\n" + line + b"\n" + usual)
    assert [event.object.raw for event in found] == [
        b'{"metadata":{"name":"b"}}',
        b'{"metadata":{"name":"a"}}',
        b'{"metadata":{"name":"b"}}',
    ]


def test_an_error_among_events_keeps_its_status() -> None:
    error = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}'
    [before, last] = decode_events(b'{"type":"ADDED","object":{"metadata":{"name":"b"}}}\n' + error + b"\n")
    assert before.status is None
    assert last.status is not None
    assert last.status.code == 410


def test_lines_that_are_not_events_are_refused() -> None:
    with pytest.raises(DecodeError):
        decode_events(b'{"type":"ADDED","object":{"metadata":{"name":"b"}}}\n<html>\n')
