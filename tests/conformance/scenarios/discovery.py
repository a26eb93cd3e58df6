"""What is served, and everything else that is no object."""

from conformance_exchange import Step

V2 = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}
BOTH = {
    "Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
}
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
)

STEPS = [
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
