"""What earlier Kubernetes releases have in their Go sources, as differences to the release of the project.

`tools/generate_devserver_data.py` writes it; `kubewright.devserver.data` reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from go_sources import Sources

JsonObject = Any
FEATURE_TABLES = (
    "k8s.io/kubernetes/pkg/features",
    "k8s.io/apiserver/pkg/features",
    "k8s.io/apiextensions-apiserver/pkg/features",
)
BOOTSTRAP_POLICY = "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"
AGGREGATE_LABEL = "rbac.authorization.k8s.io/aggregate-to-"
# Until this minor version, flow schemas allowed for leader election by Endpoints and ConfigMaps.
LAST_LEADER_ELECTION_BY_ENDPOINTS = 33
# Subresources that Kubernetes publishes in its discovery documents, but serves only if a feature gate is on.
GATED_SUBRESOURCES = {("", "pods", "resize"): "InPlacePodVerticalScaling"}

# Fields that a release drops while a feature gate is off, though no release marks them with that gate.
UNMARKED_FIELDS = {
    "apps/v1.DeploymentStatus": {"terminatingReplicas": [["DeploymentReplicaSetTerminatingReplicas"]]},
    "apps/v1.ReplicaSetStatus": {"terminatingReplicas": [["DeploymentReplicaSetTerminatingReplicas"]]},
    "batch/v1.JobSpec": {"managedBy": [["JobManagedBy"]]},
    "core/v1.PodSpec": {"hostUsers": [["UserNamespacesSupport"]]},
    "core/v1.SecurityContext": {"procMount": [["ProcMountType"]]},
    "core/v1.VolumeProjection": {"podCertificate": [["PodCertificateRequest"]]},
    "discovery/v1.EndpointHints": {"forNodes": [["PreferSameTrafficDistribution"]]},
}
# Marked fields that kube-apiserver does not drop by themselves.
_KEPT_FIELDS = {("core/v1.ContainerStatus", "stopSignal"), ("core/v1.TypedObjectReference", "namespace")}
Marks = dict[str, dict[str, list[list[str]]]]
"""By struct and field: sets of feature gates, of which one set must be on for the field to be kept."""

_GATE = re.compile(r"^\t(?:\w+\.)?([A-Z]\w+):\s*(?:featuregate\.VersionedSpecs)?\{")
_DEFAULT = re.compile(r'(?:version\.MustParse\("1\.(\d+)"\).*?)?Default: (true|false)')
_LEGACY_BETA = re.compile(r"legacyBetaEnabledByDefaultResources = .*?\{(.*?)^\t\}", re.MULTILINE | re.DOTALL)
_RESOURCE = re.compile(r'^\s*(\w+?)(v\d\w*)\.SchemeGroupVersion\.WithResource\("(\w+)"\)', re.MULTILINE)
_MARKER = re.compile(r"^\t//\s*\+featureGate=([\w,]+)")
_TYPE = re.compile(r"^type (\w+) struct")
_JSON_NAME = re.compile(r'json:"([^",]+)')


def feature_defaults(sources: Sources) -> dict[str, bool]:
    """Return the feature gates of a release's API server, with what they are by default."""
    found: dict[str, bool] = {}
    for package in FEATURE_TABLES:
        for file in sorted(sources.package(package).glob("*kube_features.go")):
            found.update(parse_features(file.read_text(), sources.minor))
    return found


def parse_features(text: str, minor: int) -> dict[str, bool]:
    """Read the tables of feature gates in the text of a Go file, as they apply to a minor version."""
    found: dict[str, bool] = {}
    name = ""
    for line in text.split("\n"):
        if match := _GATE.match(line):
            name = match[1]
        if name and (spec := _DEFAULT.search(line)) and int(spec[1] or 0) <= minor:
            found[name] = spec[2] == "true"
    return found


