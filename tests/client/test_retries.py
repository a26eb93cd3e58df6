"""A request is sent again only where that is safe."""

import pytest

from kubewright.api import Kind, Status
from kubewright.client import ApiRequest, ConnectionLost, error_from_status, requests
from kubewright.client.retries import LOST_ATTEMPTS, retry_delay

PODS = Kind(group="", version="v1", kind="Pod", plural="pods")
READ = requests.get(PODS, "a", "default")
WRITE = requests.create({"metadata": {"name": "a", "namespace": "default"}}, PODS)
LOCKED = requests.delete(PODS, "a", "default", uid="u")
EVICTION = requests.post_subresource(PODS, "a", "default", "eviction", {}, honor_retry_after=False)


def refused(code: int, retry_after: float | None) -> Exception:
    return error_from_status(Status(code=code), retry_after=retry_after)


@pytest.mark.parametrize("request_", [READ, WRITE, LOCKED])
@pytest.mark.parametrize("code", [429, 503])
def test_every_verb_honours_retry_after(request_: ApiRequest, code: int) -> None:
    assert retry_delay(request_, refused(code, 4), 0) == 4


@pytest.mark.parametrize("code", [429, 503, 500, 404])
def test_requests_are_not_retried_without_a_retry_after(code: int) -> None:
    assert retry_delay(READ, refused(code, None), 0) is None


def test_an_eviction_is_not_repeated() -> None:
    assert retry_delay(EVICTION, refused(429, 10), 0) is None


@pytest.mark.parametrize(("request_", "again"), [(READ, True), (LOCKED, True), (WRITE, False)])
@pytest.mark.parametrize("code", [500, 504])
def test_a_write_with_an_unknown_outcome_is_not_repeated(
    request_: ApiRequest, again: bool, code: int
) -> None:
    assert (retry_delay(request_, refused(code, 1), 0) is not None) is again


@pytest.mark.parametrize(("request_", "again"), [(READ, True), (LOCKED, True), (WRITE, False)])
def test_a_lost_connection_is_repeated_where_a_second_copy_cannot_harm(
    request_: ApiRequest, again: bool
) -> None:
    assert (retry_delay(request_, ConnectionLost("x", sent=True), 0) is not None) is again


def test_requests_that_were_not_sent_are_always_retried() -> None:
    assert retry_delay(WRITE, ConnectionLost("x", sent=False), 0) is not None


def test_lost_connections_are_not_repeated_for_ever() -> None:
    assert retry_delay(READ, ConnectionLost("x", sent=True), LOST_ATTEMPTS) is None


@pytest.mark.parametrize(("request_", "delay"), [(READ, 10), (WRITE, 3600)])
def test_a_read_limits_the_retry_after_of_the_server(request_: ApiRequest, delay: float) -> None:
    assert retry_delay(request_, refused(429, 3600), 0) == delay


def test_a_watch_that_is_refused_is_not_repeated_unseen() -> None:
    assert retry_delay(requests.watch(PODS), refused(429, 1), 0) is None
