"""Volumes of Pods: what their author may leave out."""

import re

from kubewright.devserver.objects import JsonObject, items, section

DEFAULT_MODE = 0o644
_LONGEST_IMAGE = 255
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_PART = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_IMAGE = re.compile(
    r"(?:(?P<host>[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?(?::[0-9]+)?|\[[a-fA-F0-9:]+\](?::[0-9]+)?)/)?"
    rf"(?P<path>{_PART.pattern}(?:/{_PART.pattern})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?"
)
_MODED = ("secret", "configMap", "downwardAPI", "projected")
_SOURCE_DEFAULTS: dict[str, JsonObject] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "hostPath": {"type": ""},
}


def pull_policy(image: str) -> str:
    """Tell when an image is pulled, from what its name says; one that is no name says nothing."""
    found = _IMAGE.fullmatch(image)
    if found is None or _IDENTIFIER.fullmatch(image) or len(image) > _LONGEST_IMAGE:
        return "IfNotPresent"
    host, path, tag, digest = found.group("host", "path", "tag", "digest")
    # What stands before the first slash is a host only if it looks like one; else it is part of the path.
    is_host = host is not None and (host == "localhost" or "." in host or ":" in host or host != host.lower())
    if (host is not None and not is_host and not _PART.fullmatch(host)) or not path:
        return "IfNotPresent"
    return "Always" if not digest and tag in (None, "latest") else "IfNotPresent"


def default_volume(volume: JsonObject) -> None:
    """Fill in what a volume's author may leave out."""
    if all(name == "name" for name in volume):
        volume["emptyDir"] = {}
    for kind in _MODED:
        if volume.get(kind) is not None:
            volume[kind].setdefault("defaultMode", DEFAULT_MODE)
    default_source(volume)
    for source in items(section(volume, "projected"), "sources"):
        token = source.get("serviceAccountToken")
        if token is not None:
            token.setdefault("expirationSeconds", 3600)
        _default_downward_items(source.get("downwardAPI"))
    _default_downward_items(volume.get("downwardAPI"))
    if volume.get("ephemeral") is not None:
        template: JsonObject | None = volume["ephemeral"].get("volumeClaimTemplate")
        if template is not None:
            default_claim_spec(template.setdefault("spec", {}))
    if volume.get("image") is not None:
        volume["image"].setdefault("pullPolicy", pull_policy(volume["image"].get("reference", "")))


def default_source(holder: JsonObject) -> None:
    """Fill in what the makers of a volume's storage have for defaults."""
    for kind, defaults in _SOURCE_DEFAULTS.items():
        source = holder.get(kind)
        if source is not None:
            for name, value in defaults.items():
                # The fields of this one are told apart from empty ones.
                if source.get(name) is None or (source[name] == "" and kind != "azureDisk"):
                    source[name] = value


def default_claim_spec(spec: JsonObject) -> None:
    """Fill in what a volume claim's author may leave out."""
    spec.setdefault("volumeMode", "Filesystem")


def _default_downward_items(source: JsonObject | None) -> None:
    for item in items(source or {}, "items"):
        if item.get("fieldRef") is not None:
            item["fieldRef"].setdefault("apiVersion", "v1")
