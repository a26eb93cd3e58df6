"""Ingresses, their classes and network policies."""

from collections.abc import Iterator, Sequence
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, object_age, selector_text
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column, Strategy

GROUP = "networking.k8s.io"
_OLD_CLASS = "kubernetes.io/ingress.class"
_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_PATH_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_MAX_CONTROLLER = 250
# In the order in which policies, unlike all else, tell them.
_POLICY_PROTOCOLS = ("TCP", "UDP", "SCTP")
_SHOWN_HOSTS = 3


def _validate_ingress(ingress: JsonObject) -> list[FieldError]:
    spec: JsonObject = section(ingress, "spec")
    rules: Sequence[JsonObject] = items(spec, "rules")
    backend: JsonObject | None = spec.get("defaultBackend")
    errors: list[FieldError] = []
    if not rules and backend is None:
        text = "either `defaultBackend` or `rules` must be specified"
        errors.append(problems.invalid("spec", None, text))
    if backend is not None:
        errors += _backend(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        errors += _rule(rule, f"spec.rules[{index}]")
    for index, item in enumerate(items(spec, "tls")):
        for position, host in enumerate(items(item, "hosts")):
            errors += check.named(f"spec.tls[{index}].hosts[{position}]", host, _host_troubles(host))
        if secret := item.get("secretName"):
            errors += check.named(f"spec.tls[{index}].secretName", secret, names.dns1123_subdomain(secret))
    if (name := spec.get("ingressClassName")) is not None:
        errors += check.named("spec.ingressClassName", name, names.dns1123_subdomain(name))
    return errors


def _host_troubles(host: str) -> list[str]:
    return names.wildcard_dns1123_subdomain(host) if "*" in host else names.dns1123_subdomain(host)


def _rule(rule: JsonObject, path: str) -> Iterator[FieldError]:
    if host := rule.get("host"):
        if ip_checks.is_address(host):
            yield problems.invalid(f"{path}.host", host, "must be a DNS name, not an IP address")
        yield from check.named(f"{path}.host", host, _host_troubles(host))
    http: JsonObject | None = rule.get("http")
    if http is None:
        return
    if not http.get("paths"):
        yield problems.required(f"{path}.http.paths")
    for index, item in enumerate(items(http, "paths")):
        yield from _path(item, f"{path}.http.paths[{index}]")


def _path(item: JsonObject, path: str) -> Iterator[FieldError]:
    kind, text = item.get("pathType"), item.get("path", "")
    if kind is None:
        yield problems.required(f"{path}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield problems.not_supported(f"{path}.pathType", kind, _PATH_TYPES)
    elif (kind != "ImplementationSpecific" or text) and not text.startswith("/"):
        yield problems.invalid(f"{path}.path", text, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        for part in _PATH_PARTS:
            if part in text:
                yield problems.invalid(f"{path}.path", text, f"must not contain '{part}'")
        for end in ("/..", "/."):
            if text.endswith(end):
                yield problems.invalid(f"{path}.path", text, f"cannot end with '{end}'")
    yield from _backend(section(item, "backend"), f"{path}.backend")


def _backend(backend: JsonObject, path: str) -> Iterator[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield problems.invalid(path, "", "cannot set both resource and service backends")
    elif resource is None and service is None:
        yield problems.invalid(path, "", "resource or service backend is required")
    elif resource is not None:
        yield from check.reference(resource, f"{path}.resource")
    elif service is not None:
        name = service.get("name", "")
        if not name:
            yield problems.required(f"{path}.service.name")
        else:
            yield from check.named(f"{path}.service.name", name, names.dns1123_label(name))
        port: JsonObject = section(service, "port")
        if port.get("name") and port.get("number"):
            yield problems.invalid(path, "", "cannot set both port name & port number")
        elif port.get("name"):
            yield from check.named(f"{path}.service.port.name", port["name"], names.port_name(port["name"]))
        elif port.get("number"):
            yield from check.port(f"{path}.service.port.number", port["number"])
        else:
            yield problems.required(path, "port name or number is required")


def _ingress_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    old_way = _OLD_CLASS in (new["metadata"].get("annotations") or {})
    if old is not None or not old_way or new["spec"].get("ingressClassName") is not None:
        return []
    return [
        f"annotation {problems.quoted(_OLD_CLASS)} is deprecated, please use 'spec.ingressClassName' instead"
    ]


def _ingress_row(ingress: JsonObject, now: float) -> list[Any]:
    spec, status = section(ingress, "spec"), section(ingress, "status")
    hosts = [rule["host"] for rule in items(spec, "rules") if rule.get("host")]
    more = len(hosts) - _SHOWN_HOSTS
    shown = ",".join(hosts[:_SHOWN_HOSTS]) or "*"
    points: Sequence[JsonObject] = items(section(status, "loadBalancer"), "ingress")
    addresses = {item.get("ip") or item.get("hostname") or "" for item in points} - {""}
    return [
        ingress["metadata"]["name"],
        spec.get("ingressClassName") or NONE,
        f"{shown} + {more} more..." if more > 0 else shown,
        ",".join(sorted(addresses)),
        "80, 443" if spec.get("tls") else "80",
        object_age(ingress, now),
    ]


def _default_class(obj: JsonObject) -> None:
    parameters: JsonObject | None = section(obj, "spec").get("parameters")
    if parameters is not None:
        parameters["scope"] = "Cluster" if parameters.get("scope") is None else parameters["scope"]


def _validate_class(obj: JsonObject) -> list[FieldError]:
    spec: JsonObject = section(obj, "spec")
    errors: list[FieldError] = []
    controller = spec.get("controller", "")
    if len(controller.encode()) > _MAX_CONTROLLER:
        errors.append(problems.too_long("spec.controller", _MAX_CONTROLLER))
    errors += check.domain_prefixed_path("spec.controller", controller)
    if (parameters := spec.get("parameters")) is not None:
        errors += _parameters(parameters, "spec.parameters")
    return errors


def _parameters(parameters: JsonObject, path: str) -> Iterator[FieldError]:
    yield from check.reference(parameters, path)
    scope, namespace, where = parameters.get("scope"), parameters.get("namespace"), f"{path}.namespace"
    if scope not in ("Cluster", "Namespace"):
        yield problems.not_supported(f"{path}.scope", scope, ("Cluster", "Namespace"))
    elif scope == "Cluster" and namespace is not None:
        yield problems.forbidden(where, "`parameters.scope` is set to 'Cluster'")
    elif scope == "Namespace" and namespace is None:
        yield problems.required(where, "`parameters.scope` is set to 'Namespace'")
    elif namespace is not None:
        yield from check.named(where, namespace, names.dns1123_label(namespace))


def _update_class(new: JsonObject, old: JsonObject) -> list[FieldError]:
    after, before = section(new, "spec"), section(old, "spec")
    errors = check.unchanged("spec.controller", after.get("controller", ""), before.get("controller", ""))
    return [*errors, *_validate_class(new)]


def _class_row(obj: JsonObject, now: float) -> list[Any]:
    spec: JsonObject = section(obj, "spec")
    name = obj["metadata"]["name"]
    if section(obj["metadata"], "annotations").get(_DEFAULT_CLASS) == "true":
        name += " (default)"
    shown, found = NONE, spec.get("parameters")
    if found is not None:
        group = f".{found['apiGroup']}" if found.get("apiGroup") is not None else ""
        shown = f"{found.get('kind', '')}{group}/{found.get('name', '')}"
    return [name, spec.get("controller", ""), shown, object_age(obj, now)]


def _default_policy(policy: JsonObject) -> None:
    spec: JsonObject = policy.setdefault("spec", {})
    for part in ("ingress", "egress"):
        for rule in items(spec, part):
            for port in items(rule, "ports"):
                port.setdefault("protocol", "TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _validate_policy(policy: JsonObject) -> list[FieldError]:
    spec: JsonObject = section(policy, "spec")
    errors = check.label_selector("spec.podSelector", spec.get("podSelector"))
    for part, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(items(spec, part)):
            path = f"spec.{part}[{index}]"
            for position, port in enumerate(items(rule, "ports")):
                errors += _policy_port(port, f"{path}.ports[{position}]")
            for position, peer in enumerate(items(rule, peers)):
                errors += _peer(peer, f"{path}.{peers}[{position}]")
    kinds: Sequence[str] = items(spec, "policyTypes")
    if len(kinds) > 2:
        text = "may not specify more than two policyTypes"
        return [*errors, problems.invalid("spec.policyTypes", kinds, text)]
    for index, kind in enumerate(kinds):
        errors += check.one_of(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))
    return errors


def _policy_port(port: JsonObject, path: str) -> Iterator[FieldError]:
    yield from check.one_of(f"{path}.protocol", port.get("protocol"), _POLICY_PROTOCOLS)
    number, end = port.get("port"), port.get("endPort")
    if number is None:
        if end is not None:
            yield problems.invalid(
                f"{path}.endPort", end, "may not be specified when `port` is not specified"
            )
        return
    if isinstance(number, int):
        yield from check.port(f"{path}.port", number)
        if end is not None and end < number:
            # The real server, too, shows the port here.
            yield problems.invalid(f"{path}.endPort", number, "must be greater than or equal to `port`")
    else:
        yield from check.named(f"{path}.port", number, names.port_name(number))
        if end is not None:
            text = "may not be specified when `port` is non-numeric"
            yield problems.invalid(f"{path}.endPort", end, text)


def _peer(peer: JsonObject, path: str) -> Iterator[FieldError]:
    given = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
    if not given:
        yield problems.required(path, "must specify a peer")
        return
    if "ipBlock" in given and len(given) > 1:
        yield problems.forbidden(path, "may not specify both ipBlock and another peer")
    for name in given:
        if name != "ipBlock":
            yield from check.label_selector(f"{path}.{name}", peer[name])
            continue
        block: JsonObject = peer["ipBlock"]
        if not block.get("cidr"):
            yield problems.required(f"{path}.ipBlock.cidr")
            continue
        yield from ip_checks.network(f"{path}.ipBlock.cidr", block["cidr"])
        if (whole := ip_checks.parse_network(block["cidr"])) is not None:
            yield from _exceptions(items(block, "except"), whole, f"{path}.ipBlock.except")


def _exceptions(given: Sequence[str], whole: ip_checks.Network, path: str) -> Iterator[FieldError]:
    for index, item in enumerate(given):
        yield from ip_checks.network(f"{path}[{index}]", item)
        part = ip_checks.parse_network(item)
        if part is None:
            continue
        if part.network_address not in whole or part.prefixlen <= whole.prefixlen:
            yield problems.invalid(f"{path}[{index}]", item, "must be a strict subset of `cidr`")


def _policy_row(policy: JsonObject, now: float) -> list[Any]:
    selector = selector_text(section(policy, "spec").get("podSelector"))
    return [policy["metadata"]["name"], selector, object_age(policy, now)]


STRATEGIES = {
    (GROUP, "Ingress"): Strategy(
        prepare_status_update=keep_spec,
        validate=_validate_ingress,
        warnings=_ingress_warnings,
        validate_update=lambda new, old: _validate_ingress(new),
        has_generation=True,
        columns=(NAME, Column("Class"), Column("Hosts"), Column("Address"), Column("Ports"), AGE),
        row=_ingress_row,
        reset_fields=SPEC_AND_STATUS,
    ),
    (GROUP, "IngressClass"): Strategy(
        default=_default_class,
        validate=_validate_class,
        validate_update=_update_class,
        has_generation=True,
        columns=(NAME, Column("Controller"), Column("Parameters"), AGE),
        row=_class_row,
    ),
    (GROUP, "NetworkPolicy"): Strategy(
        default=_default_policy,
        validate=_validate_policy,
        validate_update=lambda new, old: _validate_policy(new),
        has_generation=True,
        columns=(NAME, Column("Pod-Selector"), AGE),
        row=_policy_row,
    ),
}
