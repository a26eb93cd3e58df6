"""Defaults of Pod specs, alone and inside templates."""

from typing import Any

from kubewright.devserver.objects import Wire

DEFAULT_MODE = 0o644
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_MODED = ("secret", "configMap", "downwardAPI", "projected")


def default_pod_spec(spec: Wire) -> None:
    """Fill in what a Pod's author may leave out."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("securityContext", {})
    if spec.get("serviceAccountName") and not spec.get("serviceAccount"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount") and not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            default_container(container, host_network=bool(spec.get("hostNetwork")))


def default_container(container: Wire, *, host_network: bool = False) -> None:
    """Fill in what a container's author may leave out."""
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))
    container.setdefault("resources", {})
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network and not port.get("hostPort"):
            port["hostPort"] = port["containerPort"]
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in _PROBES:
        if container.get(name):
            _default_probe(container[name])
    for name in _HOOKS:
        hook = (container.get("lifecycle") or {}).get(name)
        if hook and hook.get("httpGet"):
            _default_http(hook["httpGet"])
    _default_requests(container["resources"])


def _pull_policy(image: str) -> str:
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if not digest and tag in ("", "latest") else "IfNotPresent"


def _default_requests(resources: Wire) -> None:
    limits: dict[str, Any] = resources.get("limits") or {}
    missing = {name: value for name, value in limits.items() if name not in (resources.get("requests") or {})}
    if missing:
        resources["requests"] = {**(resources.get("requests") or {}), **missing}


def _default_probe(probe: Wire) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    if probe.get("httpGet"):
        _default_http(probe["httpGet"])
    if probe.get("grpc"):
        probe["grpc"].setdefault("service", "")


def _default_http(action: Wire) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


def _default_volume(volume: Wire) -> None:
    sources = [name for name in volume if name != "name"]
    if not sources:
        volume["emptyDir"] = {}
    for kind in _MODED:
        if volume.get(kind) is not None:
            volume[kind].setdefault("defaultMode", DEFAULT_MODE)
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    for source in (volume.get("projected") or {}).get("sources") or ():
        token = source.get("serviceAccountToken")
        if token is not None:
            token.setdefault("expirationSeconds", 3600)
        _default_downward_items(source.get("downwardAPI"))
    _default_downward_items(volume.get("downwardAPI"))
    if volume.get("ephemeral") is not None:
        default_claim_spec(volume["ephemeral"].setdefault("volumeClaimTemplate", {}).setdefault("spec", {}))


def _default_downward_items(source: Wire | None) -> None:
    for item in (source or {}).get("items") or ():
        if item.get("fieldRef") is not None:
            item["fieldRef"].setdefault("apiVersion", "v1")


def default_claim_spec(spec: Wire) -> None:
    """Fill in what a volume claim's author may leave out."""
    spec.setdefault("volumeMode", "Filesystem")
