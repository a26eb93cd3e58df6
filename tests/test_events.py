import asyncio
from typing import Any, cast

import msgspec
import pytest

from kubewright.api import (
    AlreadyExists,
    ConnectionFailed,
    CredentialError,
    Forbidden,
    NotFound,
    Status,
    StatusCause,
    StatusDetails,
    UnexpectedResponse,
    names,
)
from kubewright.client import ApiRequest, Client, ClientResponse
from kubewright.events import BURST, MAX_PENDING, MAX_REMEMBERED, SERIES_INTERVAL, EventRecorder, Reference
from kubewright.http.client import Headers
from kubewright.metrics import Registry
from kubewright.testing.virtual_time import settle, virtual_time

POD = Reference("v1", "Pod", "ns", "web", "u1")


class JsonObject:
    """A client that stores what is sent, and fails if configured to."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, dict[str, Any]]] = []
        self.failures: list[Exception] = []

    async def raw(self, request: ApiRequest) -> ClientResponse:
        await asyncio.sleep(0.01)
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append((request.method, request.path, msgspec.json.decode(request.body)))
        return ClientResponse(200, "OK", Headers(), b"{}")


class Recording:
    def __init__(self) -> None:
        self.wire = JsonObject()
        self.metrics = Registry()
        self.recorder = EventRecorder(
            cast(Client, self.wire), controller="shells", host="host", metrics=self.metrics
        )

    async def __aenter__(self) -> "Recording":
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._task = self._group.create_task(self.recorder.run())
        return self

    async def __aexit__(self, *failure: Any) -> None:
        self._task.cancel()
        await self._group.__aexit__(*failure)

    def dropped(self, reason: str) -> float:
        return (
            self.metrics.counter("kubewright_events_dropped_total", "", ("reason",))
            .labels(reason=reason)
            .value
        )


@virtual_time
async def test_an_event_is_sent_in_the_background() -> None:
    async with Recording() as recording:
        recording.recorder.record(POD, "Normal", "Scaled", "from 1 to 3")
        assert recording.wire.sent == []
        await asyncio.sleep(1)
    [(method, path, event)] = recording.wire.sent
    assert (method, path) == ("POST", "/apis/events.k8s.io/v1/namespaces/ns/events")
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "ns",
        "name": "web",
        "uid": "u1",
    }
    assert event["reason"] == event["action"] == "Scaled"
    assert event["note"] == "from 1 to 3"
    assert event["reportingController"] == "shells"
    assert event["reportingInstance"] == "shells-host"
    assert "series" not in event


@virtual_time
async def test_an_event_can_be_signed_by_another_reporter() -> None:
    async with Recording() as recording:
        recording.recorder.record(POD, "Normal", "Killing", "it", reporter="kubelet")
        await asyncio.sleep(1)
    [(_, _, event)] = recording.wire.sent
    assert (event["reportingController"], event["reportingInstance"]) == ("kubelet", "kubelet-host")


@virtual_time
async def test_repeats_are_counted_and_sent_at_most_once_a_minute() -> None:
    async with Recording() as recording:
        for _ in range(300):
            recording.recorder.record(POD, "Warning", "Failed", "again")
            await asyncio.sleep(1)
    creates = [event for method, _, event in recording.wire.sent if method == "POST"]
    patches = [event for method, _, event in recording.wire.sent if method == "PATCH"]
    assert len(creates) == 1
    assert 4 <= len(patches) <= 6
    assert patches[-1]["series"]["count"] == 300


@virtual_time
async def test_the_first_repeat_is_sent_at_once_and_further_ones_are_counted() -> None:
    async with Recording() as recording:
        for _ in range(5):
            recording.recorder.record(POD, "Warning", "Failed", "again")
            await asyncio.sleep(1)
        assert [method for method, _, _ in recording.wire.sent] == ["POST", "PATCH"]
        assert recording.wire.sent[-1][2]["series"]["count"] == 2
        await asyncio.sleep(SERIES_INTERVAL)
        assert [method for method, _, _ in recording.wire.sent] == ["POST", "PATCH", "PATCH"]
        assert recording.wire.sent[-1][2]["series"]["count"] == 5


@virtual_time
async def test_a_new_event_does_not_wait_for_counts() -> None:
    async with Recording() as recording:
        for number in range(100):
            recording.recorder.record(POD._replace(name=f"web-{number}"), "Normal", "Seen", "it")
        await asyncio.sleep(15)
        for number in range(100):
            recording.recorder.record(POD._replace(name=f"web-{number}"), "Normal", "Seen", "it")
        await asyncio.sleep(0.005)
        recording.recorder.record(POD, "Normal", "New", "words")
        await asyncio.sleep(15)
    sent = [event.get("reason", "count") for _, _, event in recording.wire.sent[100:]]
    assert sent.index("New") < 3
    assert sent.count("count") == 100


@virtual_time
async def test_a_repeat_after_a_long_silence_is_a_new_event() -> None:
    async with Recording() as recording:
        for _ in range(2):
            recording.recorder.record(POD, "Normal", "Seen", "it")
            await asyncio.sleep(400)
    assert [method for method, _, _ in recording.wire.sent] == ["POST", "POST"]


@virtual_time
async def test_events_of_one_object_are_rate_limited_and_others_are_sent() -> None:
    other = POD._replace(name="db", uid="u2")
    async with Recording() as recording:
        for number in range(100):
            recording.recorder.record(POD, "Normal", "Flood", f"number {number}")
        recording.recorder.record(other, "Normal", "Calm", "one")
        await asyncio.sleep(60)
        assert len(recording.wire.sent) == BURST + 1
        assert recording.dropped("rate_limit") == 100 - BURST
        await asyncio.sleep(601)
        recording.recorder.record(POD, "Normal", "Flood", "later")
        await asyncio.sleep(1)
        assert len(recording.wire.sent) == BURST + 2


@virtual_time
async def test_the_queue_is_bounded() -> None:
    async with Recording() as recording:
        for number in range(MAX_PENDING + 50):
            recording.recorder.record(POD._replace(uid=str(number)), "Normal", "Many", "x")
        assert recording.dropped("queue_full") == 50
        await asyncio.sleep(60)
    assert len(recording.wire.sent) == MAX_PENDING


@virtual_time
async def test_events_are_retried_after_outages_and_dropped_when_refused() -> None:
    async with Recording() as recording:
        recording.wire.failures = [ConnectionFailed("cut"), UnexpectedResponse("a login page")]
        recording.recorder.record(POD, "Normal", "Seen", "it")
        await asyncio.sleep(30)
        assert len(recording.wire.sent) == 1
        recording.wire.failures = [Forbidden(Status(reason="Forbidden", code=403))]
        recording.recorder.record(POD, "Normal", "Refused", "it")
        await asyncio.sleep(30)
        assert len(recording.wire.sent) == 1
        assert recording.dropped("error") == 1


@virtual_time
async def test_events_in_a_deleted_namespace_are_dropped_without_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ending = StatusDetails(causes=[StatusCause(reason="NamespaceTerminating")])
    async with Recording() as recording:
        recording.wire.failures = [Forbidden(Status(reason="Forbidden", code=403, details=ending))]
        recording.recorder.record(POD, "Normal", "Seen", "it")
        await asyncio.sleep(30)
        assert caplog.messages == []
        recording.wire.failures = [Forbidden(Status(reason="Forbidden", code=403, message="no right"))]
        recording.recorder.record(POD, "Normal", "Refused", "it")
        await asyncio.sleep(30)
        assert recording.dropped("error") == 1
    (line,) = caplog.messages
    assert "no right" in line


@virtual_time
async def test_an_event_whose_response_was_lost_counts_as_sent() -> None:
    async with Recording() as recording:
        recording.wire.failures = [
            ConnectionFailed("cut"),
            AlreadyExists(Status(reason="AlreadyExists", code=409)),
        ]
        recording.recorder.record(POD, "Normal", "Seen", "it")
        await asyncio.sleep(30)
        assert recording.wire.sent == []
        assert recording.dropped("error") == 0


@virtual_time
async def test_a_counted_event_that_expired_on_the_server_is_created_again() -> None:
    async with Recording() as recording:
        recording.recorder.record(POD, "Normal", "Seen", "it")
        await asyncio.sleep(1)
        recording.wire.failures = [NotFound(Status(reason="NotFound", code=404))]
        recording.recorder.record(POD, "Normal", "Seen", "it")
        await asyncio.sleep(70)
        recording.recorder.record(POD, "Normal", "Seen", "it")
        await asyncio.sleep(70)
    assert [method for method, _, _ in recording.wire.sent] == ["POST", "POST"]


@virtual_time
async def test_a_repeat_while_its_event_is_found_missing_blocks_no_other_event() -> None:
    async with Recording() as recording:
        recording.wire.failures = [NotFound(Status(reason="NotFound", code=404))]
        recording.recorder.record(POD, "Normal", "Seen", "it")
        await asyncio.sleep(0.005)
        recording.recorder.record(POD, "Normal", "Seen", "it")
        await asyncio.sleep(1)
        recording.recorder.record(POD, "Normal", "Last", "words")
        await asyncio.sleep(1)
    assert [event["reason"] for _, _, event in recording.wire.sent] == ["Last"]


@virtual_time
async def test_repeats_during_a_request_are_counted_and_block_no_other_event() -> None:
    async with Recording() as recording:
        recording.wire.failures = [ConnectionFailed("cut")]
        recording.recorder.record(POD, "Normal", "First", "words")
        await asyncio.sleep(0.005)
        for number in range(MAX_PENDING + MAX_REMEMBERED):
            recording.recorder.record(POD._replace(name=f"web-{number}"), "Normal", "Seen", "it")
        await asyncio.sleep(1)
        recording.recorder.record(POD, "Normal", "Last", "words")
        await asyncio.sleep(60)
    sent = [event["reason"] for _, _, event in recording.wire.sent]
    assert sent[-1] == "Last"
    assert len(sent) + recording.dropped("queue_full") == MAX_PENDING + MAX_REMEMBERED + 2


@virtual_time
async def test_pending_events_are_sent_at_the_end() -> None:
    async with Recording() as recording:
        await settle()
        recording.recorder.record(POD, "Normal", "Last", "words")
        recording.recorder.record(POD._replace(namespace=""), "Normal", "Cluster", "scoped")
    assert [path for _, path, _ in recording.wire.sent] == [
        "/apis/events.k8s.io/v1/namespaces/ns/events",
        "/apis/events.k8s.io/v1/namespaces/default/events",
    ]


@virtual_time
async def test_long_texts_are_truncated_to_the_limits_of_the_server() -> None:
    async with Recording() as recording:
        recording.recorder.record(POD._replace(name="n" * 253), "Normal", "R" * 200, "x" * 5000)
        await asyncio.sleep(1)
    [(_, _, event)] = recording.wire.sent
    assert (len(event["reason"]), len(event["action"]), len(event["note"])) == (128, 128, 1024)
    assert len(event["metadata"]["name"]) <= 253


@virtual_time
async def test_two_events_of_one_instant_have_different_names() -> None:
    async with Recording() as recording:
        for reason in ("Pulled", "Created", "Started"):
            recording.recorder.record(POD, "Normal", reason, "")
        await asyncio.sleep(1)
        names = {event["metadata"]["name"] for _, _, event in recording.wire.sent}
    assert len(names) == 3


@virtual_time
async def test_missing_credentials_delay_events_without_an_error() -> None:
    async with Recording() as recording:
        recording.wire.failures = [CredentialError("the plugin failed")]
        recording.recorder.record(POD, "Normal", "Seen", "it")
        await asyncio.sleep(60)
    assert [event["reason"] for _, _, event in recording.wire.sent] == ["Seen"]


@virtual_time
async def test_texts_are_truncated_by_bytes() -> None:
    async with Recording() as recording:
        recording.recorder.record(POD, "Normal", "ü" * 100, "€" * 1000)
        recording.recorder.record(POD, "Normal", "Half", "half a pair: \ud83d")
        await asyncio.sleep(1)
    [(_, _, long), (_, _, half)] = recording.wire.sent
    assert (long["reason"], long["action"], long["note"]) == ("ü" * 64, "ü" * 64, "€" * 341)
    assert half["note"] == "half a pair: ?"


@virtual_time
@pytest.mark.parametrize("name", ["system:node", "a" * 199 + "-" + "b" * 20])
async def test_an_object_whose_name_is_invalid_for_events_still_gets_events(name: str) -> None:
    async with Recording() as recording:
        recording.recorder.record(POD._replace(name=name), "Normal", "Seen", "it")
        await asyncio.sleep(1)
    [(_, _, event)] = recording.wire.sent
    assert names.dns1123_subdomain(event["metadata"]["name"]) == []
    assert event["regarding"]["name"] == name


async def test_a_thread_that_outlives_the_loop_may_still_record() -> None:
    async def recorder() -> EventRecorder:
        return Recording().recorder

    left = await asyncio.to_thread(asyncio.run, recorder())
    left.record(POD, "Normal", "Late", "words")


@virtual_time
async def test_waiting_repeats_do_not_block_new_events() -> None:
    async with Recording() as recording:
        for _ in range(2):
            for number in range(MAX_PENDING):
                recording.recorder.record(POD._replace(name=f"web-{number}"), "Normal", "Seen", "it")
            await asyncio.sleep(15)
        recording.recorder.record(POD, "Normal", "New", "words")
        await asyncio.sleep(1)
        assert recording.wire.sent[-1][2]["reason"] == "New"
    assert recording.dropped("queue_full") == 0
