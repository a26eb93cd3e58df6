"""Objects that the server itself creates: its Service, the network of Services, flow schemas, ConfigMaps."""

from typing import Any

from conformance_exchange import Step

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


def bare(body: Any, _: Any) -> Any:
    """Compare objects without managedFields, which the embedded server does not compute for them."""
    for item in body.get("items", [body]):
        item.get("metadata", {}).pop("managedFields", None)
    return body


def kept(body: Any, _: Any) -> Any:
    """Compare the names of a ConfigMap's keys: the values are those of this server."""
    return {**bare(body, _), "data": sorted(body["data"])}


def port_masked(body: Any, _: Any) -> Any:
    body["spec"]["ports"][0]["targetPort"] = "PORT"
    return bare(body, _)


STEPS = [
    *(
        Step(name, "GET", path, pick=bare)
        for name, path in (
            ("flow-schemas", f"{FLOW}/flowschemas"),
            ("priority-levels", f"{FLOW}/prioritylevelconfigurations"),
            ("service-network", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes"),
            ("address", "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1"),
            ("priority-classes", "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical"),
            ("namespace", "/api/v1/namespaces/kube-node-lease"),
        )
    ),
    Step("service", "GET", "/api/v1/namespaces/default/services/kubernetes", pick=port_masked),
    Step(
        "authentication",
        "GET",
        "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
        pick=kept,
    ),
    Step(
        "token-tracking",
        "GET",
        "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking",
        pick=kept,
    ),
]
