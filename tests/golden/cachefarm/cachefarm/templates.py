"""The objects that a cache cluster consists of, as plain dictionaries."""

import json

import yaml

from cachefarm.constants import CLUSTER_LABEL, MANAGED_BY, OPERATOR, PORT

EVICTION = {
    "lru": "allkeys-lru",
    "lfu": "allkeys-lfu",
    "none": "noeviction",
}

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
spec:
  replicas: {replicas}
  selector:
    matchLabels:
      {label}: {name}
  template:
    metadata:
      labels:
        {label}: {name}
    spec:
      containers:
      - name: cache
        image: {image}
        args: ["/etc/cache/cache.conf"]
        ports:
        - name: cache
          containerPort: {port}
        resources:
          limits:
            memory: {memory}
        volumeMounts:
        - name: config
          mountPath: /etc/cache
      volumes:
      - name: config
        configMap:
          name: {name}-config
"""


def common_labels(name):
    """Return the labels of every child."""
    return {CLUSTER_LABEL: name, MANAGED_BY: OPERATOR}


def image_of(spec):
    """Return the image, which either the spec names or its version implies."""
    if spec.get("image"):
        return spec["image"]
    return f"registry.example.com/cache:{spec.get('version', '7.2')}"


def memory_in_bytes(text):
    """Return a memory limit such as 256Mi in bytes."""
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
    for unit, factor in units.items():
        if text.endswith(unit):
            return int(text[: -len(unit)]) * factor
    return int(text)


def render_config(name, spec):
    """Return the ConfigMap with the configuration file."""
    lines = [
        f"port {PORT}",
        f"maxmemory {memory_in_bytes(spec.get('memory', '64Mi'))}",
        f"maxmemory-policy {EVICTION[spec.get('eviction', 'lru')]}",
    ]
    for key, value in sorted((spec.get("config") or {}).items()):
        lines.append(f"{key} {value}")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-config", "labels": common_labels(name)},
        "data": {
            "cache.conf": "\n".join(lines) + "\n",
            "settings.json": json.dumps(spec.get("config") or {}, sort_keys=True),
        },
    }


def render_deployment(name, spec):
    """Return the Deployment of the cache servers."""
    text = DEPLOYMENT.format(
        name=name,
        replicas=spec.get("replicas", 1),
        image=image_of(spec),
        label=CLUSTER_LABEL,
        port=PORT,
        memory=spec.get("memory", "64Mi"),
    )
    deployment = yaml.safe_load(text)
    deployment["metadata"]["labels"] = common_labels(name)
    return deployment


def render_service(name):
    """Return the Service in front of the cache servers."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": common_labels(name)},
        "spec": {
            "selector": {CLUSTER_LABEL: name},
            "ports": [{"name": "cache", "port": PORT, "targetPort": "cache"}],
        },
    }


def endpoint_of(name, namespace):
    """Return the address at which clients reach the cluster."""
    return f"{name}.{namespace}.svc:{PORT}"
