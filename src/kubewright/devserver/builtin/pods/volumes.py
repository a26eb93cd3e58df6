"""Volumes of Pods and of the cluster, and the spec of a claim: defaults and validation."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kubewright.api import FieldError, Quantity, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.pod_certificates import (
    check_signer_name,
    check_user_annotations,
    trust_bundle_name,
)
from kubewright.devserver.builtin.pods.containers import PULL_POLICIES, pull_policy
from kubewright.devserver.builtin.pods.environment import VOLUME_FIELDS, check_field, check_resource
from kubewright.devserver.builtin.rules import FieldRule, between, defaults, named, one_of, required, rules
from kubewright.devserver.objects import JsonObject, items, section, words

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_MIN_TOKEN_SECONDS = 600
_MAX_TOKEN_SECONDS = 1 << 32
CERTIFICATE_PATHS = ("credentialBundlePath", "keyPath", "certificateChainPath")
"""The fields of a `podCertificate` source that name a file."""
_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_HOUR, _DAY = 3600, 24 * 3600
_MAX_CERTIFICATE_DAYS = 91
_ISCSI_FORMS = {
    "iqn": r"iqn\.\d{4}-\d{2}\.([a-z0-9-_.]+)(:[^,;*&$|\s]+)$",
    "eui": r"^eui.[a-zA-Z0-9]{16}$",
    "naa": r"^naa.([a-zA-Z0-9]{16}|[a-zA-Z0-9]{32})$",
}
_HOST_AND_PORT = re.compile(r"(?:\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*", re.DOTALL)
_LONG_TARGET = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)
_MANAGED_DISK = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
)
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_FILES = ("defaultMode", 0o644)
_SOURCE_DEFAULTS: Mapping[str, Callable[[JsonObject], None]] = {
    "secret": defaults(_FILES),
    "configMap": defaults(_FILES),
    "downwardAPI": defaults(_FILES, ("items[].fieldRef?.apiVersion", "v1")),
    "projected": defaults(
        _FILES,
        ("sources[].serviceAccountToken?.expirationSeconds", 3600),
        ("sources[].downwardAPI?.items[].fieldRef?.apiVersion", "v1"),
    ),
    "ephemeral": defaults(("volumeClaimTemplate?.spec.volumeMode", "Filesystem")),
    "hostPath": defaults(("type", "")),
    "iscsi": defaults(("iscsiInterface!", "default")),
    "rbd": defaults(("pool!", "rbd"), ("user!", "admin"), ("keyring!", "/etc/ceph/keyring")),
    "azureDisk": defaults(
        ("cachingMode", "ReadWrite"), ("kind", "Shared"), ("fsType", "ext4"), ("readOnly", False)
    ),
    "scaleIO": defaults(("storageMode!", "ThinProvisioned"), ("fsType!", "xfs")),
}


def default_volume(volume: JsonObject) -> None:
    """Set the defaults of a Pod's volume."""
    if all(name == "name" for name in volume):
        volume["emptyDir"] = {}
    default_source(volume)
    if volume.get("image") is not None:
        volume["image"].setdefault("pullPolicy", pull_policy(volume["image"].get("reference", "")))


def default_source(holder: JsonObject) -> None:
    """Set the defaults of a volume source, in a Pod's volume or in the spec of a PersistentVolume."""
    for kind, source in holder.items():
        fill = _SOURCE_DEFAULTS.get(kind)
        if fill is not None and source is not None:
            fill(source)


def default_claim_spec(spec: JsonObject) -> None:
    """Set the defaults of a claim's spec."""
    spec.setdefault("volumeMode", "Filesystem")


def check_volumes(
    volumes: Sequence[JsonObject], path: str, pod: str = ""
) -> tuple[dict[str, JsonObject], list[FieldError]]:
    """Check the volumes of a named Pod or of a template, and return those that can be mounted."""
    errors: list[FieldError] = []
    usable: dict[str, JsonObject] = {}
    created = {
        f"{pod}-{item.get('name', '')}" for item in volumes if pod and item.get("ephemeral") is not None
    }
    for index, volume in enumerate(volumes):
        where, name = f"{path}[{index}]", volume.get("name", "")
        found = list(_check_volume(volume, where, pod))
        found += check.name(f"{where}.name", name, names.dns1123_label)
        if name in usable:
            found.append(problems.duplicate(f"{where}.name", name))
        if found:
            errors += found
        else:
            usable[name] = volume
        claim = section(volume, "persistentVolumeClaim").get("claimName")
        if claim in created:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(problems.invalid(f"{where}.persistentVolumeClaim.claimName", claim, text))
    return usable, errors


