"""Objects that the tests of the verbs write."""

from typing import Any

from kubewright.api import Meta, kind_of
from kubewright.api.builtin import core_v1

MAPS = kind_of(core_v1.ConfigMap)


def config_map(namespace: str, name: str = "a", **data: str) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(Meta(name, namespace=namespace, labels={"app": "test"}), data=data or {"x": "1"})


def deployment(namespace: str, name: str = "web", replicas: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "busybox"}]},
            },
        },
    }
