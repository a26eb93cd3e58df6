"""Strategies of earlier Kubernetes releases: those of the newest release, without what the earlier one did not have yet.

Each change depends on a feature gate of kube-apiserver, so that the data of a release (`devserver/data`) decides which
changes apply, or on a minor version where there was no gate. When a release is no longer supported, delete the rows that
only it needs.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from msgspec.structs import replace

from kubewright.api import FieldError, GroupVersionKind, Quantity, names, problems
from kubewright.devserver.builtin import autoscaling, field_checks, ip_checks
from kubewright.devserver.builtin.pods.resources import default_pod_resources, qos_class
from kubewright.devserver.builtin.pods.subresources import bind, bind_to_any_name
from kubewright.devserver.builtin.pods.warnings import APP_ARMOR
from kubewright.devserver.builtin.writes import restore
from kubewright.devserver.data import KubernetesRelease
from kubewright.devserver.objects import JsonObject, copy, items, section
from kubewright.devserver.strategy import Strategy
from kubewright.devserver.wire import DroppedFields, TypeTable
from kubewright.schema import cel, crd_warnings


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a kind's strategy for releases in which a gate is off, or that are older than a minor version.

    Releases before the minor version `since` do not have it either.
    """

    kinds: Sequence[tuple[str, str]]
    apply: Callable[[Strategy], Strategy]
    gate: str = ""
    before: int = 0
    since: int = 0

    def applies(self, release: KubernetesRelease) -> bool:
        if release.minor < self.since:
            return False
        return not release.enabled(self.gate) if self.gate else release.minor < self.before


_Check = Callable[[JsonObject], Iterator[FieldError]]

# Where kinds have the spec of a Pod.
_POD_SPECS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template", "spec"),
    ("", "ReplicationController"): ("spec", "template", "spec"),
    **{
        ("apps", kind): ("spec", "template", "spec")
        for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
    },
    ("batch", "Job"): ("spec", "template", "spec"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}
_ENVIRONMENT_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_ENVIRONMENT_TEXT = (
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not "
    "start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
    "'[-._a-zA-Z][-._a-zA-Z0-9]*')"
)


def _checked(strategy: Strategy, check: _Check) -> Strategy:
    """Add a check; like kube-apiserver's gates, accept in an update what the old object had already."""

    def validate(obj: JsonObject) -> list[FieldError]:
        return [*strategy.validate(obj), *check(obj)]

    def validate_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
        before = list(check(old))
        added = [error for error in check(new) if error not in before]
        return [*strategy.validate_update(new, old), *added]

    return replace(strategy, validate=validate, validate_update=validate_update)


def _pod_change(
    check: Callable[[str, JsonObject], Iterator[FieldError]], *, gate: str = "", before: int = 0
) -> Iterator[_Change]:
    """Yield changes that add a check of the Pod spec, called with the spec and its path, to all kinds that have one."""
    for kind, path in _POD_SPECS.items():

        def checked(strategy: Strategy, path: tuple[str, ...] = path) -> Strategy:
            return _checked(strategy, lambda obj: check(".".join(path), section(obj, *path)))

        yield _Change([kind], checked, gate, before)


def _containers(path: str, spec: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, field)):
            yield f"{path}.{field}[{index}]", container


def _environment_names(path: str, spec: JsonObject) -> Iterator[FieldError]:
    for where, container in _containers(path, spec):
        for field, part in (("env", "name"), ("envFrom", "prefix")):
            for index, item in enumerate(items(container, field)):
                name = item.get(part)
                if name and not _ENVIRONMENT_NAME.fullmatch(name):
                    yield problems.invalid(f"{where}.{field}[{index}].{part}", name, _ENVIRONMENT_TEXT)


def _search_paths(path: str, spec: JsonObject) -> Iterator[FieldError]:
    for index, search in enumerate(items(section(spec, "dnsConfig"), "searches")):
        for text in names.dns1123_subdomain(search.removesuffix(".")):
            yield problems.invalid(f"{path}.dnsConfig.searches[{index}]", search, text)


def _sleeps(path: str, spec: JsonObject) -> Iterator[FieldError]:
    grace = spec.get("terminationGracePeriodSeconds", 0)
    for where, container in _containers(path, spec):
        for hook in ("postStart", "preStop"):
            action = section(container, "lifecycle", hook).get("sleep")
            if action is not None and action.get("seconds", 0) == 0:
                text = f"must be greater than 0 and less than terminationGracePeriodSeconds ({grace})"
                yield problems.invalid(f"{where}.lifecycle.{hook}.sleep", 0, text)