def _check_volume(volume: JsonObject, path: str, pod: str) -> Iterator[FieldError]:
    kinds = sorted(
        (kind for kind in volume if kind != "name"), key=lambda kind: _RANKS.get(kind, len(_ORDER))
    )
    if not kinds:
        yield problems.required(path, "must specify a volume type")
        return
    kind = kinds[0]
    yield from check_source(kind, volume[kind], path)
    if kind == "ephemeral" and pod and volume.get("name"):
        claim = f"{pod}-{volume['name']}"
        for text in names.dns1123_subdomain(claim):
            shown = f"PVC name {problems.quoted(claim)}: {text}"
            yield problems.invalid(f"{path}.name", volume["name"], shown)
    for extra in kinds[1:]:
        text = "may not specify more than 1 volume type"
        yield problems.forbidden(f"{path}.{_EXTRA_NAMES.get(extra, extra)}", text)
    iscsi, name = section(volume, "iscsi"), volume.get("name", "")
    if iscsi.get("initiatorName") is not None and _is_long_target(name, iscsi):
        yield problems.invalid(f"{path}.name", name, _LONG_TARGET)


def check_source(
    kind: str, source: JsonObject, path: str, *, of_cluster: bool = False
) -> Iterator[FieldError]:
    """Check the source of a volume that is at a path: of a Pod's volume, or of a PersistentVolume."""
    rule = _CLUSTER_SOURCES.get(kind) if of_cluster else _SOURCES.get(kind)
    if rule is not None:
        yield from rule(f"{path}.{_SHOWN_NAMES.get(kind, kind)}", source)


def check_driver(path: str, name: str | None) -> Iterator[FieldError]:
    """Check the name of a CSI driver."""
    if not name:
        yield problems.required(path)
        return
    if len(name.encode()) > 63:
        yield problems.too_long(path, 63)
    yield from check.named(path, name, names.dns1123_subdomain(name.lower()))


def check_token_expiration(path: str, seconds: int | None) -> Iterator[FieldError]:
    """Check the lifetime of a ServiceAccount's token."""
    if (seconds or 0) < _MIN_TOKEN_SECONDS:
        yield problems.invalid(path, seconds or 0, "may not specify a duration less than 10 minutes")
    if (seconds or 0) > _MAX_TOKEN_SECONDS:
        yield problems.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")


def no_parent_folder(path: str, value: str | None) -> Iterator[FieldError]:
    """Check that a file path does not lead upwards."""
    if value and ".." in value.split("/"):
        yield problems.invalid(path, value, "must not contain '..'")


def _relative_path(path: str, value: str | None) -> list[FieldError]:
    return check.clean_relative_path(path, value or "")


def _file_path(path: str, value: str | None) -> Iterator[FieldError]:
    """Check the path of a file in a volume; names that start with two dots are the kubelet's own."""
    file = value or ""
    if not file:
        yield problems.required(path)
    yield from check.clean_relative_path(path, file)
    if file.startswith("..") and not file.startswith("../"):
        yield problems.invalid(path, file, "must not start with '..'")


def _size_limit(path: str, value: Any) -> Iterator[FieldError]:
    if check.quantity(value or "0") < Quantity("0"):
        yield problems.forbidden(path, "SizeLimit field must be a valid resource quantity")


def _absolute_path(path: str, value: str | None) -> Iterator[FieldError]:
    if not (value or "").startswith("/"):
        yield problems.invalid(path, value or "", "must be an absolute path")


def _iscsi_name(
    path: str, name: str, unknown: str = " starting with iqn, eui, or naa"
) -> Iterator[FieldError]:
    form = _ISCSI_FORMS.get(name[:3])
    if form is None:
        yield problems.invalid(path, name, f"must be valid format{unknown}")
    elif not re.match(form, name):
        yield problems.invalid(path, name, "must be valid format")


