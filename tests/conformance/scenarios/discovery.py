"""What is served, and everything else that is no object."""

import json
from typing import Any

from conformance_exchange import Step

V2 = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}
BOTH = {
    "Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
}
TAGS = ("vary", "etag", "cache-control")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
ONSTART = "kube-aggregator.kubernetes.io/automanaged%3Donstart"
GROUPS = (
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "certificates.k8s.io/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "networking.k8s.io/v1",
    "node.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
    "storagemigration.k8s.io/v1",
)

OWN = ("k8s.io", "apps", "batch", "autoscaling", "policy")
# Groups that the embedded server leaves out whole.
ABSENT = ("internal.apiserver.k8s.io",)


def builtin(group: str) -> bool:
    return group.endswith(OWN) and group not in ABSENT


def groups(body: Any, values: Any) -> Any:
    """Leave out the groups of custom resources, which other scenarios bring and take away."""
    return [item for item in body["groups"] if builtin(item["name"])]


def aggregated_groups(body: Any, values: Any) -> Any:
    return [item for item in body["items"] if builtin(item["metadata"].get("name", ""))]


def documents(body: Any, values: Any) -> Any:
    """List the documents there are; hashes are those of other texts."""
    paths = json.loads(body)["paths"]
    shown = {
        path: entry["serverRelativeURL"].partition("=")[0]
        for path, entry in paths.items()
        if path == "api/v1" or (path.count("/") == 2 and builtin(path.split("/")[1]))
    }
    return dict(sorted(shown.items()))


def described(body: Any, values: Any) -> Any:
    """Show the parts of a document that clients act on, without its texts."""
    schemas = body["components"]["schemas"]
    spec = schemas["io.k8s.api.apps.v1.DeploymentSpec"]
    patch = body["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    return {
        "openapi": body["openapi"],
        "kinds": schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"],
        "fields": sorted(spec["properties"]),
        "required": spec["required"],
        "types": {name: item.get("type") for name, item in spec["properties"].items()},
        "patch": {key: patch[key] for key in ("x-kubernetes-action", "x-kubernetes-group-version-kind")},
        "content": sorted(name for name in patch["requestBody"]["content"] if "cbor" not in name),
        "parameters": sorted(item["name"] for item in patch["parameters"]),
    }


def swagger(body: Any, values: Any) -> Any:
    kind = body["definitions"]["io.k8s.api.apps.v1.Deployment"]
    return {
        "swagger": body["swagger"],
        "fields": sorted(kind["properties"]),
        "kinds": kind["x-kubernetes-group-version-kind"],
    }


def names(body: Any, values: Any) -> Any:
    return sorted(item["metadata"]["name"] for item in body["items"])


def system_names(body: Any, values: Any) -> Any:
    """List the roles that come with a cluster."""
    own = ("system:", "admin", "edit", "view", "cluster-admin")
    return [name for name in names(body, values) if name.startswith(own)]


def service(body: Any, values: Any) -> Any:
    """Leave out the port that the server happens to listen on."""
    body["spec"]["ports"][0].pop("targetPort")
    return unowned(body, values)


def unowned(body: Any, values: Any) -> Any:
    """Leave out who owns the fields of what the server made itself."""
    for item in body.get("items", [body]):
        item["metadata"].pop("managedFields", None)
    return body


def version(body: Any, values: Any) -> Any:
    return {"fields": sorted(body), "number": [body["major"], body["minor"]]}


STEPS = [
    Step("core-versions", "GET", "/api", also=TAGS),
    Step("groups", "GET", "/apis", pick=groups, also=TAGS),
    Step("groups-aggregated", "GET", "/apis", headers=V2, pick=aggregated_groups, also=TAGS),
    Step("groups-aggregated-both", "GET", "/apis", headers=BOTH, pick=aggregated_groups),
    Step("documents", "GET", "/openapi/v3", pick=documents),
    Step("document", "GET", "/openapi/v3/apis/apps/v1", pick=described),
    Step("swagger", "GET", "/openapi/v2", pick=swagger),
    Step("version", "GET", "/version", pick=version),
    Step(
        "first-namespaces",
        "GET",
        "/api/v1/namespaces?fieldSelector=metadata.name%3Dkube-system",
        pick=unowned,
    ),
    Step("first-service", "GET", "/api/v1/namespaces/default/services/kubernetes", pick=service),
    Step("first-priorities", "GET", "/apis/scheduling.k8s.io/v1/priorityclasses", pick=names),
    Step(
        "first-priority",
        "GET",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
        pick=unowned,
    ),
    Step("first-roles", "GET", f"{RBAC}/clusterroles", pick=system_names),
    Step("first-bindings", "GET", f"{RBAC}/clusterrolebindings", pick=system_names),
    Step("first-role", "GET", f"{RBAC}/clusterroles/system:discovery", pick=unowned),
    Step("first-services", "GET", f"{SERVICES}?labelSelector={ONSTART}", pick=names),
    Step("first-service-entry", "GET", f"{SERVICES}/v1.apps", pick=unowned),
    Step("core-aggregated", "GET", "/api", headers=V2),
    Step("core-resources", "GET", "/api/v1"),
    Step("unknown-core-version", "GET", "/api/v2"),
    Step("group", "GET", "/apis/apps"),
    Step("group-of-two-versions", "GET", "/apis/autoscaling"),
    Step("unknown-group", "GET", "/apis/nope"),
    Step("unknown-version", "GET", "/apis/apps/v9"),
    *(Step(f"resources-{version.replace('/', '-')}", "GET", f"/apis/{version}") for version in GROUPS),
    Step("core-aggregated-both", "GET", "/api", headers=BOTH),
    Step("livez", "GET", "/livez"),
    Step("readyz", "GET", "/readyz"),
    Step("healthz", "GET", "/healthz"),
    Step("healthz-ping", "GET", "/healthz/ping"),
    Step("readyz-unknown", "GET", "/readyz/nope"),
    Step("openapi-unknown", "GET", "/openapi/v3/apis/nope/v1"),
    Step("post-to-discovery", "POST", "/api", {}),
    Step("post-to-version", "POST", "/version", {}),
]
