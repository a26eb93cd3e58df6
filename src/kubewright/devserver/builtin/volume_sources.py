"""What is refused in the volumes of a Pod."""

import re
from collections.abc import Callable, Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.claim_specs import check_claim_spec
from kubewright.devserver.builtin.containers import PULL_POLICIES
from kubewright.devserver.builtin.environment import VOLUME_FIELDS, check_field, check_resource
from kubewright.devserver.objects import JsonObject, items, section

Check = Callable[[JsonObject, str], Iterator[FieldError]]

_MODE_RULE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_ISCSI_FORMS = {
    "iqn": r"iqn\.\d{4}-\d{2}\.([a-z0-9-_.]+)(:[^,;*&$|\s]+)$",
    "eui": r"^eui.[a-zA-Z0-9]{16}$",
    "naa": r"^naa.([a-zA-Z0-9]{16}|[a-zA-Z0-9]{32})$",
}
_MANAGED_DISK = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
)
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_SHORTEST_TOKEN = 600
_LONGEST_TOKEN = 1 << 32


def check_volumes(
    volumes: Sequence[JsonObject], path: str, pod: str = ""
) -> tuple[dict[str, JsonObject], list[FieldError]]:
    """Check volumes, of a Pod whose name is known or of a template; also give those that can be mounted."""
    errors: list[FieldError] = []
    usable: dict[str, JsonObject] = {}
    made = {f"{pod}-{item.get('name', '')}" for item in volumes if pod and item.get("ephemeral") is not None}
    for index, volume in enumerate(volumes):
        where, name = f"{path}[{index}]", volume.get("name", "")
        found = list(_source(volume, where, pod))
        if not name:
            found.append(problems.required(f"{where}.name"))
        else:
            found += check.named(f"{where}.name", name, names.dns1123_label(name))
        if name in usable:
            found.append(problems.duplicate(f"{where}.name", name))
        if found:
            errors += found
        else:
            usable[name] = volume
        claim = section(volume, "persistentVolumeClaim").get("claimName")
        if claim in made:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(problems.invalid(f"{where}.persistentVolumeClaim.claimName", claim, text))
    return usable, errors


def _source(volume: JsonObject, path: str, pod: str) -> Iterator[FieldError]:
    kinds = sorted((kind for kind in volume if kind != "name"), key=_rank)
    if not kinds:
        yield problems.required(path, "must specify a volume type")
        return
    kind = kinds[0]
    if kind in _CHECKS:
        # The oldest of all kinds has kept the name that it had at first.
        yield from _CHECKS[kind](volume[kind], f"{path}.{_OLD_NAMES.get(kind, kind)}")
    if kind == "ephemeral" and pod and volume.get("name"):
        claim = f"{pod}-{volume['name']}"
        for text in names.dns1123_subdomain(claim):
            shown = f"PVC name {problems.quoted(claim)}: {text}"
            yield problems.invalid(f"{path}.name", volume["name"], shown)
    for extra in kinds[1:]:
        text = "may not specify more than 1 volume type"
        yield problems.forbidden(f"{path}.{_OLD_NAMES.get(extra, extra)}", text)


def _rank(kind: str) -> int:
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)


def _needs(*fields: str) -> Check:
    def run(source: JsonObject, path: str) -> Iterator[FieldError]:
        for name in fields:
            if not source.get(name):
                yield problems.required(f"{path}.{name}")

    return run


def _empty(source: JsonObject, path: str) -> Iterator[FieldError]:
    if check.quantity(source.get("sizeLimit") or "0") < check.quantity("0"):
        text = "SizeLimit field must be a valid resource quantity"
        yield problems.forbidden(f"{path}.sizeLimit", text)


def _host_path(source: JsonObject, path: str) -> Iterator[FieldError]:
    folder = source.get("path", "")
    if not folder:
        yield problems.required(f"{path}.path")
        return
    if ".." in folder.split("/"):
        yield problems.invalid(f"{path}.path", folder, "must not contain '..'")
    yield from check.one_of(f"{path}.type", source.get("type") or "", _HOST_TYPES)