def _restart_policies(path: str, spec: JsonObject) -> Iterator[FieldError]:
    for index, container in enumerate(items(spec, "containers")):
        if container.get("restartPolicy"):
            where = f"{path}.containers[{index}].restartPolicy"
            yield problems.forbidden(where, "may not be set for non-init containers")
    for index, container in enumerate(items(spec, "initContainers")):
        if (policy := container.get("restartPolicy")) and policy != "Always":
            yield problems.not_supported(f"{path}.initContainers[{index}].restartPolicy", policy, ("Always",))


def _traffic_distribution(service: JsonObject) -> Iterator[FieldError]:
    chosen = section(service, "spec").get("trafficDistribution")
    if chosen is not None and chosen != "PreferClose":
        yield problems.not_supported("spec.trafficDistribution", chosen, ("PreferClose",))


def _least_replicas(autoscaler: JsonObject) -> Iterator[FieldError]:
    if section(autoscaler, "spec").get("minReplicas") == 0:
        yield problems.invalid("spec.minReplicas", 0, "must be greater than or equal to 1")


def _update_checked(
    check: Callable[[JsonObject, JsonObject], Iterator[FieldError]],
) -> Callable[[Strategy], Strategy]:
    """Add a check of updates, which is called with the new and the old object."""

    def checked(strategy: Strategy) -> Strategy:
        def validate_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
            return [*strategy.validate_update(new, old), *check(new, old)]

        return replace(strategy, validate_update=validate_update)

    return checked


