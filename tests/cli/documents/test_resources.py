"""Files of objects that users pass: a file that contains none is reported in one line."""

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
        (b"a: b\nc: \xff\n", r"x\.yaml:2 is not valid UTF-8"),
        (b"a: [", "is not valid YAML"),
        (b"", "there are no objects in it"),
        (b"# nothing yet\n---\n", "there are no objects in it"),
        (b"- 1\n", "a document without apiVersion and kind"),
        (b"apiVersion: 1\nkind: Pod\n", "a document without apiVersion and kind"),
        (b"apiVersion: v1\nkind: List\nitems: [1]\n", "a document without apiVersion and kind"),
        (b"apiVersion: v1\nkind: Pod\nmetadata: x\n", "a Pod without metadata.name"),
        (
            b"apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n",
            r"a Pod whose metadata\.name is 5: put it in quotes",
        ),
        (
            b"apiVersion: v1\nkind: Pod\nmetadata: {name: n}\n",
            r"a Pod whose metadata\.name is false: put it in quotes",
        ),
        (b"a: 1\nb: 2\na: 3\n", r'x\.yaml is not valid YAML: line 3: key "a" already set in map'),
        (b'{"a": 1, "a": 2}', r'x\.yaml is not valid YAML: line 1: key "a" already set in map'),
        (b"[" * 100_000, "is not valid YAML: exceeded max depth of 200"),
        (b'{"a":' * 100_000, "is not valid YAML: exceeded max depth of 200"),
        (b"a: &a [*a]", "is not valid YAML: anchor 'a' value contains itself"),
    ],
)
def test_a_file_that_contains_no_objects_is_an_error(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(content)
    with pytest.raises(ResourceError, match=message):
        read_documents([tmp_path / "x.yaml"])


def test_a_directory_without_objects_is_an_error(tmp_path: Path) -> None:
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


def bomb(line: str) -> bytes:
    """Return a document of ten lines, each of which repeats the one before it ten times."""
    lines = [
        "a0: &a0 {x: 1}",
        *(line.format(n=n, again=", ".join([f"*a{n - 1}"] * 10)) for n in range(1, 10)),
    ]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    "content",
    [
        bomb("a{n}: &a{n} [{again}]"),
        bomb("a{n}: &a{n} {{<<: [{again}]}}"),
        b"long: &long " + b"x" * 1_000_000 + b"\nmany: [" + b"*long, " * 1_000 + b"]\n",
        (b"---\nlong: &long [" + b"x, " * 10_000 + b"]\nmany: [*long, *long, *long, *long]\n") * 4,
    ],
    ids=["sequences", "merge keys", "long text", "several documents"],
)
def test_a_file_whose_aliases_expand_too_far_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(content)
    with pytest.raises(ResourceError, match="is not valid YAML: document contains excessive aliasing"):
        read_documents([tmp_path / "x.yaml"])


def test_aliases_are_expanded(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, labels: &l {a: b}, annotations: *l}\n"
    (tmp_path / "x.yaml").write_text(f"{text}---\n{text}")
    metadata = {"name": "notes", "labels": {"a": "b"}, "annotations": {"a": "b"}}
    assert (
        read_documents([tmp_path / "x.yaml"])
        == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}] * 2
    )


def test_values_are_read_as_kubectl_reads_them(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(f"{NOTES}data: {{day: 2024-01-01, ports: 22:22, on: yes, 1: 0o10}}\n")
    (document,) = read_documents([tmp_path / "x.yaml"])
    assert document["data"] == {"day": "2024-01-01", "ports": "22:22", "true": True, "1": 8}


def test_json_may_be_indented_with_tabs(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(
        '{\n\t"apiVersion": "v1",\n\t"kind": "Pod",\n\t"metadata": {"name": "n"}\n}\n'
    )
    assert read_documents([tmp_path / "x.json"]) == [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}}
    ]
