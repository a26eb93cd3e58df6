"""Documents as YAML: the same text for the same declarations."""

from collections.abc import Iterable
from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Write no anchors: a document must be readable by itself."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write repeated values out."""
        return True


def to_yaml(documents: Iterable[dict[str, Any]]) -> str:
    """Write documents, one after the other, each with its own mark."""
    texts = [
        yaml.dump(
            document, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=120, allow_unicode=True
        )
        for document in documents
    ]
    return "".join(f"---\n{text}" for text in texts)


def file_name(document: dict[str, Any]) -> str:
    """Name the file of a document: kind and name, in lower case."""
    return f"{document['kind'].lower()}-{document['metadata']['name']}.yaml"