def _template_of_started_job(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    template = section(new, "spec").get("template")
    if section(old, "status").get("startTime"):
        yield from field_checks.unchanged("spec.template", template, section(old, "spec").get("template"))


def _template_resources(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    needed, earlier = (
        [
            container.get("resources")
            for _, container in _containers("", section(job, "spec", "template", "spec"))
        ]
        for job in (new, old)
    )
    if needed != earlier:
        yield from field_checks.unchanged("spec.template", needed, earlier)


def _smaller_request(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    requested, earlier = (
        Quantity(section(claim, "spec", "resources", "requests").get("storage", 0)) for claim in (new, old)
    )
    if requested < earlier:
        path = "spec.resources.requests.storage"
        yield problems.forbidden(path, "field can not be less than previous value")


def _accepting(is_later: Callable[[FieldError], bool]) -> Callable[[Strategy], Strategy]:
    """Drop errors that only later releases report."""

    def kept(errors: list[FieldError]) -> list[FieldError]:
        return [error for error in errors if not is_later(error)]

    def accepting(strategy: Strategy) -> Strategy:
        def validate(obj: JsonObject) -> list[FieldError]:
            return kept(strategy.validate(obj))

        def validate_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
            return kept(strategy.validate_update(new, old))

        def validate_status_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
            return kept(strategy.validate_status_update(new, old))

        return replace(
            strategy,
            validate=validate,
            validate_update=validate_update,
            validate_status_update=validate_status_update,
        )

    return accepting


def _is_older_form(error: FieldError) -> bool:
    return error.detail in ip_checks.OLDER_FORMS


def _is_about_resized_init_container(error: FieldError) -> bool:
    return error.detail.endswith("for non-sidecar initContainers")


def _is_in_stateful_pod(error: FieldError) -> bool:
    """Return True for an error in the Pods or claims of a StatefulSet, except for two fields that were always checked."""
    path = error.field
    checked = path in ("spec.template.spec.restartPolicy", "spec.template.spec.activeDeadlineSeconds")
    return path.startswith(("spec.template.spec.", "spec.volumeClaimTemplates[")) and not checked


def _without_warnings(unknown: Callable[[str], bool]) -> Callable[[Strategy], Strategy]:
    """Drop warnings that the release does not send."""

    def kept(warnings: list[str]) -> list[str]:
        return [warning for warning in warnings if not unknown(warning)]

    def silent(strategy: Strategy) -> Strategy:
        def warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
            return kept(strategy.warnings(new, old))

        def status_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
            return kept(strategy.status_warnings(new, old))

        return replace(strategy, warnings=warnings, status_warnings=status_warnings)

    return silent


def _without_warnings_like(pattern: str) -> Callable[[Strategy], Strategy]:
    """Drop warnings that match a pattern."""
    search = re.compile(pattern).search
    return _without_warnings(lambda text: search(text) is not None)


def _claim_scope(quota: JsonObject) -> Iterator[FieldError]:
    spec, scope = section(quota, "spec"), "VolumeAttributesClass"
    for index, requirement in enumerate(items(section(spec, "scopeSelector"), "matchExpressions")):
        if requirement.get("scopeName") == scope:
            path = f"spec.scopeSelector.matchExpressions[{index}].scopeName"
            yield problems.invalid(path, scope, "unsupported scope")
    if scope in items(spec, "scopes"):
        yield problems.invalid("spec.scopes", items(spec, "scopes"), "unsupported scope")


def _without_condition_defaults(strategy: Strategy) -> Strategy:
    """Set no status of the Pod conditions in a CronJob's failure policy."""

    def default(cron_job: JsonObject) -> None:
        policy = section(cron_job, "spec", "jobTemplate", "spec", "podFailurePolicy")
        unset = [
            condition
            for rule in items(policy, "rules")
            for condition in items(rule, "onPodConditions")
            if not condition.get("status")
        ]
        strategy.default(cron_job)
        for condition in unset:
            condition.pop("status", None)

    return replace(strategy, default=default)


def _with_app_armor_annotations(strategy: Strategy) -> Strategy:
    """Also write the AppArmor profiles of a new Pod to its annotations."""

    def prepare_create(pod: JsonObject) -> None:
        strategy.prepare_create(pod)
        spec = section(pod, "spec")
        if section(spec, "os").get("name") == "windows":
            return
        common = section(spec, "securityContext").get("appArmorProfile")
        for _, container in _containers("spec", spec):
            profile = section(container, "securityContext").get("appArmorProfile") or common
            key, text = f"{APP_ARMOR}{container.get('name', '')}", _app_armor_annotation(profile or {})
            if text and key not in section(pod, "metadata", "annotations"):
                pod["metadata"].setdefault("annotations", {})[key] = text

    return replace(strategy, prepare_create=prepare_create)


def _app_armor_annotation(profile: JsonObject) -> str:
    if profile.get("type") == "Localhost" and profile.get("localhostProfile"):
        return f"localhost/{profile['localhostProfile']}"
    return {"Unconfined": "unconfined", "RuntimeDefault": "runtime/default"}.get(profile.get("type", ""), "")


def _with_older_binding(strategy: Strategy) -> Strategy:
    endpoints = {
        name: bind_to_any_name if endpoint is bind else endpoint
        for name, endpoint in strategy.endpoints.items()
    }
    return replace(strategy, endpoints=endpoints)


def _drop_image_volumes(spec: JsonObject, old: JsonObject) -> None:
    """Drop volumes with images, and their mounts, unless the old Pod has one."""
    if any("image" in volume for volume in items(old, "volumes")):
        return
    gone = {volume.get("name") for volume in items(spec, "volumes") if volume.get("image") is not None}
    for owner, field in ((spec, "volumes"), *((item, "volumeMounts") for _, item in _containers("", spec))):
        kept = [item for item in items(owner, field) if item.get("name") not in gone]
        if len(kept) < len(items(owner, field)):
            owner[field] = kept
            if not kept:
                del owner[field]


def _dropping(
    strategy: Strategy, path: tuple[str, ...], drop: Callable[[JsonObject, JsonObject], None]
) -> Strategy:
    """Drop a part of a Pod's spec, which depends on the old spec, before the kind prepares an object."""

    def prepare_create(new: JsonObject) -> None:
        drop(section(new, *path), {})
        strategy.prepare_create(new)

    def prepare_update(new: JsonObject, old: JsonObject) -> None:
        drop(section(new, *path), section(old, *path))
        strategy.prepare_update(new, old)

    return replace(strategy, prepare_create=prepare_create, prepare_update=prepare_update)


def _own_restart_policies(spec: JsonObject) -> list[JsonObject]:
    """Return the containers with their own restart policy, which only sidecars could have before the gate ContainerRestartRules."""
    return [
        container
        for where, container in _containers("", spec)
        if container.get("restartPolicy")
        and not (where.startswith(".initContainers") and container["restartPolicy"] == "Always")
    ]


def _drop_restart_policies(spec: JsonObject, old: JsonObject) -> None:
    for container in () if _own_restart_policies(old) else _own_restart_policies(spec):
        del container["restartPolicy"]


def _without_restart_policies(path: tuple[str, ...]) -> Callable[[Strategy], Strategy]:
    return lambda strategy: _dropping(strategy, path, _drop_restart_policies)


def _with_older_pod_resources(strategy: Strategy) -> Strategy:
    """Set the defaults of pod-level resources when an object is read, before admission, and keep none in updates."""

    def default(pod: JsonObject) -> None:
        strategy.default(pod)
        default_pod_resources(section(pod, "spec"), complete=False)

    def prepare_create(pod: JsonObject) -> None:
        given = copy(section(pod, "spec"))
        strategy.prepare_create(pod)
        restore(pod["spec"], given, "resources")
        pod["status"]["qosClass"] = qos_class(pod)

    def prepare_update(new: JsonObject, old: JsonObject) -> None:
        given = copy(section(new, "spec"))
        strategy.prepare_update(new, old)
        restore(new["spec"], given, "resources")

    return replace(strategy, default=default, prepare_create=prepare_create, prepare_update=prepare_update)


def _with_given_qos_class(strategy: Strategy) -> Strategy:
    """Keep the QoS class that a new Pod is sent with."""

    def prepare_create(pod: JsonObject) -> None:
        given = section(pod, "status").get("qosClass")
        strategy.prepare_create(pod)
        if given:
            pod["status"]["qosClass"] = given

    return replace(strategy, prepare_create=prepare_create, status_on_create=True)


def _without_scheduling_default(strategy: Strategy) -> Strategy:
    """Set no default for a field that a CSIDriver does not have yet: it would count as a change in each update."""

    def default(driver: JsonObject) -> None:
        strategy.default(driver)
        driver["spec"].pop("preventPodSchedulingIfMissing", None)

    return replace(strategy, default=default)


def _warning_about_formats_of_strings(strategy: Strategy) -> Strategy:
    def warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
        return crd_warnings(new, old=old, only_strings=True)

    return replace(strategy, warnings=warnings)


def _with_older_form_warnings(strategy: Strategy) -> Strategy:
    """Warn about the addresses of a Service that Go's newer parser rejects, and nothing else about their form."""

    def warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
        spec = section(new, "spec")
        single = {"spec.loadBalancerIP": spec["loadBalancerIP"]} if spec.get("loadBalancerIP") else {}
        addresses = single | {
            f"spec.{field}[{index}]": text
            for field in ("clusterIPs", "externalIPs", "loadBalancerSourceRanges")
            for index, text in enumerate(items(spec, field))
            if text != "None"
        }
        found = [text for text in strategy.warnings(new, old) if not ip_checks.is_form_warning(text)]
        found += (text for path in addresses for text in ip_checks.older_form_warnings(path, addresses[path]))
        return found

    return replace(strategy, warnings=warnings)


def _expressions(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the CEL expressions of a CustomResourceDefinition, webhook configuration or policy, with their fields."""
    if isinstance(value, list):
        for index, item in enumerate(cast(list[Any], value)):
            yield from _expressions(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, item in cast(JsonObject, value).items():
            where = f"{path}.{name}" if path else name
            if isinstance(item, str) and (name == "rule" or name.lower().endswith("expression")):
                yield where, item
            elif name not in ("default", "enum", "example", "metadata"):
                yield from _expressions(item, where)


def _without_functions(functions: Sequence[str]) -> Callable[[Strategy], Strategy]:
    """Reject expressions that call one of these functions."""
    names = frozenset(functions)

    def check(obj: JsonObject) -> Iterator[FieldError]:
        for path, text in _expressions(obj):
            for name in sorted(names & cel.called_functions(text)):
                yield problems.invalid(path, text, f"compilation failed: undeclared reference to '{name}'")

    return lambda strategy: _checked(strategy, check)


# The functions that new expressions can call since a minor version. kube-apiserver allows most of them one version
# after it can evaluate them, so that the previous version, after a rollback, can evaluate all stored expressions.
_FUNCTIONS: Mapping[int, Sequence[str]] = {
    32: (
        *("fieldSelector", "labelSelector", "format.named"),
        *(
            f"format.{name}"
            for name in (
                *("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "labelValue", "uri"),
                *("dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix", "uuid", "byte"),
                *("date", "datetime"),
            )
        ),
    ),
    33: (
        *("all/2", "exists/2", "existsOne/2", "transformList/2", "transformMap/2", "transformMapEntry/2"),
        *("existsOne", "first", "last", "optional.unwrap", "unwrapOpt"),
    ),
    34: ("semver", "isSemver"),
    35: ("slice", "flatten", "sort", "@sortByAssociatedKeys", "lists.range", "reverse", "distinct"),
}
_DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
_KINDS_WITH_EXPRESSIONS = (
    _DEFINITION,
    *(
        ("admissionregistration.k8s.io", f"{kind}{what}")
        for kind in ("Validating", "Mutating")
        for what in ("AdmissionPolicy", "WebhookConfiguration")
    ),
)
_KINDS_WITH_ADDRESSES = (
    *_POD_SPECS,
    *(("", kind) for kind in ("Endpoints", "Node", "Service")),
    ("discovery.k8s.io", "EndpointSlice"),
    *(("networking.k8s.io", kind) for kind in ("Ingress", "NetworkPolicy")),
)
_STATEFUL_SET = ("apps", "StatefulSet")
_SERVICE, _JOB, _AUTOSCALER = ("", "Service"), ("batch", "Job"), ("autoscaling", "HorizontalPodAutoscaler")
_CHANGES = (
    _Change([("", "Endpoints")], lambda strategy: replace(strategy, deprecation=""), before=33),
    _Change(
        [("", "Pod")],
        lambda strategy: replace(strategy, has_generation=False),
        before=33,
    ),
    _Change([_AUTOSCALER], lambda strategy: replace(strategy, has_generation=False), gate="HPAGeneration"),
    _Change([_AUTOSCALER], lambda strategy: _checked(strategy, _least_replicas), gate="HPAScaleToZero"),
    _Change(
        [_SERVICE],
        lambda strategy: replace(strategy, name_check=names.dns1035_label),
        gate="RelaxedServiceNameValidation",
    ),
    _Change(
        [_SERVICE],
        lambda strategy: _checked(strategy, _traffic_distribution),
        gate="PreferSameTrafficDistribution",
    ),
    _Change(_KINDS_WITH_ADDRESSES, _accepting(_is_older_form), gate="StrictIPCIDRValidation"),
    _Change(
        [kind for kind in _KINDS_WITH_ADDRESSES if kind != _SERVICE],
        _without_warnings(ip_checks.is_form_warning),
        before=33,
    ),
    _Change([*_POD_SPECS], _accepting(_is_about_resized_init_container), before=36),
    _Change([_SERVICE], _without_warnings_like("is ignored for headless services$"), before=34),
    _Change([_SERVICE], _without_warnings_like("^spec.trafficDistribution"), before=35),
    _Change([_SERVICE], _without_warnings_like("^spec.externalIPs is deprecated"), before=36),
    _Change(
        [*_POD_SPECS],
        _without_warnings_like("^volume .*( has no sources provided|: overlapping paths: )"),
        before=32,
    ),
    _Change([*_POD_SPECS], _without_warnings_like(r"values\[\d+\]: .* is invalid, "), before=33),
    _Change([("", "ServiceAccount")], _without_warnings_like("enforce-mountable-secrets"), before=32),
    _Change([_STATEFUL_SET], _without_warnings_like("^spec.revisionHistoryLimit: "), before=33),
    _Change([_DEFINITION], _without_warnings_like("^unrecognized format "), before=34),
    _Change([_DEFINITION], _warning_about_formats_of_strings, before=36, since=34),
    _Change([_SERVICE], _with_older_form_warnings, before=33),
    _Change([("storage.k8s.io", "CSIDriver")], _without_scheduling_default, before=36),
    _Change([_AUTOSCALER], _accepting(lambda error: error.detail == autoscaling.GROUP_MISSING), before=34),
    _Change(
        [("storage.k8s.io", "CSIDriver")],
        _without_warnings_like("^spec.serviceAccountTokenInSecrets "),
        gate="CSIServiceAccountTokenSecrets",
    ),
    _Change(
        [("", "ResourceQuota")],
        lambda strategy: _checked(strategy, _claim_scope),
        before=33,
    ),
    _Change([("batch", "CronJob")], _without_condition_defaults, before=34),
    _Change([("", "Pod")], _with_app_armor_annotations, before=34),
    _Change([("", "Pod"), ("", "Binding")], _with_older_binding, before=37),
    _Change(
        [_JOB],
        _update_checked(_template_of_started_job),
        gate="MutableSchedulingDirectivesForSuspendedJobs",
    ),
    _Change([_JOB], _update_checked(_template_resources), gate="MutablePodResourcesForSuspendedJobs"),
    _Change(
        [("", "PersistentVolumeClaim")],
        _update_checked(_smaller_request),
        gate="RecoverVolumeExpansionFailure",
    ),
    *(
        _Change(_KINDS_WITH_EXPRESSIONS, _without_functions(functions), before=minor)
        for minor, functions in _FUNCTIONS.items()
    ),
    *_pod_change(_environment_names, gate="RelaxedEnvironmentVariableValidation"),
    *_pod_change(_search_paths, gate="RelaxedDNSSearchValidation"),
    *_pod_change(_sleeps, gate="PodLifecycleSleepActionAllowZero"),
    *_pod_change(_restart_policies, before=34),
    *(
        _Change([kind], _without_restart_policies(path), gate="ContainerRestartRules", since=34)
        for kind, path in _POD_SPECS.items()
    ),
    _Change([("", "Pod")], _with_older_pod_resources, gate="PodLevelResourcesFixDefaulting", since=34),
    _Change([("", "Pod")], _with_given_qos_class, before=37),
    # After the changes above, which check Pods.
    _Change([_STATEFUL_SET], _accepting(_is_in_stateful_pod), before=34),
    _Change([_STATEFUL_SET], _accepting(lambda error: error.field == "spec.serviceName"), before=33),
)
# Kinds whose generation kube-apiserver counts before it drops fields.
_COUNTED_BEFORE_DROPPING = {
    ("discovery.k8s.io", "EndpointSlice"),
    ("policy", "PodDisruptionBudget"),
    ("resource.k8s.io", "ResourceSlice"),
}
# Group versions that only earlier releases serve.
_DEPRECATED_VERSIONS: Mapping[tuple[str, str], str] = {
    ("flowcontrol.apiserver.k8s.io", "v1beta3"): "deprecated in v1.29+, unavailable in v1.32+",
}


def strategy_in_release(strategy: Strategy, gvk: GroupVersionKind, types: TypeTable) -> Strategy:
    """Return the strategy of a kind in the release whose types are given."""
    release = types.release
    for change in () if release.is_current else _CHANGES:
        if (gvk.group, gvk.kind) in change.kinds and change.applies(release):
            strategy = change.apply(strategy)
    if when := _DEPRECATED_VERSIONS.get((gvk.group, gvk.version)):
        text = f"{gvk.group}/{gvk.version} {gvk.kind} is {when}; use {gvk.group}/v1 {gvk.kind}"
        strategy = replace(strategy, deprecation=text, storage_version="v1")
    dropped = types.dropped_fields(gvk)
    if dropped is None:
        return strategy
    # The newest release has no defaults for fields that it drops.
    kept = strategy.prepare_status_update
    strategy = _without(strategy if release.is_current else _without_defaults(strategy, dropped), dropped)
    if (gvk.group, gvk.kind) in _COUNTED_BEFORE_DROPPING:
        strategy = replace(strategy, generation_sees_dropped_fields=True)
    if (gvk.group, gvk.kind) == ("", "Node"):
        # kube-apiserver drops nothing from what kubelets report.
        strategy = replace(strategy, prepare_status_update=kept)
    path = _POD_SPECS.get((gvk.group, gvk.kind))
    if path is None or release.enabled("ImageVolume"):
        return strategy
    # Before the field of such volumes is dropped.
    return _dropping(strategy, path, _drop_image_volumes)


def _without_defaults(strategy: Strategy, dropped: DroppedFields) -> Strategy:
    """Set no defaults of fields whose feature gates are off."""

    def default(obj: JsonObject) -> None:
        used = dropped.used(obj)
        strategy.default(obj)
        dropped.drop(obj, kept=used)

    return replace(strategy, default=default)


def _without(strategy: Strategy, dropped: DroppedFields) -> Strategy:
    """Drop fields whose feature gates are off before the kind prepares an object."""

    def prepare_create(new: JsonObject) -> None:
        dropped.drop(new)
        strategy.prepare_create(new)

    def prepare_update(new: JsonObject, old: JsonObject) -> None:
        dropped.drop_unless_used(new, old)
        strategy.prepare_update(new, old)

    def prepare_status_update(new: JsonObject, old: JsonObject) -> None:
        dropped.drop_unless_used(new, old)
        strategy.prepare_status_update(new, old)

    return replace(
        strategy,
        prepare_create=prepare_create,
        prepare_update=prepare_update,
        prepare_status_update=prepare_status_update,
    )
