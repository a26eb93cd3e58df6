"""The diff of one object, as `apply --dry-run=server`, `deploy --dry-run=server` and `plan` show it."""

from typing import Any

from kubewright.cli.documents import diff

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def secret(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, **fields}


def changed(before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[str]:
    """Return the lines that differ, without the names of the two sides."""
    lines = [line for line in diff("secret/login", before, after) if line[:1] in "+-"]
    return [line for line in lines if not line.startswith(("+++", "---"))]


def test_a_value_of_a_secret_that_changes_is_shown_as_changed_whatever_its_length() -> None:
    before = secret(data={"password": "aHVudGVyMg==", "user": "YQ=="})
    assert changed(before, secret(data={"password": "bGV0bWUxbg==", "user": "YQ=="})) == [
        "-  password: '*** (before)'",
        "+  password: '*** (after)'",
    ]
    assert changed(before, secret(data={"password": "aHVudGVyMg==", "user": "YQ=="})) == []


def test_keys_that_a_secret_gains_or_loses_are_shown_without_their_values() -> None:
    assert changed(secret(data={"old": "YQ=="}), secret(data={"new": "YQ=="})) == [
        "-  old: '***'",
        "+  new: '***'",
    ]


def test_a_secret_that_is_created_or_deleted_is_shown_without_its_values() -> None:
    for lines in (changed(None, secret(stringData={"a": "b"})), changed(secret(stringData={"a": "b"}), None)):
        assert [line[1:] for line in lines if line[1:4] == "  a"] == ["  a: '***'"]


def test_the_last_applied_annotation_of_a_secret_is_not_shown() -> None:
    def applied(text: str) -> dict[str, Any]:
        return secret(metadata={"name": "login", "annotations": {LAST_APPLIED: text}})

    lines = changed(applied('{"data":{"a":"b"}}'), applied('{"data":{"a":"c"}}'))
    assert lines == [f"-    {LAST_APPLIED}: '*** (before)'", f"+    {LAST_APPLIED}: '*** (after)'"]
    assert changed(applied("x"), applied("x")) == []
