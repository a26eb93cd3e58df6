"""The comparison of both servers: a fixed seed in CI, and what it does with the differences that it finds."""

import base64
import dataclasses
import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from compare_allowed import FILE, MATCHER, AllowList, Matcher
from compare_areas import AREAS
from compare_case import Case, CaseBuilder, draw
from compare_conversions import HTTP_MISTAKES, OBJECT_MISTAKES, RESPONSE_MISTAKES, convert
from compare_difference import Difference, first_difference, general, show
from compare_replies import draw_reply, respond
from compare_servers import Pairing, is_unreached
from compare_shrink import Shrinker
from conformance_exchange import Step
from conformance_normal import Normal

from compare import Budget, compare, parse, table

SEED = 1
REQUESTS = 100
"""Requests for each area; all areas together take about a minute."""


def answer(status: int = 200, body: Any = None) -> dict[str, Any]:
    return {"status": status, "headers": {}, "body": body}


def difference(real: Any, embedded: Any, *steps: Step, area: str = "writes") -> Difference:
    found = steps or (Step("0", "POST", "/api/v1/namespaces/{ns}/configmaps", {"data": {"a": "b"}}),)
    return Difference(Case(area, 1, 0, tuple(found)), Pairing(found[-1], real, embedded))


@pytest.mark.usefixtures("project_release")
@pytest.mark.parametrize("controllers", [False, True])
def test_servers_agree_on_a_fixed_seed(controllers: bool, server_name: str) -> None:
    if server_name != "real":
        pytest.skip("the comparison needs the real server: scripts/test --server real")
    areas = [area for area in AREAS.values() if area.controllers == controllers]
    found = compare(areas, [SEED], Budget(requests=REQUESTS))
    assert not found.findings, table(found)


@pytest.mark.parametrize("area", AREAS)
def test_same_seed_draws_the_same_requests(area: str) -> None:
    def requests(seed: int) -> Any:
        case = draw(area, AREAS[area].generator, seed, 3)
        return [(step.method, step.path, json.dumps(step.body), dict(step.headers)) for step in case.steps]

    assert requests(7) == requests(7)
    assert requests(7) != requests(8)


class FakeServers:
    """Servers that differ on a request if `differs` holds for the requests so far."""

    def __init__(self, differs: Callable[[Sequence[Step]], bool]) -> None:
        self._differs = differs
        self.plays = 0

    def play(self, case: Case) -> list[Pairing]:
        self.plays += 1
        pairings: list[Pairing] = []
        for index, step in enumerate(case.steps):
            embedded = answer(500) if self._differs(case.steps[: index + 1]) else answer()
            pairings.append(Pairing(step, answer(), embedded))
        return pairings


def test_shrinks_to_the_requests_and_fields_that_matter() -> None:
    def differs(steps: Sequence[Step]) -> bool:
        needed = any(step.body and "needed" in step.body for step in steps[:-1])
        return needed and bool(steps[-1].body) and steps[-1].body.get("bad") == 1

    builder = CaseBuilder(None)  # pyright: ignore[reportArgumentType]
    builder.send("POST", "/a", {"x": 1})
    builder.send("POST", "/b", {"needed": 1, "more": [1, 2]})
    builder.send("POST", "/c", {"y": 1})
    builder.send("PUT", "/d?fieldManager=m&dryRun=All", {"bad": 1, "spec": {"a": [1]}}, {"Accept": "*/*"})
    builder.send("GET", "/e")
    servers = FakeServers(differs)
    case = builder.case("writes", 1, 0)
    found = first_difference(case, servers.play(case))
    assert found is not None
    steps = Shrinker(servers).shrink(found).case.steps  # pyright: ignore[reportArgumentType]
    assert [(step.path, step.body, step.headers) for step in steps] == [
        ("/b", {"needed": 1}, {}),
        ("/d?dryRun=All", {"bad": 1}, {}),
    ]


def test_shrinks_the_response_of_a_webhook_but_keeps_its_namespaces() -> None:
    def differs(steps: Sequence[Step]) -> bool:
        return "/uid=other" in str(steps[-1].body)

    url = "https://{hook}/reply/deny/code=418/uid=other/warn=plain"
    body = {"clientConfig": {"url": url}, "namespaceSelector": {"matchLabels": {"run": "{run}"}}}
    servers = FakeServers(differs)
    case = Case("webhooks", 1, 0, (Step("0", "POST", "/webhooks", body),))
    found = first_difference(case, servers.play(case))
    assert found is not None
    steps = Shrinker(servers).shrink(found).case.steps  # pyright: ignore[reportArgumentType]
    assert steps[0].body["clientConfig"] == {"url": "https://{hook}/reply/deny/uid=other"}
    assert "namespaceSelector" in steps[0].body