def enabled_minors(defaults: Mapping[int, Mapping[str, bool]]) -> dict[str, list[int]]:
    """Return the minor versions in which each gate is on.

    A gate that a release does not have was removed after its last change, or is not there yet.
    """
    found: dict[str, list[int]] = {}
    for gate in sorted({name for gates in defaults.values() for name in gates}):
        on, minors = False, list[int]()
        for minor, gates in sorted(defaults.items()):
            on = gates.get(gate, on)
            if on:
                minors.append(minor)
        found[gate] = minors
    return found


def legacy_betas(sources: Sources) -> set[tuple[str, str]]:
    """Return the beta versions that a release serves by default, as (first part of the group, version)."""
    text = (sources.package("k8s.io/kubernetes/pkg/controlplane") / "instance.go").read_text()
    block = _LEGACY_BETA.search(text)
    return {(group, version) for group, version, _ in _RESOURCE.findall(block[1])} if block else set()


def gated_fields(sources: Sources, packages: Iterable[tuple[str, str]]) -> Marks:
    """Return the fields that the Go types mark with feature gates.

    `packages` are Go import paths with the short names of the type table.
    """
    found: Marks = {}
    for path, short in packages:
        for file in sorted(sources.package(path).glob("types*.go")):
            struct, gates = "", list[list[str]]()
            for line in file.read_text().split("\n"):
                if match := _TYPE.match(line):
                    struct, gates = match[1], []
                elif match := _MARKER.match(line):
                    gates.append(match[1].split(","))
                elif gates and not line.strip().startswith("//"):
                    if name := _JSON_NAME.search(line):
                        found.setdefault(f"{short}.{struct}", {})[name[1]] = gates
                    gates = []
    return found


def dropped_fields(
    types: JsonObject, features: Mapping[str, bool], own: Marks, others: Sequence[Marks]
) -> JsonObject:
    """Return the fields of a release's types whose feature gates are off, by struct.

    `own` are the marks of the release, `others` those of the other releases: a field is often older than its mark.
    A gate that the release does not have was removed when the field became stable, if the release marks the field
    with it, and otherwise is not there yet.
    """
    found: JsonObject = {}
    for struct, rows in types["structs"].items():
        for field in [row[0] for row in rows if (struct, row[0]) not in _KEPT_FIELDS]:
            unmarked, marks = (item.get(struct, {}).get(field) for item in (UNMARKED_FIELDS, own))
            absent_is_on = not unmarked and bool(marks)
            late = (item for other in others if (item := other.get(struct, {}).get(field)))
            sets = unmarked or marks or next(late, None)
            if sets and not any(all(features.get(gate, absent_is_on) for gate in gates) for gates in sets):
                found.setdefault(struct, []).append(field)
    return found


def bootstrap_roles(sources: Sources) -> list[JsonObject]:
    """Return the roles and bindings that a release creates in an empty cluster, aggregated roles with their rules."""
    folder = sources.package(BOOTSTRAP_POLICY)
    found: list[JsonObject] = []
    for name in ("cluster-roles", "controller-roles"):
        found += _documents(folder / f"{name}.yaml")
    _aggregate(found)
    for name in (
        "cluster-role-bindings",
        "controller-role-bindings",
        "namespace-roles",
        "namespace-role-bindings",
    ):
        found += _documents(folder / f"{name}.yaml")
    return found


def removed_flow_schemas(sources: Sources) -> list[JsonObject]:
    """Return the flow schemas that a release creates in an empty cluster and the present one does not."""
    if sources.minor > LAST_LEADER_ELECTION_BY_ENDPOINTS:
        return []
    accounts = ("endpoint-controller", "endpointslicemirroring-controller")
    manager = {"kind": "User", "user": {"name": "system:kube-controller-manager"}}
    return [
        _flow_schema(
            "endpoint-controller",
            "workload-high",
            150,
            {"": ["endpoints"]},
            [manager, *map(_system_account, accounts)],
        ),
        _flow_schema(
            "workload-leader-election",
            "leader-election",
            200,
            {"": ["endpoints", "configmaps"], "coordination.k8s.io": ["leases"]},
            [_system_account("*")],
        ),
    ]


