"""Networking: Ingresses, network policies, endpoints, and the address ranges of Services."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.printing import (
    AGE,
    NAME,
    NONE,
    UNSET,
    cell,
    class_name,
    object_age,
    printed,
    selector_text,
    some_of,
)
from kubewright.devserver.builtin.rules import (
    FieldRule,
    Rules,
    absent,
    changes,
    defaults,
    given,
    immutable,
    max_bytes,
    missing,
    named,
    one_of,
    required,
    rules,
    unique,
    validated,
)
from kubewright.devserver.builtin.writes import STATUS_KEEPS_SPEC
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Strategy, TableColumn

GROUP = "networking.k8s.io"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_ENDPOINTS_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
_SLICE_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_OLD_CLASS = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_DEPRECATED_ENDPOINTS = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
_MAX_SHOWN = 3
_MAX_ADDRESSES = 100


# Ingresses


def _host_name(path: str, host: str | None) -> list[FieldError]:
    syntax = names.wildcard_dns1123_subdomain if "*" in (host or "") else names.dns1123_subdomain
    return check.named(path, host or "", syntax(host or ""))


def _rule_host(path: str, host: str | None) -> Iterator[FieldError]:
    if host:
        if ip_checks.is_address(host):
            yield problems.invalid(path, host, "must be a DNS name, not an IP address")
        yield from _host_name(path, host)


def _http_path(path: str, item: JsonObject) -> Iterator[FieldError]:
    kind, text = item.get("pathType"), item.get("path", "")
    if kind is None:
        yield problems.required(f"{path}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield problems.not_supported(f"{path}.pathType", kind, _PATH_TYPES)
    elif (kind != "ImplementationSpecific" or text) and not text.startswith("/"):
        yield problems.invalid(f"{path}.path", text, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        for part in ("//", "/./", "/../", "%2f", "%2F"):
            if part in text:
                yield problems.invalid(f"{path}.path", text, f"must not contain '{part}'")
        for end in ("/..", "/."):
            if text.endswith(end):
                yield problems.invalid(f"{path}.path", text, f"cannot end with '{end}'")
    yield from _backend(f"{path}.backend", section(item, "backend"))


def _backend(path: str, backend: JsonObject) -> Iterator[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield problems.invalid(path, "", "cannot set both resource and service backends")
    elif resource is None and service is None:
        yield problems.invalid(path, "", "resource or service backend is required")
    elif resource is not None:
        yield from check.reference(f"{path}.resource", resource)
    elif service is not None:
        yield from named(names.dns1123_label, required=True)(f"{path}.service.name", service.get("name"))
        port: JsonObject = section(service, "port")
        if port.get("name") and port.get("number"):
            yield problems.invalid(path, "", "cannot set both port name & port number")
        elif port.get("name"):
            yield from check.named(f"{path}.service.port.name", port["name"], names.port_name(port["name"]))
        elif port.get("number"):
            yield from check.port(f"{path}.service.port.number", port["number"])
        else:
            yield problems.required(path, "port name or number is required")


def _some_backend(path: str, spec: JsonObject | None) -> Iterator[FieldError]:
    if not items(spec or {}, "rules") and (spec or {}).get("defaultBackend") is None:
        yield problems.invalid(path, None, "either `defaultBackend` or `rules` must be specified")


_INGRESS = rules(
    ("spec", _some_backend),
    ("spec.defaultBackend?", _backend),
    ("spec.rules[].host", _rule_host),
    ("spec.rules[].http?.paths", required()),
    ("spec.rules[].http?.paths[]", _http_path),
    ("spec.tls[].hosts[]", _host_name),
    ("spec.tls[].secretName", named(names.dns1123_subdomain)),
    ("spec.ingressClassName?", named(names.dns1123_subdomain, empty=True)),
)


def _warn_of_ingress(new: JsonObject, old: JsonObject | None) -> list[str]:
    annotated = _OLD_CLASS in (new["metadata"].get("annotations") or {})
    if old is not None or not annotated or new["spec"].get("ingressClassName") is not None:
        return []
    return [
        f"annotation {problems.quoted(_OLD_CLASS)} is deprecated, please use 'spec.ingressClassName' instead"
    ]


def _warn_of_slice(new: JsonObject, old: JsonObject | None) -> list[str]:
    deprecated = old is None and new.get("addressType") == "FQDN"
    found = ["spec.addressType: FQDN endpoints are deprecated"] if deprecated else []
    if section(new["metadata"], "labels").get(_MANAGED_BY) in _SLICE_CONTROLLERS:
        return found
    for index, endpoint in enumerate(items(new, "endpoints")):
        for position, address in enumerate(items(endpoint, "addresses")):
            found += ip_checks.form_warnings(f"endpoints[{index}].addresses[{position}]", address)
    return found


def _warn_of_endpoints(new: JsonObject, old: JsonObject | None) -> list[str]:
    if section(new["metadata"], "labels").get(_ENDPOINTS_MANAGED_BY) == "endpoint-controller":
        return []
    return [
        warning
        for index, subset in enumerate(items(new, "subsets"))
        for field in ("addresses", "notReadyAddresses")
        for position, address in enumerate(items(subset, field))
        for warning in ip_checks.form_warnings(
            f"subsets[{index}].{field}[{position}].ip", address.get("ip", "")
        )
    ]


def _warn_of_policy(new: JsonObject, old: JsonObject | None) -> list[str]:
    found: list[str] = []
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(items(section(new, "spec"), direction)):
            for position, peer in enumerate(items(rule, peers)):
                block = section(peer, "ipBlock")
                path = f"spec.{direction}[{index}].{peers}[{position}].ipBlock"
                found += ip_checks.form_warnings(f"{path}.cidr", block.get("cidr", ""))
                for number, text in enumerate(items(block, "except")):
                    found += ip_checks.form_warnings(f"{path}.except[{number}]", text)
    return found


def _ingress_hosts(ingress: JsonObject) -> str:
    found = [rule["host"] for rule in items(section(ingress, "spec"), "rules") if rule.get("host")]
    return some_of(found, _MAX_SHOWN, "*")


def _ingress_addresses(ingress: JsonObject) -> str:
    points: Sequence[JsonObject] = items(section(ingress, "status", "loadBalancer"), "ingress")
    return ",".join(sorted({item.get("ip") or item.get("hostname") or "" for item in points} - {""}))


_PARAMETERS = rules(
    ("apiGroup?", named(names.dns1123_subdomain, empty=True)),
    ("kind", named(names.path_segment)),
    ("name", named(names.path_segment)),
    ("scope", one_of("Cluster", "Namespace")),
    ("{scope=Cluster}.namespace", absent("`parameters.scope` is set to 'Cluster'")),
    (
        "{scope=Namespace}.namespace",
        given(named(names.dns1123_label, empty=True), "`parameters.scope` is set to 'Namespace'"),
    ),
)
_INGRESS_CLASS = rules(
    ("spec.controller", max_bytes(250), lambda path, value: check.domain_prefixed_path(path, value or "")),
    ("spec.parameters?", _PARAMETERS),
    # Declared.
    ("spec.parameters?.kind", required()),
    ("spec.parameters?.name", required()),
)


def _class_parameters(obj: JsonObject) -> str:
    found: JsonObject | None = section(obj, "spec").get("parameters")
    if found is None:
        return NONE
    group = f".{found['apiGroup']}" if found.get("apiGroup") is not None else ""
    return f"{found.get('kind', '')}{group}/{found.get('name', '')}"


# Network policies


_DEFAULT_PORTS = defaults(
    ("spec.ingress[].ports[].protocol", "TCP"), ("spec.egress[].ports[].protocol", "TCP")
)


def _default_policy(policy: JsonObject) -> None:
    _DEFAULT_PORTS(policy)
    spec = policy["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _policy_port(path: str, port: JsonObject) -> Iterator[FieldError]:
    # Unlike other kinds, policies list the protocols in this order.
    yield from check.one_of(f"{path}.protocol", port.get("protocol"), ("TCP", "UDP", "SCTP"))
    number, end = port.get("port"), port.get("endPort")
    if number is None:
        if end is not None:
            text = "may not be specified when `port` is not specified"
            yield problems.invalid(f"{path}.endPort", end, text)
    elif isinstance(number, int):
        yield from check.port(f"{path}.port", number)
        if end is not None and end < number:
            yield problems.invalid(f"{path}.endPort", end, "must be greater than or equal to `port`")
        if end is not None:
            yield from check.port(f"{path}.endPort", end)
    else:
        if end is not None:
            text = "may not be specified when `port` is non-numeric"
            yield problems.invalid(f"{path}.endPort", end, text)
        yield from check.named(f"{path}.port", number, names.port_name(number))


def _peer(path: str, peer: JsonObject) -> Iterator[FieldError]:
    given = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
    for name in given:
        if name == "ipBlock":
            yield from _ip_block(f"{path}.ipBlock", peer[name])
        else:
            yield from check.label_selector(f"{path}.{name}", peer[name])
    if not given:
        yield problems.required(path, "must specify a peer")
    elif "ipBlock" in given and len(given) > 1:
        yield problems.forbidden(path, "may not specify both ipBlock and another peer")


def _ip_block(path: str, block: JsonObject) -> Iterator[FieldError]:
    if not block.get("cidr"):
        return
    yield from ip_checks.network(f"{path}.cidr", block["cidr"])
    whole = ip_checks.parse_network(block["cidr"])
    for index, item in enumerate(items(block, "except") if whole is not None else ()):
        yield from ip_checks.network(f"{path}.except[{index}]", item)
        part = ip_checks.parse_network(item)
        if whole is None or part is None:
            continue
        if part.network_address not in whole or part.prefixlen <= whole.prefixlen:
            yield problems.invalid(f"{path}.except[{index}]", item, "must be a strict subset of `cidr`")


def _policy_types(path: str, kinds: Sequence[str] | None) -> Iterator[FieldError]:
    if len(kinds or ()) > 2:
        yield problems.invalid(path, kinds, "may not specify more than two policyTypes")
        return
    for index, kind in enumerate(kinds or ()):
        yield from check.one_of(f"{path}[{index}]", kind, ("Ingress", "Egress"))


_POLICY = rules(
    ("spec.podSelector", check.label_selector),
    ("spec.ingress[].ports[]", _policy_port),
    ("spec.ingress[].from[]", _peer),
    ("spec.egress[].ports[]", _policy_port),
    ("spec.egress[].to[]", _peer),
    ("spec.policyTypes", _policy_types),
    # Declared.
    ("spec.ingress[].from[].ipBlock?.cidr", required()),
    ("spec.egress[].to[].ipBlock?.cidr", required()),
)


# Endpoints and EndpointSlices. The real server refuses loopback addresses. Here they are allowed, because the Pods of a
# dev cluster, and webhooks under test, listen on the loopback network of this machine.


def _special_ip(path: str, value: str | None) -> list[FieldError]:
    """Check an address of an endpoint once more, as the real server does, to exclude special addresses."""
    if not ip_checks.is_address(value or ""):
        return [problems.invalid(path, value or "", "must be a valid IP address")]
    return ip_checks.endpoint_address(path, value or "", allow_loopback=True)


def _subset_ports(path: str, ports: Sequence[JsonObject] | None) -> Iterator[FieldError]:
    for index, port in enumerate(ports or ()):
        where, several = f"{path}[{index}]", len(ports or ()) > 1
        yield from named(names.dns1123_label, required=several)(f"{where}.name", port.get("name"))
        yield from _ENDPOINT_PORT(where, port)


def _ip_of_family(version: int) -> FieldRule:
    # Only IPv6 addresses must be in canonical form, because older servers accepted other forms of IPv4.
    well_formed = ip_checks.address if version == 4 else ip_checks.canonical_address

    def run(path: str, value: str) -> Iterator[FieldError]:
        if errors := well_formed(path, value):
            yield from errors
            return
        if ip_checks.parse_address(value).version != version:
            # The real server leaves the index out of the path.
            where = path[: path.rindex("[")]
            yield problems.invalid(where, value, f"must be an IPv{version} address")
        yield from ip_checks.endpoint_address(path, value, allow_loopback=True)

    return run


def _domain_name(path: str, value: str) -> Iterator[FieldError]:
    name = value.removesuffix(".")
    if not value:
        yield problems.required(path)
    elif reasons := names.dns1123_subdomain(name):
        yield problems.invalid(path, name, ",".join(reasons))
    elif "." not in name:
        text = "should be a domain with at least two segments separated by dots"
        yield problems.invalid(path, name, text)
    else:
        for label in name.split("."):
            if reasons := names.dns1123_label(label):
                yield problems.invalid(path, label, ",".join(reasons))
                return


def _unique_names(syntax: Callable[[str], list[str]]) -> FieldRule:
    return unique("name", after=rules(("name", named(syntax, empty=True))))


_ENDPOINT_ADDRESS = rules(
    ("ip", lambda path, value: ip_checks.address(path, value or "")),
    ("hostname", named(names.dns1123_label)),
    ("nodeName?", named(names.dns1123_subdomain, empty=True)),
    ("ip", _special_ip),
)
_ENDPOINT_PORT = rules(
    ("port", lambda path, value: check.port(path, value or 0)),
    ("protocol", one_of(*check.PROTOCOLS, required=True)),
    ("appProtocol?", named(names.qualified_name, empty=True)),
)
_SUBSET = rules(
    ("{!addresses}{!notReadyAddresses}", missing("must specify `addresses` or `notReadyAddresses`")),
    ("addresses[]", _ENDPOINT_ADDRESS),
    ("notReadyAddresses[]", _ENDPOINT_ADDRESS),
    ("ports", _subset_ports),
)
_ENDPOINTS = rules(("subsets[]", _SUBSET))


def _few_addresses(path: str, addresses: Sequence[str] | None) -> Iterator[FieldError]:
    if len(addresses or ()) > _MAX_ADDRESSES:
        yield problems.too_many(path, len(addresses or ()), _MAX_ADDRESSES)


_SLICE_PORT = rules(
    ("protocol", one_of(*check.PROTOCOLS)),
    ("appProtocol?", named(names.qualified_name, empty=True)),
)
_SLICE = rules(
    ("ports", unique("name", before=rules(("name", named(names.dns1123_label))), after=_SLICE_PORT)),
)
_ENDPOINT = (
    ("nodeName?", named(names.dns1123_subdomain, empty=True)),
    ("hostname?", named(names.dns1123_label, empty=True)),
    ("hints.forZones", _unique_names(names.label_value)),
    ("hints.forNodes", _unique_names(names.dns1123_subdomain)),
)
_DECLARED_IN_SLICE = rules(("addressType", one_of("FQDN", "IPv4", "IPv6", required=True)))
_DECLARED_IN_ENDPOINTS = rules(("endpoints[].addresses", required(), _few_addresses))
_SLICE_ENDPOINTS = {
    kind: rules(("addresses[]", rule), *_ENDPOINT)
    for kind, rule in (("FQDN", _domain_name), ("IPv4", _ip_of_family(4)), ("IPv6", _ip_of_family(6)))
}
_UNKNOWN_ENDPOINTS = rules(*_ENDPOINT)


def _slice_endpoints(new: JsonObject, old: JsonObject | None = None) -> Iterator[FieldError]:
    if _same_endpoints(new, old):
        return
    checked = _SLICE_ENDPOINTS.get(new.get("addressType", ""), _UNKNOWN_ENDPOINTS)
    for index, endpoint in enumerate(items(new, "endpoints")):
        yield from checked(f"endpoints[{index}]", endpoint)


def _same_endpoints(new: JsonObject, old: JsonObject | None) -> bool:
    """Return True if no endpoint changed; then none is checked again, because older servers accepted others."""
    return old is not None and items(new, "endpoints") == items(old, "endpoints")


def _declared_in_slice(new: JsonObject, old: JsonObject | None = None) -> Iterator[FieldError]:
    yield from _DECLARED_IN_SLICE.validate(new)
    if old is not None:
        yield from immutable("addressType", shown=False)(new, old)
    if not _same_endpoints(new, old):
        yield from _DECLARED_IN_ENDPOINTS.validate(new)


def _endpoints(obj: JsonObject) -> str:
    found: list[str] = []
    for subset in items(obj, "subsets"):
        addresses = [item.get("ip", "") for item in items(subset, "addresses")]
        ports: Sequence[JsonObject] = items(subset, "ports")
        if not ports:
            found += addresses
        for port in ports:
            found += [f"{address}:{port.get('port', 0)}" for address in addresses]
    return some_of(found, _MAX_SHOWN, NONE)


def _slice_ports(obj: JsonObject) -> str:
    return some_of([str(port.get("port") or "*") for port in items(obj, "ports")], _MAX_SHOWN, UNSET)


def _slice_addresses(obj: JsonObject) -> str:
    found = [item for endpoint in items(obj, "endpoints") for item in items(endpoint, "addresses")]
    return some_of(found, _MAX_SHOWN, UNSET)


def _update_slice(new: JsonObject, old: JsonObject) -> None:
    """Increase the generation for a change of labels, which name the Service of a slice, and of dropped fields."""
    labels = section(new["metadata"], "labels") != section(old["metadata"], "labels")
    if labels or not _same_endpoints(new, old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    _drop_topology(new)


def _drop_topology(slice_: JsonObject) -> None:
    """Drop a field of v1beta1, which v1 has for what was written by it."""
    for endpoint in items(slice_, "endpoints"):
        endpoint.pop("deprecatedTopology", None)


# ServiceCIDRs and IPAddresses


def _address_name(name: str) -> list[str]:
    return [error.detail for error in ip_checks.canonical_address("", name)]


def _address_row(obj: JsonObject, now: float) -> list[Any]:
    """Return the cells of an IPAddress: one more than it has columns, as the real server does."""
    shown, parent = NONE, section(obj, "spec").get("parentRef")
    if parent is not None:
        kind = ".".join(filter(None, (parent.get("resource"), parent.get("group")))).lower()
        shown = "/".join(filter(None, (kind, parent.get("namespace"), parent.get("name"))))
    return [obj["metadata"]["name"], shown, object_age(obj, now)]


def _check_ranges(path: str, ranges: Sequence[str] | None) -> list[FieldError]:
    if not ranges:
        return [problems.required(path, "at least one CIDR required")]
    if len(ranges) > 2:
        return [check.invalid_struct(path, {"CIDRs": ranges}, "may only hold up to 2 values")]
    errors = [
        error
        for index, item in enumerate(ranges)
        for error in ip_checks.canonical_network(f"{path}[{index}]", item)
    ]
    found = [network.version for item in ranges if (network := ip_checks.parse_network(item)) is not None]
    if len(found) > len(set(found)):
        text = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        errors.append(problems.invalid(path, ranges, text))
    return errors


def _update_ranges(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check that only a range of the other IP family was added."""
    path = "spec.cidrs"
    after, before = items(section(new, "spec"), "cidrs"), items(section(old, "spec"), "cidrs")
    widened = len(before) == 1 and len(after) == 2
    if len(after) != len(before) and not widened:
        return [problems.invalid(path, after or None, check.IMMUTABLE)]
    errors = [
        problems.invalid(f"{path}[{index}]", item, check.IMMUTABLE)
        for index, (item, was) in enumerate(zip(after, before, strict=False))
        if item != was
    ]
    return errors + (_check_ranges(path, after) if widened else [])


