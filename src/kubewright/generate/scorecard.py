"""Scorecard checks of an operator's bundle: those of operator-sdk that need no cluster."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kubewright.api import JsonObject


@dataclass(frozen=True, slots=True)
class ScorecardCheck:
    """One check with its name in operator-sdk, and its findings."""

    suite: str
    name: str
    findings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Return True if there are no findings."""
        return not self.findings


def checks(
    csv: JsonObject, definitions: list[JsonObject], annotations: Mapping[str, str]
) -> list[ScorecardCheck]:
    """Run the basic suite and the OLM suite on the documents of a bundle."""
    examples: list[JsonObject] = json.loads(csv["metadata"]["annotations"].get("alm-examples", "[]"))
    owned: list[JsonObject] = csv["spec"]["customresourcedefinitions"]["owned"]
    return [
        ScorecardCheck("basic", "basic-check-spec", tuple(_without_spec(examples))),
        ScorecardCheck(
            "olm", "olm-bundle-validation", tuple(_invalid(csv, definitions, annotations, owned, examples))
        ),
        ScorecardCheck("olm", "olm-crds-have-validation", tuple(_without_validation(definitions, examples))),
        ScorecardCheck("olm", "olm-crds-have-resources", tuple(_without_resources(owned))),
        ScorecardCheck(
            "olm", "olm-spec-descriptors", tuple(_without_descriptors(definitions, owned, "spec"))
        ),
        ScorecardCheck(
            "olm", "olm-status-descriptors", tuple(_without_descriptors(definitions, owned, "status"))
        ),
    ]


def _without_spec(examples: list[JsonObject]) -> Iterator[str]:
    if not examples:
        yield "there is no sample of any kind"
    for example in examples:
        if example.get("spec") is None:
            yield f"the sample {example['metadata']['name']} of {example['kind']} has no spec"


def _invalid(
    csv: JsonObject,
    definitions: list[JsonObject],
    annotations: Mapping[str, str],
    owned: list[JsonObject],
    examples: list[JsonObject],
) -> Iterator[str]:
    prefix = "operators.operatorframework.io.bundle."
    for name in ("mediatype.v1", "manifests.v1", "metadata.v1", "package.v1", "channels.v1"):
        if not annotations.get(prefix + name):
            yield f"annotations.yaml lacks {prefix}{name}"
    there = {
        (definition["metadata"]["name"], version["name"])
        for definition in definitions
        for version in definition["spec"]["versions"]
    }
    declared = {(each["name"], each["version"]) for each in owned}
    for name, version in sorted(there - declared):
        yield f"{name} {version} is in the bundle but not owned"
    for name, version in sorted(declared - there):
        yield f"{name} {version} is owned but not in the bundle"
    shown = {(example["apiVersion"].partition("/")[2], example["kind"]) for example in examples}
    for each in owned:
        if (each["version"], each["kind"]) not in shown:
            yield f"{each['kind']} {each['version']} has no sample"
    if not any(mode["supported"] for mode in csv["spec"]["installModes"]):
        yield "no install mode is supported"


def _without_validation(definitions: list[JsonObject], examples: list[JsonObject]) -> Iterator[str]:
    for example in examples:
        fields = _schema(definitions, example["kind"], example["apiVersion"].partition("/")[2], "spec")
        for name in sorted(set(example.get("spec") or {}) - set(fields)):
            yield f"spec.{name} of {example['kind']} is in a sample but not in the schema"


def _without_resources(owned: list[JsonObject]) -> Iterator[str]:
    for each in owned:
        if not each.get("resources"):
            yield f"{each['kind']} {each['version']}: no resource is made for it: declare what it owns"


def _without_descriptors(definitions: list[JsonObject], owned: list[JsonObject], part: str) -> Iterator[str]:
    for each in owned:
        described = {entry["path"] for entry in each.get(f"{part}Descriptors", ())}
        fields = _schema(definitions, each["kind"], each["version"], part)
        # A kind may have no status; operator-sdk rejects one without a spec as well.
        if not fields and part == "spec":
            yield f"{each['kind']} {each['version']} has no {part}"
        for name in sorted(set(fields) - described):
            yield f"{part}.{name} of {each['kind']} {each['version']} has no descriptor"


def _schema(definitions: list[JsonObject], kind: str, version: str, part: str) -> JsonObject:
    for definition in definitions:
        for served in definition["spec"]["versions"]:
            if definition["spec"]["names"]["kind"] == kind and served["name"] == version:
                schema = served["schema"]["openAPIV3Schema"]
                return schema.get("properties", {}).get(part, {}).get("properties", {})
    return {}