def _system_account(name: str) -> JsonObject:
    return {"kind": "ServiceAccount", "serviceAccount": {"name": name, "namespace": "kube-system"}}


def _flow_schema(
    name: str, level: str, precedence: int, resources: dict[str, list[str]], subjects: list[JsonObject]
) -> JsonObject:
    """Return a flow schema for reading and writing resources, by their groups."""
    verbs = ["get", "create", "update"]
    rules = [
        {"apiGroups": [group], "namespaces": ["*"], "resources": plurals, "verbs": verbs}
        for group, plurals in resources.items()
    ]
    found = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" and it exists'
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}, "name": name},
        "spec": {
            "distinguisherMethod": {"type": "ByUser"},
            "matchingPrecedence": precedence,
            "priorityLevelConfiguration": {"name": level},
            "rules": [{"resourceRules": rules, "subjects": subjects}],
        },
        "status": {
            "conditions": [{"message": found, "reason": "Found", "status": "False", "type": "Dangling"}]
        },
    }


def _documents(file: Path) -> list[JsonObject]:
    items = [
        item
        for document in yaml.safe_load_all(file.read_text())
        for item in (document["items"] if document["kind"] == "List" else [document])
    ]
    for item in items:
        item["metadata"].pop("creationTimestamp", None)
    return items


def _aggregate(roles: list[JsonObject]) -> None:
    """Fill in the rules of aggregated roles as the controller does, the roles they consist of first."""
    ordered = sorted(roles, key=lambda role: role["metadata"]["name"])
    by_name = {role["metadata"]["name"]: role for role in roles}
    for target in ("view", "edit", "admin"):
        rules = list[JsonObject]()
        for role in ordered:
            if role["metadata"].get("labels", {}).get(f"{AGGREGATE_LABEL}{target}") == "true":
                rules += [rule for rule in role["rules"] or () if rule not in rules]
        by_name[target]["rules"] = rules


def identity(item: JsonObject) -> str:
    """Return the text by which an element of a list is found in another list."""
    if isinstance(item, dict):
        metadata = item.get("metadata", {})
        named = [item.get("group"), item.get("version"), item.get("kind"), item.get("name")]
        if metadata or any(named):
            return json.dumps([*named, metadata.get("namespace"), metadata.get("name")])
    if isinstance(item, list) and item and isinstance(item[0], str):
        return json.dumps(item[0])
    return json.dumps(item, sort_keys=True)


def difference(base: JsonObject, target: JsonObject) -> JsonObject:
    """Return what `kubewright.devserver.data.applied` turns one JSON value into another with.

    None: equal. `{"value": ...}`: replace. `{"fields": {...}, "without": [...]}`: change an object.
    `{"items": [...]}`: a list, whose elements are the number of an element of the base, that number with a
    difference, or `{"value": ...}`.
    """
    if base == target:
        return None
    if isinstance(base, dict) and isinstance(target, dict):
        found: JsonObject = {
            "fields": {
                name: difference(base[name], value) if name in base else {"value": value}
                for name, value in target.items()
                if name not in base or base[name] != value
            }
        }
        if gone := [name for name in base if name not in target]:
            found["without"] = gone
        return found
    if isinstance(base, list) and isinstance(target, list) and base and target:
        return {"items": list(_elements(base, target))}
    return {"value": target}


def _elements(base: Sequence[JsonObject], target: Sequence[JsonObject]) -> Iterable[JsonObject]:
    places = {identity(item): index for index, item in reversed(list(enumerate(base)))}
    for item in target:
        place = places.get(identity(item))
        if place is None:
            yield {"value": item}
        elif base[place] == item:
            yield place
        else:
            yield [place, difference(base[place], item)]
