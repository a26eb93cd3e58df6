"""References: objects that the reconciled kind names in a field, such as `spec.loginSecret`.

A `FieldReference` says where the name is. `FieldReference.bind` checks the path against the types of a controller's kind and
makes the index and the watch that enqueue the objects that name a changed one; `BoundReference.keys` is what an
object names now, for `ctx.get`, `ctx.find` and `ctx.list`.
"""

from collections.abc import Iterable
from typing import Any, Generic, TypeVar, cast, overload

import msgspec

from kubewright.api import (
    DeclarationError,
    FieldPath,
    Index,
    JsonObject,
    Kind,
    Object,
    ObjectKey,
    field_path,
    kind_of,
)
from kubewright.controller.predicates import Predicate
from kubewright.controller.watches import EVERYWHERE, Selector, Watch, watch

T = TypeVar("T")


class FieldReference(msgspec.Struct, Generic[T], frozen=True, eq=False, kw_only=True):
    """A field of the reconciled kind that names objects of another kind; created by `reference`."""

    kind: type[T] | Kind
    path: str
    namespace_path: str
    when: Predicate[T] | None
    selector: Selector
    optional: bool

    def __str__(self) -> str:
        return f"reference({kind_of(self.kind).kind}, {self.path!r})"

    def bind(self, source: Any) -> "BoundReference[T]":
        """Return the reference as a controller of the source kind uses it; raise DeclarationError for a wrong path."""
        path = field_path(source, self.path, str(self))
        namespace_path = field_path(source, self.namespace_path, str(self)) if self.namespace_path else None
        if kind_of(self.kind).namespaced and namespace_path is None and not kind_of(source).namespaced:
            raise DeclarationError(
                f"{self}: {kind_of(source).kind} is cluster-scoped and {kind_of(self.kind).kind} is not: "
                'name the field that holds the namespace with namespace_path="spec..."'
            )
        if namespace_path is not None and (path.many or namespace_path.many):
            raise DeclarationError(
                f"{self}: namespace_path= belongs to a single name, not to a list of names: "
                "use kw.watch(..., via=index, key=...) with a kw.Index of your own"
            )
        return BoundReference(self, source, path, namespace_path)


class BoundReference(Generic[T]):
    """A reference of one controller: which objects an object names, and the watch that leads back to it."""

    def __init__(
        self, declared: FieldReference[T], source: Any, path: FieldPath, namespace_path: FieldPath | None
    ) -> None:
        self.declared: FieldReference[T] = declared
        self.many: bool = path.many
        """True if an object may name several."""
        self._namespaced = kind_of(declared.kind).namespaced
        self._path = path
        self._namespace_path = namespace_path
        index: Index[Any] = Index(source, lambda found: map(str, self.keys(found)))
        self.watch: Watch[T] = watch(
            declared.kind,
            via=index,
            key=_key_text,
            when=declared.when,
            selector=declared.selector,
            optional=declared.optional,
        )

    def keys(self, source: Any) -> list[ObjectKey]:
        """Return the keys of the objects that a typed or a JSON object names, in its order."""
        namespace = ""
        if self._namespaced:
            chosen = self._namespace_path.texts(source) if self._namespace_path is not None else []
            namespace = chosen[0] if chosen else _key_of(source).namespace
        return [ObjectKey(namespace, name) for name in self._path.texts(source)]


@overload
def reference(
    kind: type[T],
    path: str,
    *,
    namespace_path: str = "",
    when: Predicate[T] | None = None,
    selector: Selector = EVERYWHERE,
    optional: bool = False,
) -> FieldReference[T]: ...
@overload
def reference(
    kind: Kind,
    path: str,
    *,
    namespace_path: str = "",
    when: Predicate[JsonObject] | None = None,
    selector: Selector = EVERYWHERE,
    optional: bool = False,
) -> FieldReference[JsonObject]: ...
def reference(
    kind: type[Any] | Kind,
    path: str,
    *,
    namespace_path: str = "",
    when: Predicate[Any] | None = None,
    selector: Selector = EVERYWHERE,
    optional: bool = False,
) -> FieldReference[Any]:
    """Declare a field that names objects of another kind: `reference(core_v1.Secret, "spec.loginSecret")`.

    Put it into `watches=`: a change of a named object reconciles the objects that name it. In the reconcile,
    `ctx.find(reference)` and `ctx.get(reference)` read the object that is named; `ctx.list(reference)` reads all of
    them if the field is a list of names, or the path leads through one (`spec.users[*].secretName`).

    The named object is in the namespace of the object that names it. `namespace_path=` is the path of a field
    that names another namespace. `when=`, `selector=` and `optional=` are those of `watch`.
    """
    return FieldReference(
        kind=kind, path=path, namespace_path=namespace_path, when=when, selector=selector, optional=optional
    )


def _key_of(found: Any) -> ObjectKey:
    if isinstance(found, Object):
        return found.key
    meta = cast("JsonObject", found)["metadata"]
    return ObjectKey(meta.get("namespace", ""), meta["name"])


def _key_text(found: Any) -> Iterable[str]:
    return [str(_key_of(found))]