def _git(source: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _needs("repository")(source, path)
    yield from check.clean_relative_path(f"{path}.directory", source.get("directory", ""))


def _disk(field: str) -> Check:
    def run(source: JsonObject, path: str) -> Iterator[FieldError]:
        yield from _needs(field)(source, path)
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            yield problems.invalid(f"{path}.partition", partition, "must be between 1 and 255, inclusive")

    return run


def _file_source(name_field: str) -> Check:
    def run(source: JsonObject, path: str) -> Iterator[FieldError]:
        if not source.get(name_field):
            yield problems.required(f"{path}.{name_field}")
        yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))
        for index, item in enumerate(items(source, "items")):
            yield from _key_to_path(item, f"{path}.items[{index}]")

    return run


def _key_to_path(item: JsonObject, path: str) -> Iterator[FieldError]:
    if not item.get("key"):
        yield problems.required(f"{path}.key")
    yield from _file(item, f"{path}.path")
    yield from _mode(f"{path}.mode", item.get("mode"))


def _file(item: JsonObject, path: str) -> Iterator[FieldError]:
    file = item.get("path", "")
    if not file:
        yield problems.required(path)
    yield from _reserved(file, path)


def _reserved(file: str, path: str) -> Iterator[FieldError]:
    yield from check.clean_relative_path(path, file)
    if file.startswith("..") and not file.startswith("../"):
        yield problems.invalid(path, file, "must not start with '..'")


def _mode(path: str, mode: int | None) -> Iterator[FieldError]:
    if mode is not None and not 0 <= mode <= 0o777:
        yield problems.invalid(path, mode, _MODE_RULE)