def _is_long_target(volume: str, source: JsonObject) -> bool:
    return len(f"{volume}:{source.get('targetPortal', '')}".encode()) > 64


def check_iscsi_volume(source: JsonObject, path: str, volume: str) -> Iterator[FieldError]:
    """Check the iSCSI source of a PersistentVolume with this name."""
    portal, iqn, initiator = source.get("targetPortal", ""), source.get("iqn"), source.get("initiatorName")
    if not portal:
        yield problems.required(f"{path}.targetPortal")
    if initiator is not None and _is_long_target(volume, source):
        yield problems.invalid(f"{path}.targetportal", portal, _LONG_TARGET)
    yield from _iscsi_name(f"{path}.iqn", iqn, "") if iqn else [problems.required(f"{path}.iqn")]
    yield from _LUN(f"{path}.lun", source.get("lun"))
    yield from _iscsi_secret(path, source)
    if source.get("secretRef") is not None and not source["secretRef"].get("name"):
        yield problems.required(f"{path}.secretRef.name")
    if initiator is not None:
        yield from _iscsi_name(f"{path}.initiatorname", initiator, "")


def _iscsi_secret(path: str, source: JsonObject) -> Iterator[FieldError]:
    authenticated = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if authenticated and source.get("secretRef") is None:
        yield problems.required(f"{path}.secretRef")


def _iscsi_initiator(path: str, source: JsonObject) -> Iterator[FieldError]:
    if (name := source.get("initiatorName")) is not None:
        yield from _iscsi_name(f"{path}.initiatorname", name)


def _fibre_channel(path: str, source: JsonObject) -> Iterator[FieldError]:
    ports, disks = items(source, "targetWWNs"), items(source, "wwids")
    where = f"{path}.targetWWNs"
    if not ports and not disks:
        yield problems.required(where, "must specify either targetWWNs or wwids, but not both")
    if ports and disks:
        yield problems.invalid(where, ports, "targetWWNs and wwids can not be specified simultaneously")
    if ports and source.get("lun") is None:
        yield problems.required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif ports:
        yield from _LUN(f"{path}.lun", source["lun"])


def _flocker(path: str, source: JsonObject) -> Iterator[FieldError]:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        yield problems.required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        text = "datasetName and datasetUUID can not be specified simultaneously"
        yield problems.invalid(path, "resource", text)
    if "/" in name:
        yield problems.invalid(f"{path}.datasetName", name, "must not contain '/'")


def _quobyte(path: str, source: JsonObject) -> Iterator[FieldError]:
    registry = source.get("registry", "")
    text = "must be a host:port pair or multiple pairs separated by commas"
    if not registry:
        yield problems.required(f"{path}.registry", text)
    elif len(source.get("tenant", "").encode()) > 64:
        yield problems.required(
            f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters"
        )
    else:
        for pair in registry.split(","):
            if not _HOST_AND_PORT.fullmatch(pair):
                yield problems.invalid(f"{path}.registry", registry, text)


def _flex_options(path: str, options: Mapping[str, str] | None) -> Iterator[FieldError]:
    for name in options or ():
        if f".{name.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
            text = "kubernetes.io and k8s.io namespaces are reserved"
            yield problems.invalid(f"{path}[{name}]", name, text)


def _endpoints_namespace(path: str, name: str) -> Iterator[FieldError]:
    if not name:
        text = "if the endpointnamespace is set, it must be a valid namespace name"
        yield problems.invalid(path, name, text)
    else:
        yield from check.named(path, name, names.dns1123_label(name))


def _azure_uri(path: str, source: JsonObject) -> Iterator[FieldError]:
    address, managed = source.get("diskURI", ""), source.get("kind") == "Managed"
    start, form = ("/subscriptions/", _MANAGED_DISK) if managed else ("https://", _BLOB_DISK)
    if not address.startswith(start):
        yield problems.not_supported(f"{path}.diskURI", address, (form,))


def _csi_secret(path: str, source: JsonObject) -> Iterator[FieldError]:
    secret: JsonObject | None = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        yield problems.required(f"{path}.nodePublishSecretRef.name")
    elif secret is not None:
        # The real server leaves the secret's field out of the path.
        yield from check.named(f"{path}.name", secret["name"], names.dns1123_subdomain(secret["name"]))


