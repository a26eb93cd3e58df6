"""Errors are chosen by reason, and say object, verb and remedy."""

import pytest

from kubewright.api import KubewrightError, Status, StatusCause, StatusDetails
from kubewright.client import (
    AlreadyExists,
    ApiError,
    Conflict,
    ConnectionFailed,
    Expired,
    Forbidden,
    GatewayTimeout,
    Invalid,
    NotFound,
    ServiceUnavailable,
    TimedOut,
    TooManyRequests,
    error_from_status,
)


def test_the_reason_decides_between_errors_of_one_code() -> None:
    assert isinstance(error_from_status(Status(code=409, reason="AlreadyExists")), AlreadyExists)
    assert isinstance(error_from_status(Status(code=409, reason="Conflict")), Conflict)


@pytest.mark.parametrize(
    ("reason", "code", "expected"),
    [
        ("Expired", 410, Expired),
        ("Gone", 410, Expired),
        ("Timeout", 504, GatewayTimeout),
        ("", 422, Invalid),
        ("SomethingNew", 503, ServiceUnavailable),
        ("", 418, ApiError),
    ],
)
def test_the_code_counts_only_without_a_known_reason(
    reason: str, code: int, expected: type[ApiError]
) -> None:
    assert type(error_from_status(Status(code=code, reason=reason))) is expected


def test_the_message_names_verb_object_and_cause() -> None:
    details = StatusDetails(name="web", kind="pods")
    status = Status(code=404, reason="NotFound", message='pods "web" not found', details=details)
    error = error_from_status(status, verb="get", object="pods default/web")
    assert str(error) == 'get pods default/web: pods "web" not found'
    assert isinstance(error, NotFound)
    assert not error.kind_missing


def test_distinguishes_a_missing_kind_from_a_missing_object() -> None:
    error = error_from_status(
        Status(code=404, message="404 page not found"), verb="list", object="foos.example.com"
    )
    assert isinstance(error, NotFound)
    assert error.kind_missing
    assert "is its CRD installed?" in str(error)


def test_forbidden_names_the_missing_rule_of_a_namespace() -> None:
    message = (
        'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "t"'
    )
    error = error_from_status(Status(code=403, reason="Forbidden", message=message))
    assert isinstance(error, Forbidden)
    assert error.rule is not None
    assert (error.rule.verb, error.rule.group, error.rule.resource, error.rule.namespace) == (
        "list",
        "",
        "pods",
        "t",
    )
    assert 'missing rule: {apiGroups: [""], resources: ["pods"], verbs: ["list"]}' in str(error)
    assert 'Role in namespace "t"' in str(error)


def test_forbidden_names_the_missing_rule_of_the_cluster() -> None:
    message = 'foos.ex.io "a" is forbidden: User "j" cannot patch resource "foos/status" in API group "ex.io" at the cluster scope'
    error = error_from_status(Status(code=403, reason="Forbidden", message=message))
    assert str(error).endswith(
        '{apiGroups: ["ex.io"], resources: ["foos/status"], verbs: ["patch"]} in a ClusterRole'
    )


def test_forbidden_names_the_missing_path() -> None:
    message = 'forbidden: User "jane" cannot get path "/metrics"'
    error = error_from_status(Status(code=403, reason="Forbidden", message=message))
    assert 'nonResourceURLs: ["/metrics"]' in str(error)


def test_forbidden_by_admission_names_no_rule() -> None:
    message = 'pods "a" is forbidden: exceeded quota: q'
    error = error_from_status(Status(code=403, reason="Forbidden", message=message))
    assert isinstance(error, Forbidden)
    assert error.rule is None
    assert str(error) == message


def test_apply_conflicts_list_each_field() -> None:
    causes = [
        StatusCause(reason="FieldManagerConflict", message='conflict with "m1"', field=".data.a"),
        StatusCause(reason="FieldManagerConflict", message='conflict with "up d" using v1', field=".data.b"),
    ]
    status = Status(code=409, reason="Conflict", message="Apply failed", details=StatusDetails(causes=causes))
    error = error_from_status(status)
    assert isinstance(error, Conflict)
    assert [(conflict.field, conflict.manager) for conflict in error.fields] == [
        (".data.a", "m1"),
        (".data.b", "up d"),
    ]
    assert "apply with force" in str(error)


def test_a_stale_write_conflicts_in_no_field() -> None:
    error = error_from_status(Status(code=409, reason="Conflict", message="the object has been modified"))
    assert isinstance(error, Conflict)
    assert list(error.fields) == []


def test_retry_after_comes_from_the_header_or_the_details() -> None:
    status = Status(code=429, reason="TooManyRequests", details=StatusDetails(retry_after_seconds=7))
    assert error_from_status(status).retry_after == 7
    assert error_from_status(status, retry_after=2).retry_after == 2
    assert isinstance(error_from_status(status), TooManyRequests)


def test_all_errors_have_one_base_class() -> None:
    assert issubclass(ApiError, KubewrightError)
    assert issubclass(ConnectionFailed, KubewrightError)
    assert issubclass(TimedOut, TimeoutError)