def test_stops_shrinking_after_the_given_number_of_replays() -> None:
    servers = FakeServers(lambda steps: len(steps) == 3)
    case = Case("writes", 1, 0, tuple(Step(str(index), "GET", "/") for index in range(3)))
    found = first_difference(case, servers.play(case))
    assert found is not None
    Shrinker(servers, tries=2).shrink(found)  # pyright: ignore[reportArgumentType]
    assert servers.plays == 3


def replied(path: str, **request: Any) -> tuple[int, Any]:
    review = {"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u", "object": {}, **request}}
    status, _, body = respond(path.split("/")[1:], review)
    return status, json.loads(body).get("response")


def test_a_path_says_how_a_webhook_responds() -> None:
    assert replied("reply/allow") == (200, {"uid": "u", "allowed": True})
    assert replied("reply/deny/code=418/uid=other") == (
        200,
        {"uid": "other", "allowed": False, "status": {"code": 418}},
    )
    assert replied("reply/allow/http=500")[0] == 500
    _, response = replied("reply/allow/patch=add:metadata.labels.x:text/patch=copy:a:b")
    assert json.loads(base64.b64decode(response["patch"])) == [
        {"op": "add", "path": "/metadata/labels/x", "value": "b"},
        {"op": "copy", "path": "/a", "from": "/b"},
    ]


def test_each_drawn_response_can_be_given() -> None:
    chance = random.Random(1)
    request = {"userInfo": {"username": "jane"}, "object": None}
    for index in range(2000):
        path = draw_reply(chance, mutating=index % 2 == 0)
        if "/slow" not in path:
            respond(path.split("/")[1:], {"apiVersion": "v1", "request": {"uid": "u", **request}})


@pytest.mark.parametrize("name", [*OBJECT_MISTAKES, *RESPONSE_MISTAKES, *HTTP_MISTAKES])
def test_each_mistake_of_a_conversion_changes_the_response(name: str) -> None:
    def response(segment: str, label: str) -> Any:
        obj = {"apiVersion": "ex.io/v1", "kind": "Thing", "spec": {"size": 1}}
        obj["metadata"] = {
            "name": "x",
            "namespace": "n",
            "uid": "u",
            "labels": {"break": label},
            "managedFields": [{}],
        }
        request = {"uid": "u", "desiredAPIVersion": "ex.io/v2", "objects": [obj]}
        return convert([segment], {"apiVersion": "apiextensions.k8s.io/v1", "request": request})

    good = response("good", "")
    if name in OBJECT_MISTAKES:
        assert response("good", name)[2].replace(name.encode(), b"") != good[2]
    else:
        assert response(name, "") == response(name, "")
        assert response(name, "") != good
        assert response("good", f"all-{name}") != good


def test_a_case_that_both_servers_do_not_finish_is_counted() -> None:
    waiting = {"status": 0, "headers": {}, "body": "003: not reached in 15 s"}
    step = Step("0", "GET", "/")
    assert is_unreached(Pairing(step, waiting, waiting))
    assert not is_unreached(Pairing(step, waiting, answer()))
    assert not is_unreached(Pairing(step, answer(), answer()))


def invalid(field: str, message: str) -> dict[str, Any]:
    cause = {"reason": "FieldValueInvalid", "field": field, "message": message}
    return answer(
        422, {"kind": "Status", "reason": "Invalid", "message": "m", "details": {"causes": [cause]}}
    )


def test_errors_that_differ_in_drawn_values_are_one_class() -> None:
    first = difference(invalid("spec.a[0].b", 'Invalid value: "x": must be less than 3'), answer(201))
    second = difference(
        invalid("spec.template.spec.a[17].b", 'Invalid value: "y z": must be less than 40'), answer(201)
    )
    other = difference(invalid("spec.c", "Required value"), answer(201))
    assert first.key == second.key
    assert first.key != other.key


def test_changed_fields_name_the_class_of_two_successes() -> None:
    first = difference(
        answer(body={"data": {"a": "1"}, "x": [1]}), answer(body={"data": {"a": "2"}, "x": []})
    )
    second = difference(
        answer(body={"data": {"b": "1"}, "x": [1, 1]}), answer(body={"data": {"b": "2"}, "x": [1]})
    )
    assert first.key == second.key == ("differs body.data.*", "only real body.x.[]")


