"""Volumes of Pods: their defaults and what is refused in them."""

from collections.abc import Callable, Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.reading import items, section
from kubewright.devserver.objects import Wire

DEFAULT_MODE = 0o644
_MODE_RULE = "must be a number between 0 and 0777 (octal), both inclusive"
_MODED = ("secret", "configMap", "downwardAPI", "projected")
_SOURCE_DEFAULTS: dict[str, Wire] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "hostPath": {"type": ""},
}


def pull_policy(image: str) -> str:
    """Tell when an image is pulled, from what its name says."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if not digest and tag in ("", "latest") else "IfNotPresent"


def default_volume(volume: Wire) -> None:
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
        default_claim_spec(volume["ephemeral"].setdefault("volumeClaimTemplate", {}).setdefault("spec", {}))
    if volume.get("image") is not None:
        volume["image"].setdefault("pullPolicy", pull_policy(volume["image"].get("reference", "")))


def default_source(holder: Wire) -> None:
    """Fill in what the makers of a volume's storage have for defaults."""
    for kind, defaults in _SOURCE_DEFAULTS.items():
        source = holder.get(kind)
        if source is not None:
            for name, value in defaults.items():
                if source.get(name) in (None, ""):
                    source[name] = value


def default_claim_spec(spec: Wire) -> None:
    """Fill in what a volume claim's author may leave out."""
    spec.setdefault("volumeMode", "Filesystem")


def _default_downward_items(source: Wire | None) -> None:
    for item in items(source or {}, "items"):
        if item.get("fieldRef") is not None:
            item["fieldRef"].setdefault("apiVersion", "v1")


def check_volumes(volumes: Sequence[Wire], path: str) -> tuple[list[str], list[FieldError]]:
    """Check volumes; also give the names of those that can be mounted."""
    errors: list[FieldError] = []
    usable: list[str] = []
    for index, volume in enumerate(volumes):
        where, name = f"{path}[{index}]", volume.get("name", "")
        found = list(_source(volume, where))
        if not name:
            found.append(problems.required(f"{where}.name"))
        else:
            found += check.named(f"{where}.name", name, names.dns1123_label(name))
        if name in usable:
            found.append(problems.duplicate(f"{where}.name", name))
        if found:
            errors += found
        else:
            usable.append(name)
    return usable, errors


def _source(volume: Wire, path: str) -> Iterator[FieldError]:
    kinds = sorted((kind for kind in volume if kind != "name"), key=_rank)
    if not kinds:
        yield problems.required(path, "must specify a volume type")
        return
    for extra in kinds[1:]:
        yield problems.forbidden(f"{path}.{extra}", "may not specify more than 1 volume type")
    if kinds[0] in _CHECKS:
        yield from _CHECKS[kinds[0]](volume[kinds[0]], f"{path}.{kinds[0]}")


def _rank(kind: str) -> int:
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)


def _needs(*fields: str) -> Callable[[Wire, str], Iterator[FieldError]]:
    def run(source: Wire, path: str) -> Iterator[FieldError]:
        for name in fields:
            if not source.get(name):
                yield problems.required(f"{path}.{name}")

    return run


def _host_path(source: Wire, path: str) -> Iterator[FieldError]:
    folder = source.get("path", "")
    if not folder:
        yield problems.required(f"{path}.path")
    elif ".." in folder.split("/"):
        yield problems.invalid(f"{path}.path", folder, "must not contain '..'")


def _file_source(name_field: str) -> Callable[[Wire, str], Iterator[FieldError]]:
    def run(source: Wire, path: str) -> Iterator[FieldError]:
        if not source.get(name_field):
            yield problems.required(f"{path}.{name_field}")
        yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))
        for index, item in enumerate(items(source, "items")):
            yield from _key_to_path(item, f"{path}.items[{index}]")

    return run


def _key_to_path(item: Wire, path: str) -> Iterator[FieldError]:
    if not item.get("key"):
        yield problems.required(f"{path}.key")
    file = item.get("path", "")
    if not file:
        yield problems.required(f"{path}.path")
    else:
        yield from check.clean_relative_path(f"{path}.path", file)
        if file.startswith("..") and ".." not in file.split("/"):
            yield problems.invalid(f"{path}.path", file, "must not start with '..'")
    yield from _mode(f"{path}.mode", item.get("mode"))


def _mode(path: str, mode: int | None) -> Iterator[FieldError]:
    if mode is not None and not 0 <= mode <= 0o777:
        yield problems.invalid(path, mode, _MODE_RULE)


_CHECKS: dict[str, Callable[[Wire, str], Iterator[FieldError]]] = {
    "hostPath": _host_path,
    "secret": _file_source("secretName"),
    "configMap": _file_source("name"),
    "persistentVolumeClaim": _needs("claimName"),
    "nfs": _needs("server", "path"),
    "csi": _needs("driver"),
    "gitRepo": _needs("repository"),
}
# The order in which the real server looks at the sources.
_ORDER = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