_SOME_PARENT = rules(("spec{!parentRef}.parentRef", required()))


def _parent_rows(*, complete: bool) -> Rules:
    return rules(
        ("spec.parentRef?.group", named(names.dns1123_subdomain)),
        ("spec.parentRef?.resource", named(names.path_segment, required=complete)),
        ("spec.parentRef?.name", named(names.path_segment, required=complete)),
        ("spec.parentRef?.namespace", named(names.path_segment)),
    )


_IP_ADDRESS = rules(
    ("", _parent_rows(complete=False)),
    # Declared.
    ("", _SOME_PARENT),
    ("spec.parentRef?.resource", required()),
    ("spec.parentRef?.name", required()),
)
_SERVICE_CIDR = rules(("spec.cidrs", _check_ranges))

STRATEGIES = {
    (GROUP, "Ingress"): Strategy(
        **validated(_INGRESS),
        warnings=_warn_of_ingress,
        status_warnings=ip_checks.warn_about_load_balancer,
        has_generation=True,
        **STATUS_KEEPS_SPEC,
        **printed(
            NAME,
            cell("Class", "spec.ingressClassName", NONE),
            cell("Hosts", _ingress_hosts),
            cell("Address", _ingress_addresses),
            cell("Ports", lambda obj: "80, 443" if section(obj, "spec").get("tls") else "80"),
            AGE,
        ),
    ),
    (GROUP, "IngressClass"): Strategy(
        default=defaults(("spec.parameters?.scope", "Cluster")),
        **validated(_INGRESS_CLASS, first=[immutable("spec.controller", missing="")]),
        has_generation=True,
        **printed(
            class_name("ingressclass.kubernetes.io/is-default-class"),
            cell("Controller", "spec.controller"),
            cell("Parameters", _class_parameters),
            AGE,
        ),
    ),
    (GROUP, "NetworkPolicy"): Strategy(
        warnings=_warn_of_policy,
        default=_default_policy,
        **validated(_POLICY),
        has_generation=True,
        **printed(
            NAME,
            cell("Pod-Selector", lambda obj: selector_text(section(obj, "spec").get("podSelector"))),
            AGE,
        ),
    ),
    ("", "Endpoints"): Strategy(
        warnings=_warn_of_endpoints,
        default=defaults(("subsets[].ports[].protocol!", "TCP")),
        **validated(_ENDPOINTS),
        deprecation=_DEPRECATED_ENDPOINTS,
        allow_create_on_update=True,
        **printed(NAME, cell("Endpoints", _endpoints), AGE),
    ),
    ("discovery.k8s.io", "EndpointSlice"): Strategy(
        default=defaults(("ports[].name", ""), ("ports[].protocol", "TCP")),
        prepare_create=_drop_topology,
        prepare_update=_update_slice,
        warnings=_warn_of_slice,
        validate=lambda obj: [*_SLICE.validate(obj), *_slice_endpoints(obj), *_declared_in_slice(obj)],
        validate_update=changes(_SLICE.validate_update, _slice_endpoints, _declared_in_slice),
        has_generation=True,
        **printed(
            NAME,
            cell("AddressType", "addressType"),
            cell("Ports", _slice_ports),
            cell("Endpoints", _slice_addresses),
            AGE,
        ),
    ),
    (GROUP, "ServiceCIDR"): Strategy(
        validate=_SERVICE_CIDR.validate,
        validate_update=_update_ranges,
        **printed(NAME, cell("CIDRs", lambda obj: ",".join(items(section(obj, "spec"), "cidrs"))), AGE),
    ),
    (GROUP, "IPAddress"): Strategy(
        validate=_IP_ADDRESS.validate,
        validate_update=changes(
            # What is declared for the fields of an immutable one does not apply if it changed.
            _parent_rows(complete=True).validate_update,
            _SOME_PARENT.validate_update,
            immutable("spec.parentRef", shown=False),
        ),
        name_check=_address_name,
        generates_names=False,
        columns=(NAME.column, TableColumn("ParentRef")),
        row=_address_row,
    ),
}