def _downward_file(item: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _file_path(f"{path}.path", item.get("path"))
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
    yield from _FILE_MODE(f"{path}.mode", item.get("mode"))


def _downward_files(path: str, source: JsonObject) -> Iterator[FieldError]:
    for item in items(source, "items"):
        yield from _downward_file(item, path)


def _projected_sources(path: str, source: JsonObject) -> Iterator[FieldError]:
    taken: set[str] = set()

    def once(file: str, shown: str) -> Iterator[FieldError]:
        if file in taken:
            yield problems.invalid(path, shown, "conflicting duplicate paths")
        elif file:
            taken.add(file)

    for index, part in enumerate(items(source, "sources")):
        where = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if (files := part.get(kind)) is None:
                continue
            name = files.get("name", "")
            if not name:
                yield problems.required(f"{where}.{kind}.name")
            for position, item in enumerate(items(files, "items")):
                yield from _KEY_TO_PATH(f"{where}.{kind}.items[{position}]", item)
                yield from once(item.get("path", ""), name)
        for item in items(section(part, "downwardAPI"), "items"):
            yield from _downward_file(item, f"{where}.downwardAPI")
            yield from once(item.get("path", ""), item.get("path", ""))
        if (token := part.get("serviceAccountToken")) is not None:
            expiration = f"{where}.serviceAccountToken.expirationSeconds"
            yield from check_token_expiration(expiration, token.get("expirationSeconds"))
            yield from _file_path(f"{path}.path", token.get("path"))
            yield from _user(f"{where}.serviceAccountToken.user", token.get("user"))
        if (bundle := part.get("clusterTrustBundle")) is not None:
            yield from _trust_bundle(f"{where}.clusterTrustBundle", bundle)
            yield from once(bundle.get("path", ""), bundle.get("path", ""))
        if (certificate := part.get("podCertificate")) is not None:
            yield from _pod_certificate(f"{where}.podCertificate", certificate)
            used = [certificate[field] for field in CERTIFICATE_PATHS if certificate.get(field)]
            for file in used:
                yield from once(file, file)
            if not used:
                text = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
                yield problems.required(f"{where}.podCertificate", text)
        if sum(value is not None for value in part.values()) > 1:
            yield problems.forbidden(where, "may not specify more than 1 volume type per source")


def _user(path: str, value: int | None) -> Iterator[FieldError]:
    if value is not None and not 0 <= value < 1 << 31:
        yield problems.invalid(path, value, "must be between 0 and 2147483647, inclusive")


def _trust_bundle(path: str, source: JsonObject) -> Iterator[FieldError]:
    name, signer = source.get("name"), source.get("signerName")
    if name is not None and signer is not None:
        shown = check.struct(source, "name signerName labelSelector optional path user", None)
        yield check.invalid_struct(path, shown, "only one of name and signerName may be used")
    elif name is not None:
        if not name:
            yield problems.required(f"{path}.name", "must be a valid object name")
        owner = name.rpartition(":")[0].replace(":", "/")
        for text in trust_bundle_name(name, owner):
            yield problems.invalid(f"{path}.name", name, f"not a valid clustertrustbundlename: {text}")
        if (selector := source.get("labelSelector")) is not None:
            text = "labelSelector must be unset if name is specified"
            yield check.invalid_struct(f"{path}.labelSelector", selector, text)
    elif signer is not None:
        if not signer:
            yield problems.required(f"{path}.signerName", "must be a valid signer name")
        yield from check_signer_name(f"{path}.signerName", signer)
        yield from check.label_selector(f"{path}.labelSelector", source.get("labelSelector"))
    else:
        yield problems.required(path, "either name or signerName must be specified")
    yield from _user(f"{path}.user", source.get("user"))
    yield from _file_path(f"{path}.path", source.get("path"))


def _pod_certificate(path: str, source: JsonObject) -> Iterator[FieldError]:
    signer, seconds = source.get("signerName", ""), source.get("maxExpirationSeconds")
    yield from check_signer_name(f"{path}.signerName", signer)
    yield from check_user_annotations(f"{path}.userAnnotations", source.get("userAnnotations"))
    yield from _user(f"{path}.user", source.get("user"))
    yield from check.one_of(f"{path}.keyType", source.get("keyType", ""), _KEY_TYPES)
    if seconds is not None:
        host = signer.partition("/")[0]
        standard = host == "kubernetes.io" or host.endswith(".kubernetes.io")
        most = _DAY if standard else _MAX_CERTIFICATE_DAYS * _DAY
        field = f"{path}.maxExpirationSeconds"
        if seconds < _HOUR:
            text = f"if provided, maxExpirationSeconds must be >= {_HOUR}"
            yield problems.invalid(field, seconds, text)
        if seconds > most:
            text = f"if provided, maxExpirationSeconds must be <= {most}"
            yield problems.invalid(field, seconds, text)
    for field in CERTIFICATE_PATHS:
        if source.get(field):
            yield from _file_path(f"{path}.{field}", source[field])


def _claim_template(path: str, template: JsonObject | None) -> Iterator[FieldError]:
    if template is None:
        yield problems.required(path)
        return
    metadata: JsonObject = section(template, "metadata")
    for key in section(metadata, "annotations"):
        yield from check.named(f"{path}.metadata.annotations", key, names.qualified_name(key.lower()))
    yield from check.labels(f"{path}.metadata.labels", metadata.get("labels"))
    for field in metadata:
        if field not in ("annotations", "labels", "creationTimestamp"):
            yield problems.forbidden(f"{path}.metadata.{field}", "cannot be set")
    yield from check_claim_spec(section(template, "spec"), f"{path}.spec")


def _needs(*fields: str) -> FieldRule:
    return rules(*((name, required()) for name in fields))


_FILE_MODE: FieldRule = rules(
    ("?", between(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive")),
)
_LUN: FieldRule = between(0, 255, "must be between 0 and 255, inclusive")
_PARTITION: FieldRule = between(0, 255, "must be between 1 and 255, inclusive")
_KEY_TO_PATH: FieldRule = rules(("key", required()), ("path", _file_path), ("mode", _FILE_MODE))
_HOST_TYPES = one_of(
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"
)
_STORAGE_OS: tuple[tuple[str, FieldRule], ...] = (
    ("volumeName", named(names.dns1123_label, required=True)),
    ("volumeNamespace", named(names.dns1123_label)),
    ("secretRef?.name", required()),
)
_SOURCES: Mapping[str, FieldRule] = {
    "emptyDir": rules(("sizeLimit", _size_limit)),
    "hostPath": rules(
        ("path", required(), no_parent_folder),
        ("{path}.type", _HOST_TYPES),
    ),
    "gitRepo": rules(("repository", required()), ("directory", _relative_path)),
    "gcePersistentDisk": rules(("pdName", required()), ("partition", _PARTITION)),
    "awsElasticBlockStore": rules(("volumeID", required()), ("partition", _PARTITION)),
    "secret": rules(("secretName", required()), ("defaultMode", _FILE_MODE), ("items[]", _KEY_TO_PATH)),
    "nfs": rules(("server", required()), ("path", required()), ("path", _absolute_path)),
    "iscsi": rules(
        ("targetPortal", required()),
        ("iqn", required()),
        ("{iqn}.iqn", _iscsi_name),
        ("lun", _LUN),
        ("", _iscsi_secret, _iscsi_initiator),
    ),
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _needs("volumeID", "secretRef?.name"),
    "cephfs": _needs("monitors"),
    "quobyte": rules(("", _quobyte), ("volume", required())),
    "downwardAPI": rules(("defaultMode", _FILE_MODE), ("", _downward_files)),
    "fc": _fibre_channel,
    "flexVolume": rules(("driver", required()), ("options", _flex_options)),
    "configMap": rules(("name", required()), ("defaultMode", _FILE_MODE), ("items[]", _KEY_TO_PATH)),
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": rules(
        ("diskName", required()),
        ("diskURI", required()),
        ("cachingMode", one_of("None", "ReadOnly", "ReadWrite")),
        ("kind", one_of("Dedicated", "Managed", "Shared")),
        ("", _azure_uri),
    ),
    "storageos": rules(*_STORAGE_OS),
    "projected": rules(("defaultMode", _FILE_MODE), ("", _projected_sources)),
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": rules(("driver", check_driver), ("", _csi_secret)),
    "ephemeral": rules(("volumeClaimTemplate", _claim_template)),
    "image": rules(("reference", required()), ("pullPolicy", one_of(*PULL_POLICIES, required=True))),
}
_ONLY_IN_PODS = frozenset(
    words("emptyDir gitRepo secret persistentVolumeClaim downwardAPI configMap projected csi ephemeral image")
)
_CLUSTER_SOURCES = {
    **{kind: rule for kind, rule in _SOURCES.items() if kind not in _ONLY_IN_PODS},
    "glusterfs": rules(
        ("endpoints", required()), ("path", required()), ("endpointsNamespace?", _endpoints_namespace)
    ),
    "cinder": _needs("volumeID", "secretRef?.name", "secretRef?.namespace"),
    "azureFile": _needs("secretName", "shareName", "secretNamespace?"),
    "storageos": rules(*_STORAGE_OS, ("secretRef?.namespace", required())),
}
# The real server shows the field's first name in errors.
_SHOWN_NAMES = {"gcePersistentDisk": "persistentDisk"}
_EXTRA_NAMES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Names that the real server writes otherwise when there is another source."""
# The order in which the real server looks at the sources.
_ORDER = words(
    "emptyDir hostPath gitRepo gcePersistentDisk awsElasticBlockStore secret nfs iscsi glusterfs flocker "
    "persistentVolumeClaim rbd cinder cephfs quobyte downwardAPI fc flexVolume configMap azureFile "
    "vsphereVolume photonPersistentDisk portworxVolume azureDisk storageos projected scaleIO csi "
    "ephemeral image"
)
_RANKS = {name: rank for rank, name in enumerate(_ORDER)}


def check_access_modes(path: str, modes: Sequence[str] | None) -> Iterator[FieldError]:
    """Check the access modes of a volume or a claim."""
    for mode in modes or ():
        yield from check.one_of(path, mode, ACCESS_MODES)
    if "ReadWriteOncePod" in (modes or ()) and any(mode in ACCESS_MODES[:3] for mode in modes or ()):
        yield problems.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def check_claim_spec(spec: JsonObject, path: str = "spec") -> Iterator[FieldError]:
    """Check the spec of a claim: by itself, in a volume, and in a template."""
    yield from _CLAIM_SPEC(path, spec)


def _requested_storage(path: str, resources: JsonObject | None) -> Iterator[FieldError]:
    requests = section(resources or {}, "requests")
    if "storage" not in requests:
        yield problems.required(f"{path}[storage]")
    elif check.quantity(requests["storage"]) <= Quantity("0"):
        yield problems.invalid(f"{path}[storage]", str(requests["storage"]), check.NOT_POSITIVE)


def _data_source(path: str, source: JsonObject) -> Iterator[FieldError]:
    group = source.get("apiGroup") or ""
    if not group and source.get("kind") != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield problems.invalid(path, source.get("kind", ""), text)


def _same_data_source(path: str, spec: JsonObject) -> Iterator[FieldError]:
    local, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if local is None or reference is None:
        return
    # The real server shows an empty value here.
    if reference.get("namespace"):
        yield problems.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any(local.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        yield problems.invalid(path, {}, "must match dataSourceRef")


_DATA_SOURCE = rules(
    ("name", required()),
    ("kind", required()),
    ("", _data_source),
    ("apiGroup", named(names.dns1123_subdomain)),
    ("namespace", named(names.dns1123_label)),
)
_CLAIM_SPEC = rules(
    ("accessModes", required("at least 1 access mode is required")),
    ("selector", check.label_selector),
    ("accessModes", check_access_modes),
    ("resources", _requested_storage),
    ("storageClassName", named(names.dns1123_subdomain)),
    ("volumeMode?", one_of(*VOLUME_MODES)),
    ("dataSource?", _DATA_SOURCE),
    ("dataSourceRef?", _DATA_SOURCE),
    ("", _same_data_source),
    ("volumeAttributesClassName", named(names.dns1123_subdomain)),
)
