"""The metrics Service, RBAC for reading metrics, and the ServiceMonitor."""

from kubewright.api import JsonObject, review_rules
from kubewright.generate.names import Names
from kubewright.generate.rbac import GROUP, RBAC, granted, named

METRICS_PORT = 8443
PORT_NAME = "https"


def metrics(names: Names) -> list[JsonObject]:
    """Render the metrics Service, the role for authorizing requests, and the role for reading metrics."""
    ports = [{"name": PORT_NAME, "port": METRICS_PORT, "protocol": "TCP", "targetPort": "metrics"}]
    return [
        {
            **named("v1", "Service", names.metrics_service, names, names.namespace),
            "spec": {"ports": ports, "selector": names.selector},
        },
        *granted("ClusterRole", names.review_role, [rule.to_wire() for rule in review_rules()], names),
        {
            **named(RBAC, "ClusterRole", names.metrics_reader, names),
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        },
    ]


def monitoring(names: Names, *, reader: str = "") -> list[JsonObject]:
    """Render the ServiceMonitor, and let a ServiceAccount (`namespace/name`) read the metrics where one is given."""
    endpoint: JsonObject = {
        "port": PORT_NAME,
        "scheme": "https",
        "path": "/metrics",
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        # Each replica signs a certificate for itself: the token, not the certificate, keeps others out.
        "tlsConfig": {"insecureSkipVerify": True},
    }
    monitor: JsonObject = {
        **named("monitoring.coreos.com/v1", "ServiceMonitor", names.monitor, names, names.namespace),
        "spec": {"endpoints": [endpoint], "selector": {"matchLabels": names.shared}},
    }
    if not reader:
        return [monitor]
    namespace, _, account = reader.partition("/")
    binding: JsonObject = {
        **named(RBAC, "ClusterRoleBinding", f"{names.metrics_reader}-binding", names),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": names.metrics_reader},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
    return [monitor, binding]
