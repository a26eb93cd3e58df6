"""`Kind`: how the API serves a kind; shared by client, cache and servers."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec

from kubewright.api.errors import DeclarationError
from kubewright.api.fields import Column, Scale
from kubewright.api.identity import GroupVersionKind

Scope = Literal["Namespaced", "Cluster"]


class Kind(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True, dict=True):
    """A kind without a class; it can be used wherever a class can, and its objects are dicts.

    `stored` marks the storage version of a kind with several versions. `builtin` marks the kinds that every cluster has,
    `external` those whose CRDs another project installs.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    singular: str = ""
    list_kind: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    columns: Sequence[Column] = ()
    scale: Scale | None = None
    status: bool = False
    stored: bool = False
    served: bool = True
    deprecated: str | bool = False
    selectable_fields: Sequence[str] = ()
    builtin: bool = False
    external: bool = False

    def __post_init__(self) -> None:
        if not self.singular:
            msgspec.structs.force_setattr(self, "singular", self.kind.lower())
        if not self.list_kind:
            msgspec.structs.force_setattr(self, "list_kind", f"{self.kind}List")
        for name in ("short_names", "categories", "columns", "selectable_fields"):
            msgspec.structs.force_setattr(self, name, tuple(getattr(self, name)))

    @cached_property
    def gvk(self) -> GroupVersionKind:
        """Return the group, version and kind."""
        return GroupVersionKind(self.group, self.version, self.kind)

    @cached_property
    def api_version(self) -> str:
        """Return the `apiVersion` text of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def path(self) -> str:
        """Return the URL prefix of its group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @cached_property
    def resource(self) -> str:
        """Return the group-resource text: `deployments.apps`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def __str__(self) -> str:
        return str(self.gvk)


CUSTOM_RESOURCE_DEFINITION = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
    builtin=True,
)
"""For code that handles CRDs as JSON objects, without loading the large class."""


def plural_of(kind: str) -> str:
    """Guess the plural resource name of a kind as the usual tools do."""
    word = kind.lower()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"


def kind_of(subject: Any) -> Kind:
    """Return the `Kind` of a class, of an object, or of a `Kind` itself."""
    # Classes and objects first: they are the most frequent, and to find out that they are no Kind takes longer.
    found = getattr(subject, "__kind__", None)
    if isinstance(found, Kind):
        return found
    if isinstance(subject, Kind):
        return subject
    if isinstance(subject, str):
        raise DeclarationError(f"{subject!r} is no kind: give a class of it, or a Kind")
    cls = subject if isinstance(subject, type) else type(subject)
    raise DeclarationError(f"{cls.__name__} is no kind: give its class group= and version=")
