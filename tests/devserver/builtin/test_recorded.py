"""The embedded server answers as a recorded real one: defaults, errors, Tables, versions, special writes."""

import re
from typing import Any

import pytest
from builtin_cases import Embedded, plain, recording, without_structs

ACCEPTED = recording("accepted")
REFUSED = recording("refused")
BEHAVIOR = recording("behavior")
# A controller of the real server fills these in a moment after the object was created.
FILLED_LATER = {("FlowSchema", "MissingPL"), ("APIService", "Available")}
# Known differences and their reasons.
DIFFERENCES = {}


def title(entry: Any) -> str:
    """Return the name of a case."""
    case = entry["case"]
    obj = case.get("create", case)
    change = "-changed" if "create" in case else ""
    return f"{obj['kind']}-{obj['metadata'].get('name', '')[:20]}{change}"


def each(entries: list[Any], differences: dict[str, str]) -> Any:
    """Make a parameter of each case."""
    return [
        pytest.param(
            index,
            id=title(entry),
            marks=[pytest.mark.xfail(reason=differences[title(entry)])]
            if title(entry) in differences
            else [],
        )
        for index, entry in enumerate(entries)
    ]


def shape(played: Any) -> Any:
    """Replace the age of an object, which depends on the time of the run."""
    kept = plain({key: value for key, value in played.items() if key != "now"})
    if "table" in kept:
        cells = kept["table"]["cells"]
        # Ages in seconds, and ages in years, which grow by a day every day.
        kept["table"]["cells"] = [
            re.sub(r"^\d+s$|\b\d+y\d+d\b", "AGE", cell) if isinstance(cell, str) else cell for cell in cells
        ]
    return kept


@pytest.mark.parametrize("index", each(ACCEPTED, DIFFERENCES))
def test_an_accepted_object_is_stored_and_printed_as_on_the_real_server(
    embedded: Embedded, index: int
) -> None:
    real, ours = shape(ACCEPTED[index]["real"]), shape(embedded.answers["accepted"][index])
    kind = ACCEPTED[index]["case"]["kind"]
    for position, column in enumerate(real["table"]["columns"]):
        if (kind, column[0]) in FILLED_LATER:
            real["table"]["cells"][position] = ours["table"]["cells"][position]
    assert ours == real


@pytest.mark.parametrize("index", each(REFUSED, DIFFERENCES))
def test_an_invalid_object_is_refused_with_the_real_server_s_message(embedded: Embedded, index: int) -> None:
    real, ours = plain(REFUSED[index]["real"]), plain(embedded.answers["refused"][index])
    assert (ours["code"], without_structs(ours["body"]["message"])) == (
        real["code"],
        without_structs(real["body"]["message"]),
    )
    if without_structs(real["body"]["message"]) == real["body"]["message"]:
        assert ours["body"]["details"] == real["body"]["details"]


@pytest.mark.parametrize("index", each(BEHAVIOR, {}))
def test_a_kind_handles_updates_selectors_and_deletions_as_the_real_server_does(
    embedded: Embedded, index: int
) -> None:
    assert plain(embedded.answers["behavior"][index]) == plain(BEHAVIOR[index]["real"])
