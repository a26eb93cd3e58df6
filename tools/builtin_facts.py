"""Facts about the built-in kinds: read from OpenAPI, discovery and Go sources, kept without descriptions."""

import json
import lzma
import re
import urllib.request
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

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
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\t(?:(\w+)\s+)?(\S.*?)\s+`[^`]*json:\"([^\"]*)\"")
_REFERENCE = re.compile(r'"\$ref": "#/components/schemas/([^"]+)"')


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
        path.write_bytes(lzma.compress(text.encode(), preset=9))


def refresh(known: Facts, openapi: str, discovery: str, go: str) -> Facts:
    schemas: dict[str, dict[str, Any]] = {}
    resources: dict[str, list[dict[str, Any]]] = {}
    for module, (group, version) in GROUPS.items():
        schemas |= read(openapi, group, version, "_openapi.json")["components"]["schemas"]
        found = read(discovery, group, version, ".json")["resources"]
        resources[module] = [{key: item[key] for key in KEPT if key in item} for item in found]
    wanted = reachable(schemas, resources)
    return Facts(resources, wanted, go_pointers(Path(go), wanted) if go else known.pointers)


def read(source: str, group: str, version: str, ending: str) -> dict[str, Any]:
    """Read one document from a folder or from a server."""
    if "://" in source:
        with urllib.request.urlopen(
            f"{source}/apis/{group}/{version}" if group else f"{source}/api/{version}"
        ) as answer:
            return json.load(answer)
    name = f"apis__{group}__{version}" if group else f"api__{version}"
    return json.loads((Path(source) / f"{name}{ending}").read_text())


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
            pending += _REFERENCE.findall(json.dumps(kept[name]))
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


def go_pointers(modules: Path, wanted: dict[str, Any]) -> dict[str, list[str]]:
    """Return per schema the fields that are pointers in Go."""
    parsed: dict[Path, dict[str, str]] = {}
    found: dict[str, list[str]] = {}
    for name in wanted:
        package, _, type_name = name.rpartition(".")
        folder = go_folder(modules, package)
        if folder is None:
            continue
        if folder not in parsed:
            sources = (
                path for path in sorted(folder.glob("*types*.go")) if not path.name.endswith("_test.go")
            )
            parsed[folder] = dict(_STRUCT.findall("\n".join(path.read_text() for path in sources)))
        pointers = sorted(struct_pointers(parsed[folder], type_name))
        if pointers:
            found[name] = pointers
    return found


def go_folder(modules: Path, package: str) -> Path | None:
    """Return the folder of a Go package: `io.k8s.api.apps.v1` is `api@v.../apps/v1`."""
    module, _, rest = package.removeprefix("io.k8s.").partition(".")
    folders = sorted(modules.glob(f"{module}@v*/{rest.replace('.', '/')}"))
    return folders[-1] if folders else None


def struct_pointers(structs: dict[str, str], name: str) -> set[str]:
    found: set[str] = set()
    for line in structs.get(name, "").split("\n"):
        match = _FIELD.match(line)
        if not match:
            continue
        go_type, tag = match[2], match[3]
        wire, *options = tag.split(",")
        if "inline" in options:
            found |= struct_pointers(structs, go_type)
        elif go_type.startswith("*"):
            found.add(wire)
    return found
