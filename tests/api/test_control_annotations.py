"""Annotations that pause objects and request reconciles."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from kubewright.api import (
    NO_CONTROL_ANNOTATIONS,
    PAUSED,
    RECONCILE_AT,
    ControlAnnotations,
    control_annotations,
    control_patch,
    parse_reconcile_at,
    raw_object,
)


def found(annotations: Any) -> ControlAnnotations:
    document = {"metadata": {"name": "a", "annotations": annotations}}
    return control_annotations(raw_object(json.dumps(document).encode()).meta)


@pytest.mark.parametrize(
    "annotations",
    [None, {}, {"a": "b" * 50}, {"kubewright.dev/other": "true"}, {"note": "see kubewright.dev/paused"}],
)
def test_other_annotations_control_nothing(annotations: Any) -> None:
    assert found(annotations) is NO_CONTROL_ANNOTATIONS


def test_annotations_that_are_no_texts_control_nothing() -> None:
    raw = raw_object(b'{"metadata":{"name":"a","annotations":{"kubewright.dev/paused":true}}}')
    assert control_annotations(raw.meta) is NO_CONTROL_ANNOTATIONS


def test_a_slash_may_be_written_as_an_escape() -> None:
    raw = raw_object(b'{"metadata":{"name":"a","annotations":{"kubewright.dev\\/paused":"true"}}}')
    assert control_annotations(raw.meta).is_paused


@pytest.mark.parametrize(
    ("value", "is_paused", "is_invalid"),
    [
        ("true", True, False),
        ("false", False, False),
        ("True", False, True),
        ("yes", False, True),
        ("1", False, True),
        ("", False, True),
    ],
)
def test_only_true_pauses(value: str, is_paused: bool, is_invalid: bool) -> None:
    control = found({PAUSED: value})
    assert (control.is_paused, control.invalid_pause) == (is_paused, is_invalid)


def test_times_are_rfc_3339_with_an_offset() -> None:
    assert parse_reconcile_at("2026-01-31T15:04:05+01:00") == datetime(2026, 1, 31, 14, 4, 5, tzinfo=UTC)
    assert parse_reconcile_at("2026-01-31T15:04:05.123456789Z").microsecond == 123457
    for text in ("", "now", "2026-01-31", "2026-01-31T15:04:05", "2026-02-31T15:04:05Z", "1769871845"):
        with pytest.raises(ValueError, match="is not a time of RFC 3339"):
            parse_reconcile_at(text)


def test_the_patches_of_the_actions() -> None:
    now = datetime(2026, 1, 31, 15, 4, 5, 60, tzinfo=timezone(timedelta(hours=1)))
    assert control_patch("pause", now) == {"metadata": {"annotations": {PAUSED: "true"}}}
    assert control_patch("resume", now) == {"metadata": {"annotations": {PAUSED: None}}}
    requested = control_patch("reconcile", now)
    assert requested == {"metadata": {"annotations": {RECONCILE_AT: "2026-01-31T14:04:05.000060Z"}}}
    assert parse_reconcile_at(requested["metadata"]["annotations"][RECONCILE_AT]) == now