def test_shows_the_requests_both_statuses_and_a_diff() -> None:
    text = show(difference(answer(201, {"a": 1, "b": 2}), answer(409, {"a": 1, "b": 3})))
    assert 'POST /api/v1/namespaces/{ns}/configmaps\n    {"data": {"a": "b"}}' in text
    assert "real: 201, embedded: 409" in text
    assert re.search(r'-  +"b": 2\n +\+  +"b": 3', text)


def test_a_message_without_generated_values_is_unchanged() -> None:
    assert general('spec.template.spec.containers[0].name: Invalid value: "A": too long (64)') == (
        'containers[].name: Invalid value: "": too long ()'
    )


# The allow-list.


def test_a_matcher_needs_all_its_conditions() -> None:
    found = difference(answer(422, {"message": "Required value"}), answer(201, {"kind": "ConfigMap"}))
    matcher = Matcher("POST", "/configmaps$", '"data"', (422, 201), "Required", "ConfigMap")
    assert matcher.matches(found)
    for wrong in (
        {"method": "PUT"},
        {"path": "secrets"},
        {"request": "binaryData"},
        {"status": (422, 200)},
        {"real": "Forbidden"},
        {"embedded": "Secret"},
    ):
        assert not dataclasses.replace(matcher, **wrong).matches(found), wrong


def test_changes_of_a_matcher_must_cover_each_path_that_differs() -> None:
    found = difference(answer(body={"a": 1, "b": [1]}), answer(body={"a": 2, "b": [2]}))
    assert Matcher(changes=(r"body\.a", r"body\.b\.\[\]")).matches(found)
    assert not Matcher(changes=(r"body\.a",)).matches(found)


def test_a_matcher_finds_the_texts_that_are_not_compared() -> None:
    failure = {"kind": "Status", "status": "Failure", "reason": "Invalid", "message": "Required value"}
    found = difference(answer(422, failure), answer(201, {"kind": "ConfigMap"}))
    found = dataclasses.replace(found, pairing=found.pairing.without_wording())
    assert "message" not in found.pairing.real["body"]
    assert Matcher(status=(422, 201), real="Required value").matches(found)
    assert not Matcher(status=(422, 201), real="Forbidden").matches(found)


def test_matchers_of_the_allow_list_are_narrow() -> None:
    for entry in AllowList().entries:
        assert set(entry.areas) <= set(AREAS), entry.id
        for matcher in entry.matchers:
            used = [name for name in MATCHER if getattr(matcher, name)]
            assert len(used) >= 2, f"{entry.id}: a matcher with one condition allows too much"
            assert matcher.real or matcher.embedded or matcher.changes, f"{entry.id}: names no response"


def test_ids_of_the_allow_list_are_unique() -> None:
    names = [entry.id for entry in AllowList(FILE).entries]
    assert len(set(names)) == len(names)


# The normalizer.


def managers(*entries: tuple[str, str, str]) -> Any:
    made = [{"manager": name, "operation": operation, "time": time} for name, operation, time in entries]
    normal = Normal().value({"metadata": {"managedFields": made}})
    return [entry["manager"] for entry in normal["metadata"]["managedFields"]]


def test_managers_in_the_order_of_their_times_do_not_depend_on_the_second() -> None:
    early, late = "2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z"
    assert managers(("b", "Update", early), ("a", "Update", late)) == ["a", "b"]
    assert managers(("a", "Update", early), ("b", "Update", early)) == ["a", "b"]


def test_managers_in_a_wrong_order_stay_in_that_order() -> None:
    early, late = "2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z"
    assert managers(("b", "Update", late), ("a", "Update", early)) == ["b", "a"]
    assert managers(("b", "Update", early), ("a", "Apply", early)) == ["b", "a"]
    assert managers(("b", "Update", early), ("a", "Update", early)) == ["b", "a"]


# The command line.


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--seconds", "0"], ["--seconds", "x"], ["--requests", "-1"], ["--case", "-1"], ["--seed", "x"]),
        *(["--only", "nope"], ["--kubernetes", "0.1"], ["--seconds", "1", "--case", "1"], ["more"]),
    ],
    ids=" ".join,
)
def test_bad_arguments_exit_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert "scripts/compare: error:" in capsys.readouterr().err
