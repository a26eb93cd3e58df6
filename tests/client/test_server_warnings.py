"""The server's warnings reach the logger, each once."""

import logging

import pytest

from kubewright.client.server_warnings import REMEMBERED, WarningLog, parse_warnings


def test_a_warning_is_unquoted() -> None:
    assert parse_warnings(r'299 - "unknown field \"spec.unk\""') == ['unknown field "spec.unk"']


def test_several_warnings_share_a_header() -> None:
    assert parse_warnings('299 - "one, two", 299 - "three"') == ["one, two", "three"]


def test_other_codes_are_left_out() -> None:
    assert parse_warnings('199 - "stale"') == []


def test_a_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    log = WarningLog()
    with caplog.at_level(logging.WARNING, logger="kubewright.client"):
        log.deliver(['299 - "old version"'], "get foos a")
        log.deliver(['299 - "old version"'], "get foos b")
    assert [record.getMessage() for record in caplog.records] == ["the API server warns: old version"]


def test_remembered_warnings_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    log = WarningLog()
    for number in range(REMEMBERED + 1):
        log.deliver([f'299 - "warning {number}"'], "")
    caplog.clear()
    log.deliver(['299 - "warning 0"'], "")
    log.deliver([f'299 - "warning {REMEMBERED}"'], "")
    assert [record.getMessage() for record in caplog.records] == ["the API server warns: warning 0"]
