"""What users give as files of objects: what is no such file is told in one line."""

import io
import sys
from pathlib import Path

import pytest

from kubewright.cli.documents import read_documents
from kubewright.cli.documents.resources import ResourceError

NOTES = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: b\nc: \xff\n", r"x\.yaml:2 is not written in UTF-8"),
        (b"a: [", "is not valid YAML"),
        (b"", "there are no objects in it"),
        (b"# nothing yet\n---\n", "there are no objects in it"),
        (b"- 1\n", "no object: it needs apiVersion and kind"),
        (b"apiVersion: 1\nkind: Pod\n", "no object: it needs apiVersion and kind"),
        (b"apiVersion: v1\nkind: List\nitems: [1]\n", "no object: it needs apiVersion and kind"),
        (b"apiVersion: v1\nkind: Pod\nmetadata: x\n", "a Pod without metadata.name"),
        (b"apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n", "a Pod called 5: put its name in quotes"),
    ],
)
def test_a_file_that_holds_no_objects_is_told(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(content)
    with pytest.raises(ResourceError, match=message):
        read_documents([tmp_path / "x.yaml"])


def test_a_folder_without_objects_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ResourceError, match="there are no objects in it"):
        read_documents([tmp_path])


def test_files_and_standard_input_may_begin_with_a_byte_order_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = NOTES.encode("utf-8-sig")
    (tmp_path / "x.yaml").write_bytes(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    first, second = read_documents([tmp_path / "x.yaml", Path("-")])
    assert first == second == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes"}}
