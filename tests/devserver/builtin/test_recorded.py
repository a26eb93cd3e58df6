"""The embedded server answers as a recorded real one: defaults, refusals, Tables, versions."""

import re
from typing import Any

import pytest
from builtin_cases import Embedded, plain, recording, told

ACCEPTED = recording("accepted")
REFUSED = recording("refused")
# A controller of the real server fills these in a moment after the object was created.
FILLED_LATER = {("FlowSchema", "MissingPL"), ("APIService", "Available")}


def title(entry: Any) -> str:
    """Name a case."""
    case = entry["case"]
    obj = case.get("create", case)
    change = "-changed" if "create" in case else ""
    return f"{obj['kind']}-{obj['metadata'].get('name', '')[:20]}{change}"


def shape(played: Any) -> Any:
    """Leave out how old an object is, which is a matter of seconds."""
    kept = plain({key: value for key, value in played.items() if key != "now"})
    if "table" in kept:
        cells = kept["table"]["cells"]
        kept["table"]["cells"] = ["AGE" if re.fullmatch(r"\d+s", str(cell)) else cell for cell in cells]
    return kept


@pytest.mark.parametrize("index", range(len(ACCEPTED)), ids=[title(entry) for entry in ACCEPTED])
def test_an_accepted_object_is_stored_and_shown_as_the_real_server_does(
    embedded: Embedded, index: int
) -> None:
    real, ours = shape(ACCEPTED[index]["real"]), shape(embedded.answers["accepted"][index])
    kind = ACCEPTED[index]["case"]["kind"]
    for position, column in enumerate(real["table"]["columns"]):
        if (kind, column[0]) in FILLED_LATER:
            real["table"]["cells"][position] = ours["table"]["cells"][position]
    assert ours == real


@pytest.mark.parametrize("index", range(len(REFUSED)), ids=[title(entry) for entry in REFUSED])
def test_a_broken_object_is_refused_in_the_real_server_s_words(embedded: Embedded, index: int) -> None:
    real, ours = plain(REFUSED[index]["real"]), plain(embedded.answers["refused"][index])
    assert (ours["code"], told(ours["body"]["message"])) == (real["code"], told(real["body"]["message"]))
    if told(real["body"]["message"]) == real["body"]["message"]:
        assert ours["body"]["details"] == real["body"]["details"]
