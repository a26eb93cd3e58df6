"""The embedded server answers as a recorded real one: defaults, errors, Tables, versions, special writes."""

from typing import Any

import pytest
from builtin_cases import Embedded, comparable, recording, without_structs

ACCEPTED = recording("accepted")
REFUSED = recording("refused")
BEHAVIOR = recording("behavior")
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


@pytest.mark.parametrize("index", each(ACCEPTED, DIFFERENCES))
def test_an_accepted_object_is_stored_and_printed_as_on_the_real_server(
    embedded: Embedded, index: int
) -> None:
    case = ACCEPTED[index]["case"]
    assert comparable("accepted", case, embedded.answers["accepted"][index]) == ACCEPTED[index]["real"]


@pytest.mark.parametrize("index", each(REFUSED, DIFFERENCES))
def test_an_invalid_object_is_refused_with_the_real_server_s_message(embedded: Embedded, index: int) -> None:
    real = REFUSED[index]["real"]
    ours = comparable("refused", REFUSED[index]["case"], embedded.answers["refused"][index])
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
    case = BEHAVIOR[index]["case"]
    assert comparable("behavior", case, embedded.answers["behavior"][index]) == BEHAVIOR[index]["real"]
