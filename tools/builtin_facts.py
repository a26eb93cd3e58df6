"""Facts about the built-in kinds: read from OpenAPI, discovery and Go sources, kept without descriptions."""

import json
import lzma
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from go_sources import GoField, Sources

GROUPS = {
    "core_v1": ("", "v1"),
    "apps_v1": ("apps", "v1"),
    "batch_v1": ("batch", "v1"),
    "rbac_v1": ("rbac.authorization.k8s.io", "v1"),
    "coordination_v1": ("coordination.k8s.io", "v1"),
    "events_v1": ("events.k8s.io", "v1"),
    "apiextensions_v1": ("apiextensions.k8s.io", "v1"),
    "admissionregistration_v1": ("admissionregistration.k8s.io", "v1"),
    "networking_v1": ("networking.k8s.io", "v1"),
    "policy_v1": ("policy", "v1"),
    "autoscaling_v1": ("autoscaling", "v1"),
    "autoscaling_v2": ("autoscaling", "v2"),
    "authentication_v1": ("authentication.k8s.io", "v1"),
    "authorization_v1": ("authorization.k8s.io", "v1"),
    "storage_v1": ("storage.k8s.io", "v1"),
    "discovery_v1": ("discovery.k8s.io", "v1"),
    "scheduling_v1": ("scheduling.k8s.io", "v1"),
    "certificates_v1": ("certificates.k8s.io", "v1"),
}
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
META_TYPES = ("LabelSelector", "LabelSelectorRequirement", "DeleteOptions", "Preconditions")
KEPT = ("name", "namespaced", "kind", "group", "version", "shortNames", "categories")
REFERENCE = re.compile(r'"\$ref": "#/components/schemas/([^"]+)"')


@dataclass
class Facts:
    """What the modules are written from."""

    resources: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    pointers: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> "Facts":
        return cls(**json.loads(lzma.decompress(path.read_bytes())))

    def save(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        # The bytes depend on the version of the compressor: leave the file alone if its content is the same.
        if not path.exists() or lzma.decompress(path.read_bytes()) != text.encode():
            path.write_bytes(lzma.compress(text.encode(), preset=9))


def refresh(sources: Sources) -> Facts:
    """Read the facts from the Go sources of a release."""
    schemas: dict[str, dict[str, Any]] = {}
    resources: dict[str, list[dict[str, Any]]] = {}
    for module, (group, version) in GROUPS.items():
        schemas |= sources.openapi(group, version)["components"]["schemas"]
        found = sources.discovery(group, version)["resources"]
        resources[module] = [{key: item[key] for key in KEPT if key in item} for item in found]
    wanted = reachable(schemas, resources)
    return Facts(resources, wanted, go_pointers(sources, wanted))


def reachable(schemas: dict[str, Any], resources: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Keep the schemas of the served kinds and what they refer to, bare."""
    kinds = {
        (item.get("group", GROUPS[module][0]), item.get("version", GROUPS[module][1]), item["kind"])
        for module, found in resources.items()
        for item in found
        if not item["kind"].endswith("Options")
    }
    pending = [META + name for name in META_TYPES]
    for name, schema in schemas.items():
        served = {
            (gvk["group"], gvk["version"], gvk["kind"])
            for gvk in schema.get("x-kubernetes-group-version-kind", ())
        }
        if served & kinds and not name.startswith(META):
            pending.append(name)
    kept: dict[str, Any] = {}
    while pending:
        name = pending.pop()
        if name not in kept:
            kept[name] = bare(schemas[name])
            pending += REFERENCE.findall(json.dumps(kept[name]))
    return kept


def bare(schema: Any) -> Any:
    """Drop the description texts; a property may itself be called `description`."""
    if isinstance(schema, list):
        return [bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: bare(value) for key, value in schema.items() if key not in ("description", "properties")}
    if "properties" in schema:
        kept["properties"] = {name: bare(value) for name, value in schema["properties"].items()}
    return kept


def go_pointers(sources: Sources, wanted: dict[str, Any]) -> dict[str, list[str]]:
    """Return per schema the fields that are pointers in Go, because OpenAPI does not say it."""
    parsed: dict[str, dict[str, list[GoField]]] = {}
    found: dict[str, list[str]] = {}
    for name in wanted:
        # `io.k8s.api.apps.v1.Deployment` is Deployment in the package k8s.io/api/apps/v1.
        package, _, type_name = name.rpartition(".")
        path = f"k8s.io/{package.removeprefix('io.k8s.').replace('.', '/')}"
        if path not in parsed:
            parsed[path] = {}
            for file in sources.files(path):
                parsed[path] |= file.structs
        if pointers := sorted(struct_pointers(parsed[path], type_name)):
            found[name] = pointers
    return found


def struct_pointers(structs: dict[str, list[GoField]], name: str) -> set[str]:
    """Return the names of the pointers among a struct's fields."""
    found: set[str] = set()
    for item in structs.get(name, ()):
        if item.inline:
            found |= struct_pointers(structs, item.go_type)
        elif item.go_type.startswith("*"):
            found.add(item.name)
    return found
