"""Documents as YAML: the same text for the same declarations."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from kubewright.api import JsonObject

MARK = "Rendered by kubewright from the operator's declarations: change those, then render again."
"""Marks a generated file, in one of its first two lines: only files with it are replaced."""
HEADER = f"# {MARK}\n"
"""The first line of a generated YAML file."""


class _Dumper(yaml.SafeDumper):
    """A YAML dumper without anchors: a document must be readable by itself."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write repeated values out."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Write text of several lines as a block."""
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def to_yaml(documents: Iterable[JsonObject]) -> str:
    """Write several documents, each with a document marker."""
    return "".join(f"---\n{plain_yaml(document)}" for document in documents)


def plain_yaml(value: Any) -> str:
    """Write one value, keeping the order of its keys."""
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=120, allow_unicode=True
    )


def file_name(document: JsonObject) -> str:
    """Return the file name of a document: kind and name, in lower case."""
    return f"{document['kind'].lower()}-{document['metadata']['name']}.yaml"


def files_of(documents: Sequence[JsonObject]) -> dict[str, JsonObject]:
    """Return a file name for each document; the namespace is added where names collide."""
    taken = Counter(map(file_name, documents))
    files: dict[str, JsonObject] = {}
    for document in documents:
        name = file_name(document)
        if taken[name] > 1:
            metadata = document["metadata"]
            apart = metadata.get("namespace") or document["apiVersion"].rpartition("/")[2]
            name = f"{name.removesuffix('.yaml')}-{apart}.yaml"
        files[name] = document
    return files
