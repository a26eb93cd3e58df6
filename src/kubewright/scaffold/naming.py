"""Derive and validate the names of projects, packages, kinds, versions and groups."""

import builtins
import keyword
import re
import sys

from kubewright.api import names, plural_of

_TAKEN = frozenset({"kubewright", "test", "tests", "samples"})
_PROTECTED = ("k8s.io", "kubernetes.io")
"""Groups under these are protected: CRDs in them need an approval annotation."""
_USED = frozenset({"ctx", "kw", "ready", "made"})
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_VERSION = re.compile(r"v[1-9]\d*((alpha|beta)[1-9]\d*)?")


def project_problem(name: str) -> str:
    """Return why the project name is invalid, or an empty string."""
    if names.dns1123_label(name):
        return f"{name!r} is not a valid project name: use at most 63 lowercase letters, digits and '-', for example my-shop"
    package = package_name(name)
    if not package.isidentifier() or keyword.iskeyword(package):
        return f"{name!r} is not a valid project name: {package!r} is not a Python identifier"
    if package in sys.stdlib_module_names or package in _TAKEN:
        return f"{name!r} is not a valid project name: a Python module is already named {package!r}"
    return ""


def domain_problem(domain: str) -> str:
    """Return why the domain is invalid, or an empty string."""
    if troubles := names.dns1123_subdomain(domain):
        return f"{domain!r} is not a valid domain: {troubles[0]}"
    if "." not in domain:
        return f"{domain!r} is not a valid domain: it has no dot, expected for example example.com"
    return (
        f"domain {domain!r} is reserved for Kubernetes: use your own domain" if _is_protected(domain) else ""
    )


def kind_problem(kind: str) -> str:
    """Return why the kind is invalid, or an empty string."""
    if not _KIND.fullmatch(kind):
        better = "".join(part[:1].upper() + part[1:] for part in re.split(r"[-_. ]+", kind))
        hint = (
            f"like {better}" if _KIND.fullmatch(better) else "letters from A to Z and digits, like VideoRack"
        )
        return f"kind {kind!r} is not in CamelCase: {hint}"
    troubles = names.dns1035_label(kind.lower())
    return f"kind {kind!r}: {troubles[0]}" if troubles else ""


def plural_problem(plural: str) -> str:
    """Return why the plural is invalid, or an empty string."""
    troubles = names.dns1035_label(plural)
    return f"plural {plural!r}: {troubles[0]}" if troubles else ""


def version_problem(version: str) -> str:
    """Return why the version is invalid, or an empty string."""
    if _VERSION.fullmatch(version):
        return ""
    return (
        f"version {version!r} is not a Kubernetes API version: expected for example v1, v1beta1 or v2alpha3"
    )


def group_problem(group: str) -> str:
    """Return why the API group is invalid, or an empty string."""
    if troubles := names.dns1123_subdomain(group):
        return f"group {group!r}: {troubles[0]}"
    if "." not in group:
        return f"group {group!r} has no dot: use a full group such as {group}.example.com, or set the project's domain"
    return (
        f"group {group!r} is reserved for Kubernetes: use a group under your own domain"
        if _is_protected(group)
        else ""
    )


def _is_protected(group: str) -> bool:
    return any(group == suffix or group.endswith(f".{suffix}") for suffix in _PROTECTED)


def package_name(project: str) -> str:
    """Return the name of a project's Python package."""
    return project.replace("-", "_")


def module_name(kind: str) -> str:
    """Return the module name of a kind: foo_bar for FooBar."""
    name = "_".join(_words(kind))
    return f"{name}_kind" if keyword.iskeyword(name) else name


def variable_name(kind: str) -> str:
    """Return a variable name for an object of a kind, its last word: bar for FooBar."""
    name = _words(kind)[-1]
    if not name.isidentifier() or keyword.iskeyword(name) or hasattr(builtins, name) or name in _USED:
        return f"{name}_" if name.isidentifier() else "subject"
    return name


def controller_name(kind: str) -> str:
    """Return a variable name for the controller of a kind."""
    name = plural_of("_".join(_words(kind)))
    return f"{name}_" if keyword.iskeyword(name) else name


def version_class(kind: str, version: str) -> str:
    """Return the class name of a further version: CartV2Beta1 for Cart and v2beta1."""
    return kind + re.sub(r"[a-z]+", lambda word: word[0].capitalize(), version)


def _words(kind: str) -> list[str]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", kind)
    return apart.lower().split()