def _nfs(source: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _needs("server", "path")(source, path)
    folder = source.get("path", "")
    if not folder.startswith("/"):
        yield problems.invalid(f"{path}.path", folder, "must be an absolute path")


def _iscsi(source: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _needs("targetPortal", "iqn")(source, path)
    if name := source.get("iqn"):
        yield from _iscsi_name(name, f"{path}.iqn")
    yield from _lun(source.get("lun", 0), f"{path}.lun")
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and not source.get("secretRef"):
        yield problems.required(f"{path}.secretRef")
    if (name := source.get("initiatorName")) is not None:
        yield from _iscsi_name(name, f"{path}.initiatorname")


def _iscsi_name(name: str, path: str) -> Iterator[FieldError]:
    form = _ISCSI_FORMS.get(name[:3])
    if form is None:
        yield problems.invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    elif not re.match(form, name):
        yield problems.invalid(path, name, "must be valid format")


def _lun(number: int, path: str) -> Iterator[FieldError]:
    if not 0 <= number <= 255:
        yield problems.invalid(path, number, "must be between 0 and 255, inclusive")


def _fibre_channel(source: JsonObject, path: str) -> Iterator[FieldError]:
    ports, disks = items(source, "targetWWNs"), items(source, "wwids")
    where = f"{path}.targetWWNs"
    if not ports and not disks:
        yield problems.required(where, "must specify either targetWWNs or wwids, but not both")
    if ports and disks:
        text = "targetWWNs and wwids can not be specified simultaneously"
        yield problems.invalid(where, ports, text)
    if ports and source.get("lun") is None:
        yield problems.required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif ports:
        yield from _lun(source["lun"], f"{path}.lun")


def _azure_disk(source: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _needs("diskName", "diskURI")(source, path)
    yield from check.one_of(
        f"{path}.cachingMode", source.get("cachingMode"), ("None", "ReadOnly", "ReadWrite")
    )
    kind, address = source.get("kind"), source.get("diskURI", "")
    yield from check.one_of(f"{path}.kind", kind, ("Dedicated", "Managed", "Shared"))
    start, form = ("/subscriptions/", _MANAGED_DISK) if kind == "Managed" else ("https://", _BLOB_DISK)
    if not address.startswith(start):
        yield problems.not_supported(f"{path}.diskURI", address, (form,))


def _csi(source: JsonObject, path: str) -> Iterator[FieldError]:
    yield from check_driver(source.get("driver", ""), f"{path}.driver")
    secret: JsonObject | None = source.get("nodePublishSecretRef")
    if secret is None:
        return
    name = secret.get("name", "")
    if not name:
        yield problems.required(f"{path}.nodePublishSecretRef.name")
    else:
        yield from check.named(f"{path}.name", name, names.dns1123_subdomain(name))


def check_driver(name: str, path: str) -> Iterator[FieldError]:
    """Check the name of a CSI driver."""
    if not name:
        yield problems.required(path)
        return
    if len(name.encode()) > 63:
        yield problems.too_long(path, 63)
    yield from check.named(path, name, names.dns1123_subdomain(name.lower()))


def _downward(source: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))
    for item in items(source, "items"):
        yield from _downward_file(item, path)


def _downward_file(item: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _file(item, f"{path}.path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from check_field(field, f"{path}.fieldRef", VOLUME_FIELDS)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield problems.invalid(path, "resource", text)
    elif resource is not None:
        yield from check_resource(resource, f"{path}.resourceFieldRef", volume=True)
    else:
        yield problems.required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _mode(f"{path}.mode", item.get("mode"))


def _projected(source: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))
    taken: set[str] = set()
    for index, part in enumerate(items(source, "sources")):
        where = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if (files := part.get(kind)) is not None:
                yield from _projected_files(files, f"{where}.{kind}", path, taken)
        for item in items(section(part, "downwardAPI"), "items"):
            yield from _downward_file(item, f"{where}.downwardAPI")
            yield from _once(item.get("path", ""), item.get("path", ""), path, taken)
        if (token := part.get("serviceAccountToken")) is not None:
            yield from _token(token, f"{where}.serviceAccountToken", path)
        if sum(value is not None for value in part.values()) > 1:
            yield problems.forbidden(where, "may not specify more than 1 volume type per source")


def _projected_files(files: JsonObject, path: str, volume: str, taken: set[str]) -> Iterator[FieldError]:
    name = files.get("name", "")
    if not name:
        yield problems.required(f"{path}.name")
    for index, item in enumerate(items(files, "items")):
        yield from _key_to_path(item, f"{path}.items[{index}]")
        yield from _once(item.get("path", ""), name, volume, taken)


def _once(file: str, shown: str, path: str, taken: set[str]) -> Iterator[FieldError]:
    if file in taken:
        yield problems.invalid(path, shown, "conflicting duplicate paths")
    elif file:
        taken.add(file)


def _token(token: JsonObject, path: str, volume: str) -> Iterator[FieldError]:
    yield from check_token_life(token.get("expirationSeconds", 0), f"{path}.expirationSeconds")
    yield from _file(token, f"{volume}.path")


def check_token_life(seconds: int, path: str) -> Iterator[FieldError]:
    """Check for how long a ServiceAccount's token may be good."""
    if seconds < _SHORTEST_TOKEN:
        yield problems.invalid(path, seconds, "may not specify a duration less than 10 minutes")
    if seconds > _LONGEST_TOKEN:
        yield problems.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")


def _ephemeral(source: JsonObject, path: str) -> Iterator[FieldError]:
    template: JsonObject | None = source.get("volumeClaimTemplate")
    where = f"{path}.volumeClaimTemplate"
    if template is None:
        yield problems.required(where)
        return
    metadata: JsonObject = section(template, "metadata")
    for key in section(metadata, "annotations"):
        yield from check.named(f"{where}.metadata.annotations", key, names.qualified_name(key.lower()))
    yield from check.labels(f"{where}.metadata.labels", metadata.get("labels"))
    for field in metadata:
        if field not in ("annotations", "labels", "creationTimestamp"):
            yield problems.forbidden(f"{where}.metadata.{field}", "cannot be set")
    yield from check_claim_spec(section(template, "spec"), f"{where}.spec")


def _image(source: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _needs("reference")(source, path)
    yield from check.choice(f"{path}.pullPolicy", source.get("pullPolicy", ""), PULL_POLICIES)


_CHECKS: dict[str, Check] = {
    "emptyDir": _empty,
    "hostPath": _host_path,
    "gitRepo": _git,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "secret": _file_source("secretName"),
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _needs("endpoints", "path"),
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _needs("volumeID"),
    "cephfs": _needs("monitors"),
    "downwardAPI": _downward,
    "fc": _fibre_channel,
    "flexVolume": _needs("driver"),
    "configMap": _file_source("name"),
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _azure_disk,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
# Volumes of the cluster are made of these too, and are checked alike.
SHARED_CHECKS = {
    name: _CHECKS[name]
    for name in (
        *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "cephfs"),
        *("iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "portworxVolume", "azureDisk"),
    )
}
_OLD_NAMES = {"gcePersistentDisk": "persistentDisk"}
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
