"""Write the CRDs that tests/scaffold/external is run on, from the originals of their projects.

    tools/reduce_crds.py FILE... --output-dir tests/scaffold/external/crds

Only facts are kept: names, types, bounds, patterns, list types, defaults. Descriptions, printer columns, CEL rules and
labels are left out, and texts inside defaults become "text".
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kubewright.documents import read_yaml

PROSE = frozenset({"description", "title", "example", "externalDocs", "x-kubernetes-validations"})
LEFT_OUT = frozenset({"additionalPrinterColumns", "deprecationWarning"})
WIDTH = 110
APPROVAL = "api-approved.kubernetes.io"


def reduced(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a CRD without prose."""
    metadata: dict[str, Any] = {"name": definition["metadata"]["name"]}
    if approval := definition["metadata"].get("annotations", {}).get(APPROVAL):
        metadata["annotations"] = {APPROVAL: approval}
    spec = {key: value for key, value in definition["spec"].items() if key != "conversion"}
    spec["versions"] = [_version(version) for version in spec["versions"]]
    return {
        "apiVersion": definition["apiVersion"],
        "kind": definition["kind"],
        "metadata": metadata,
        "spec": spec,
    }


def _version(version: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in version.items() if key not in LEFT_OUT}
    kept["schema"] = {"openAPIV3Schema": schema(version["schema"]["openAPIV3Schema"])}
    return kept


def schema(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without prose, everything below it too."""
    found: dict[str, Any] = {}
    for keyword, value in node.items():
        if keyword in PROSE:
            continue
        if keyword == "properties":
            value = {name: schema(inner) for name, inner in value.items()}
        elif keyword in ("items", "additionalProperties", "not") and isinstance(value, dict):
            value = schema(value)
        elif keyword in ("anyOf", "oneOf", "allOf"):
            value = [schema(inner) for inner in value]
        elif keyword == "default":
            value = _without_sentences(value)
        found[keyword] = value
    return found


def _without_sentences(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_sentences(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_sentences(item) for item in value]
    return "text" if isinstance(value, str) and " " in value else value


def text(value: Any, indent: str = "") -> str:
    """Return a value as JSON, with what fits into one line in one line."""
    line = json.dumps(value, sort_keys=True)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    deeper = f"{indent} "
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"{deeper}{text(item, deeper)}" for item in value) + f"\n{indent}]"
    lines = [f"{deeper}{json.dumps(key)}: {text(value[key], deeper)}" for key in sorted(value)]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--output-dir", type=Path, required=True)
    options = parser.parse_args(arguments)
    options.output_dir.mkdir(parents=True, exist_ok=True)
    for file in options.files:
        for document in read_yaml(file.read_bytes()):
            if document.value and document.value.get("kind") == "CustomResourceDefinition":
                definition = reduced(document.value)
                (options.output_dir / f"{definition['metadata']['name']}.json").write_text(
                    f"{text(definition)}\n"
                )


if __name__ == "__main__":
    main()
