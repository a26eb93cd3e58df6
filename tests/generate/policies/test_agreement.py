"""A policy and the function that it was translated from agree on generated objects, on both servers."""

import json
import random
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

import kubewright as kw
from kubewright.api import ServiceUnavailable, json_patch, kind_of
from kubewright.generate import with_policies
from kubewright.testing import Cluster, eventually
from kubewright.webhook import Admission, review_admission

from ...webhook.reviews import admission_review, operations
from .kinds import OPERATOR, SECOND, VALIDATING, Pool, protect, set_defaults, set_parts, warn_of_size

pytestmark = pytest.mark.asyncio(loop_scope="module")

JsonObject = dict[str, Any]
OBJECTS = 60
KIND = kind_of(Pool)
POLICIES = [document for operator in (OPERATOR, SECOND) for document in with_policies(operator)[1].policies]
TEXTS = [
    "",
    "x",
    "xy",
    "north",
    "south",
    "quote",
    "qe",
    "bad",
    "no",
    "none",
    "a",
    "b",
    'a"b\\c',
    "ünï\U0001f600",
]


class Generated:
    """Random specs, as JSON: fields are absent, empty, null, at their bounds or anything else."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def spec(self) -> JsonObject:
        given: JsonObject = {
            "size": self._one(0, 2, 7, 11, 20, 29, 50, 6.0),
            "step": self._one(1, 2, 3, 9),
            "lead": self._one(None, *TEXTS),
            "note": self._text(),
            "level": self._one("low", "low", "high"),
            "mode": self._one("a", "a", "b"),
            "big": self._one(None, -1, 3, 2**53 + 1, 2**63 - 1, -(2**63)),
            "enabled": self._one(True, False, None),
            "frozen": self._one(True, False),
            "tags": self._some(self._text, 4),
            "numbers": self._one([], [4], [4, 5], None),
            "ports": self._some(self._port, 3),
            "weights": {
                self._one("a", "b", "no"): self._one(1, 2, 4, 7) for _ in range(self._random.randrange(3))
            },
            "limits": self._one({}, {"soft": 11}, {"soft": 2, "note": "n"}, {"note": "m"}, None),
            "extra": self._one(None, {}, {"hard": -5}, {"hard": 5, "note": "n"}, {"soft": 1}),
            "longWord": self._text(),
        }
        kept = {name: value for name, value in given.items() if self._random.random() < 0.6}
        return {"zone": self._one("north", "south", "north", "south", *TEXTS), **kept}

    def labels(self) -> JsonObject:
        return {name: value for name, value in (("b", "c"), ("zone", "z")) if self._random.random() < 0.3}

    def _port(self) -> JsonObject:
        further = {"number": self._one(80, 999, 1000, 5000), "public": self._one(True, False)}
        kept = {name: value for name, value in further.items() if self._random.random() < 0.6}
        return {"name": self._text(), **kept}

    def _text(self) -> str:
        return self._one(*TEXTS)

    def _some(self, make: Any, most: int) -> list[Any]:
        return [make() for _ in range(self._random.randrange(most))]

    def _one(self, *values: Any) -> Any:
        return self._random.choice(values)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def with_all_policies(module_cluster: Cluster) -> AsyncGenerator[Cluster, None]:
    """Create the policies of all functions; each applies to the objects with a label of its own."""
    cluster = module_cluster
    await cluster.install(Pool)
    for document in POLICIES:
        await cluster.client.apply(document, field_manager="test", force=True)
    yield cluster
    for document in POLICIES:
        group, _, version = document["apiVersion"].rpartition("/")
        plural = (
            f"{document['kind'].lower().removesuffix('y')}{'ies' if document['kind'].endswith('y') else 's'}"
        )
        kind = kw.Kind(group=group, version=version, kind=document["kind"], plural=plural, namespaced=False)
        await cluster.client.delete(kind, document["metadata"]["name"])


def pool(cluster: Cluster, generated: Generated, name: str, case: str = "") -> JsonObject:
    labels = {**generated.labels(), **({"case": case} if case else {})}
    return {
        "apiVersion": KIND.api_version,
        "kind": KIND.kind,
        "metadata": {"name": name, "namespace": cluster.namespace, **({"labels": labels} if labels else {})},
        "spec": generated.spec(),
    }


def with_case(obj: JsonObject, case: str) -> JsonObject:
    metadata: JsonObject = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), "case": case}}}


async def as_admitted(cluster: Cluster, obj: JsonObject) -> JsonObject | None:
    """Return what the server passes to admission: with its defaults; None if the schema forbids the object."""
    try:
        return await cluster.client.create(obj, kind=KIND, dry_run=True)
    except kw.errors.Invalid:
        return None


def asked(
    webhook: Admission[Any], obj: JsonObject | None, old: JsonObject | None, operation: str
) -> JsonObject:
    """Return the response of the function."""
    review = admission_review(obj, old, operation=operation, dryRun=True)
    return json.loads(review_admission(webhook, json.dumps(review).encode()))["response"]


def first_text(response: JsonObject) -> str:
    """Return the text of the first thing that a function found, as its response has it."""
    status = response["status"]
    causes = status.get("details", {}).get("causes", ())
    if not causes:
        return str(status["message"]).partition("; ")[0]
    return f"{causes[0]['field']}: {causes[0]['message']}"


async def write(cluster: Cluster, obj: JsonObject, operation: str) -> str:
    """Return what a dry run of a write is refused with, or nothing."""
    try:
        if operation == "CREATE":
            await cluster.client.create(obj, kind=KIND, dry_run=True)
        else:
            await cluster.client.replace(obj, kind=KIND, dry_run=True)
    except (kw.errors.Invalid, kw.errors.Forbidden) as error:
        return str(error)
    return ""


async def refusal(cluster: Cluster, obj: JsonObject, operation: str, *, allowed: bool) -> list[str]:
    """Return what a write is refused with; a new policy may not be in force at once."""
    answer = await write(cluster, obj, operation)
    assert bool(answer) != allowed, (answer, obj)
    assert allowed or "denied request: " in answer
    return [answer]


async def is_made_like(cluster: Cluster, obj: JsonObject, expected: JsonObject) -> bool:
    made = await cluster.client.create(obj, kind=KIND, dry_run=True)
    assert made["spec"] == expected["spec"]
    for name in ("labels", "annotations"):
        assert made["metadata"].get(name) == expected["metadata"].get(name)
    return True


@pytest.mark.seeds(1, 2)
@pytest.mark.parametrize("webhook", VALIDATING, ids=lambda each: each.name)
async def test_a_policy_and_its_function_refuse_the_same_objects(
    with_all_policies: Cluster, webhook: Admission[Any], seed: int
) -> None:
    cluster, generated, refused, allowed = with_all_policies, Generated(seed), 0, 0
    for number in range(OBJECTS):
        operation = "UPDATE" if webhook.name == "check-change" and number % 4 else "CREATE"
        candidate = pool(cluster, generated, f"pool-{number}" if number % 5 else "a")
        admitted = await as_admitted(cluster, candidate)
        if admitted is None:
            continue
        old: JsonObject | None = None
        if operation == "UPDATE":
            stored = pool(cluster, generated, f"stored-{seed}-{number}")
            if number % 8 > 4:
                stored["spec"] = {**candidate["spec"], "size": 29}
            if await as_admitted(cluster, stored) is None:
                continue
            old = await cluster.client.create(stored, kind=KIND)
            for each in (candidate, admitted):
                each["metadata"] = {**old["metadata"], "labels": each["metadata"].get("labels", {})}
        expected = asked(webhook, with_case(admitted, webhook.name), old, operation)
        written = with_case(candidate, webhook.name)

        allows = bool(expected["allowed"])
        (answer,) = await eventually(partial(refusal, cluster, written, operation, allowed=allows))
        refused, allowed = refused + bool(answer), allowed + (not answer)
        if answer:
            texts = [first_text(expected), *str(expected["status"]["message"]).split("; ")]
            assert any(text in answer for text in texts), (answer, expected)
    assert refused > 2
    assert allowed > 2


@pytest.mark.seeds(1, 2)
@pytest.mark.parametrize("webhook", [set_defaults, set_parts], ids=lambda each: each.name)
async def test_a_policy_and_its_function_set_the_same_defaults(
    with_all_policies: Cluster, webhook: Admission[Any], seed: int
) -> None:
    cluster, generated, changed = with_all_policies, Generated(seed), 0
    for number in range(OBJECTS):
        candidate = pool(cluster, generated, f"pool-{number}")
        admitted = await as_admitted(cluster, candidate)
        if admitted is None:
            continue
        labelled = with_case(admitted, webhook.name)
        response = asked(webhook, labelled, None, "CREATE")
        assert response["allowed"]
        expected = json_patch(labelled, operations(response)) if "patch" in response else labelled
        written = with_case(candidate, webhook.name)

        # A new kind may be unknown to the admission of policies for a while; the real server then responds with 503.
        await eventually(partial(is_made_like, cluster, written, expected), ignore=ServiceUnavailable)
        changed += "patch" in response
    assert changed > 5


async def test_a_policy_of_warnings_warns_and_lets_the_object_pass(
    with_all_policies: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = with_all_policies
    made = pool(cluster, Generated(1), "large", warn_of_size.name)
    made["spec"] = {"zone": "north", "size": 21}

    async def warned() -> bool:
        caplog.clear()
        await cluster.client.create(made, kind=KIND, dry_run=True)
        return "a large pool" in caplog.text

    await eventually(warned)
    caplog.clear()
    await cluster.client.create({**made, "spec": {"zone": "north", "size": 20}}, kind=KIND, dry_run=True)
    assert "a large pool" not in caplog.text


async def test_a_policy_of_a_deletion_sees_the_deleted_object(with_all_policies: Cluster) -> None:
    cluster = with_all_policies
    for name, frozen in (("kept", True), ("lost", False)):
        made = pool(cluster, Generated(1), name, protect.name)
        await cluster.client.create({**made, "spec": {"zone": "north", "frozen": frozen}}, kind=KIND)

    async def refused() -> bool:
        with pytest.raises(kw.errors.Forbidden, match="denied request: kept is frozen"):
            await cluster.client.delete(Pool, "kept", cluster.namespace)
        return True

    await eventually(refused)
    await cluster.client.delete(Pool, "lost", cluster.namespace)
    await cluster.client.patch(await cluster.get(Pool, "kept"), {"metadata": {"labels": {"case": "none"}}})


async def test_a_finalizer_can_be_removed_from_an_object_that_a_policy_would_refuse(
    with_all_policies: Cluster,
) -> None:
    cluster = with_all_policies
    made = pool(cluster, Generated(1), "old")
    made["metadata"]["finalizers"] = ["example.com/keep"]
    stored = await cluster.client.create({**made, "spec": {"zone": "east"}}, kind=KIND)
    labelled = with_case(stored, "check-texts")

    async def refused() -> bool:
        with pytest.raises(kw.errors.Invalid, match="Unsupported value"):
            await cluster.client.replace(labelled, kind=KIND)
        return True

    await eventually(refused)
    await cluster.client.delete(Pool, "old", cluster.namespace)
    terminating = await cluster.get(Pool, "old")
    await cluster.client.patch(terminating, {"metadata": {"labels": {"case": "check-texts"}}})
    with pytest.raises(kw.errors.Invalid, match="Unsupported value"):
        await cluster.client.patch(terminating, {"spec": {"zone": "west"}})
    await cluster.client.patch(terminating, {"metadata": {"finalizers": None}})
    await cluster.eventually_gone(Pool, "old")
