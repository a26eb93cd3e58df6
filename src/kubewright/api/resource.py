"""`Object` and `Resource`: a kind as one typed class."""

import re
from collections.abc import Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from kubewright.api.annotations import body_annotations, members
from kubewright.api.errors import DeclarationError
from kubewright.api.field_paths import path_problems
from kubewright.api.fields import Column, Rule, Scale
from kubewright.api.identity import ObjectKey, key_of_pair
from kubewright.api.kinds import Kind, Scope, kind_of, plural_of
from kubewright.api.meta import Meta, OwnerReference, controller_of
from kubewright.api.model import Model, ModelType, required_fields
from kubewright.api.names import dns1035_label, dns1123_subdomain, label_value, qualified_name
from kubewright.api.pydantic_models import is_pydantic, pydantic_schema, required_field

Spec = TypeVar("Spec")
Status = TypeVar("Status")
_O = TypeVar("_O", bound="ObjectType")
_PARTS = ("spec", "status")
_RESERVED = frozenset({"apiVersion", "kind"})


class ObjectType(ModelType):
    """The metaclass of kinds: it creates the `Kind` from class keywords, and concrete fields from generics."""

    __kind__: Kind
    __crd_metadata__: dict[str, dict[str, str]]

    def may_be_pydantic(self, name: str, annotation: Any) -> bool:
        """Return True if a field is a pydantic model: spec and status can be."""
        return name in _PARTS and is_pydantic(_one_type(annotation))

    def __new__(
        mcls: type[_O],
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        /,
        *,
        group: str = "",
        version: str = "",
        kind: str = "",
        plural: str = "",
        singular: str = "",
        list_kind: str = "",
        scope: Scope = "Namespaced",
        short_names: Sequence[str] = (),
        categories: Sequence[str] = (),
        columns: Sequence[Column] = (),
        scale: Scale | None = None,
        status: bool | None = None,
        stored: bool = False,
        served: bool = True,
        deprecated: str | bool = False,
        selectable_fields: Sequence[str] = (),
        crd_labels: Mapping[str, str] | None = None,
        crd_annotations: Mapping[str, str] | None = None,
        rules: Sequence[Rule] = (),
        wire_names: Mapping[str, str] | None = None,
        lists: Mapping[str, tuple[str, ...]] | None = None,
        builtin: bool = False,
        external: bool = False,
        kw_only: bool = True,
    ) -> _O:
        """Create a kind; without group and version, a base class."""
        _fill_generics(name, namespace)
        cls = super().__new__(
            mcls,
            name,
            bases,
            namespace,
            rules=rules,
            wire_names=wire_names,
            lists=lists,
            builtin=builtin,
            kw_only=kw_only,
        )
        _refuse_reserved(cls)
        _check_pydantic(cls, namespace["__annotations__"])
        if not (group or version or kind):
            return cls
        if scope not in ("Namespaced", "Cluster"):
            raise DeclarationError(f'{name}: scope={scope!r}: use "Namespaced" or "Cluster"')
        cls.__kind__ = Kind(
            group=group,
            version=version,
            kind=kind or name,
            plural=plural or plural_of(kind or name),
            namespaced=scope == "Namespaced",
            singular=singular,
            list_kind=list_kind,
            short_names=short_names,
            categories=categories,
            columns=columns,
            scale=scale,
            status="status" in cls.__struct_fields__ if status is None else status,
            stored=stored,
            served=served,
            deprecated=deprecated,
            selectable_fields=selectable_fields,
            builtin=builtin,
            external=external,
        )
        cls.__crd_metadata__ = {"labels": dict(crd_labels or {}), "annotations": dict(crd_annotations or {})}
        if not (builtin or external):
            _refuse_names(name, cls.__kind__)
            _refuse_paths(cls)
            _refuse_crd_metadata(name, **cls.__crd_metadata__)
        return cls

    if not TYPE_CHECKING:
        # Type checkers read the fields; this signature would hide them.
        def __call__(self, *args: Any, **keywords: Any) -> Any:
            """Create an object; raise TypeError if its metadata is a name or anything else but `Meta`."""
            made = ModelType.__call__(self, *args, **keywords)
            if not isinstance(made.metadata, Meta):
                found = made.metadata
                written = repr(found) if isinstance(found, str) else "..."
                raise TypeError(f"{self.__name__}(): metadata must be kw.Meta({written}), got {found!r}")
            return made


def _fill_generics(name: str, namespace: dict[str, Any]) -> None:
    """Create concrete fields with defaults for the type parameters of a generic parent."""
    for base in namespace.get("__orig_bases__", ()):
        origin = get_origin(base)
        if not isinstance(origin, ObjectType):
            continue
        given = dict(zip(cast(Any, origin).__parameters__, get_args(base), strict=True))
        open_fields = {key: given[hint] for key, hint in get_type_hints(origin).items() if hint in given}
        namespace["__annotations__"] = {**open_fields, **body_annotations(namespace)}
        for key, model in open_fields.items():
            if isinstance(model, ModelType) or is_pydantic(model):
                _give_default(f"{name}.{key}", key, model, namespace)
            elif not isinstance(model, TypeVar):
                raise DeclarationError(f"{name}.{key}: {model!r} is no Model: derive it from Model")


def _one_type(annotation: Any) -> Any:
    """Return the type of a field that has only one beside None."""
    parts = [part for part in members(annotation) if part not in (None, type(None))]
    return parts[0] if len(parts) == 1 else None


def _check_pydantic(cls: ObjectType, annotations: Mapping[str, Any]) -> None:
    """Raise DeclarationError if a pydantic model has no structural schema."""
    for part in _PARTS:
        model = _one_type(annotations.get(part))
        if is_pydantic(model):
            pydantic_schema(model, f"{cls.__name__}.{part}")


def _give_default(where: str, key: str, model: Any, namespace: dict[str, Any]) -> None:
    missing = [required_field(model)] if is_pydantic(model) else required_fields(model)
    if not any(missing):
        namespace.setdefault(key, msgspec.field(default_factory=model))
    elif key == "status":
        field = f"{model.__name__}.{missing[0]}"
        way = "give it one, because an object starts without a status"
        raise DeclarationError(f"{where}: {field} has no default: {way}")


def _refuse_reserved(cls: ObjectType) -> None:
    for name, wire in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True):
        if wire in _RESERVED:
            raise DeclarationError(
                f"{cls.__name__}.{name}: every object has {wire} already: choose another name"
            )
        if name == "key":
            way = 'rename it and keep the wire name with Field(name="key")'
            raise DeclarationError(f"{cls.__name__}.key: an object calls its namespace and name `key`: {way}")


def _refuse_names(name: str, kind: Kind) -> None:
    for needed in ("group", "version"):
        if not getattr(kind, needed):
            raise DeclarationError(f"{name}: a kind needs {needed}=: give group= and version=")
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", kind.kind):
        raise DeclarationError(f"{name}: kind {kind.kind!r} is not CamelCase: give another with kind=")
    if "." not in kind.group:
        way = "use one with a dot, like apps.example.com"
        raise DeclarationError(f"{name}: group={kind.group!r} is no domain: {way}")
    checks = [
        ("group", kind.group, dns1123_subdomain),
        ("version", kind.version, dns1035_label),
        ("plural", kind.plural, dns1035_label),
        ("singular", kind.singular, dns1035_label),
        *(("short_names", short, dns1035_label) for short in kind.short_names),
        *(("categories", category, dns1035_label) for category in kind.categories),
    ]
    for keyword, value, check in checks:
        troubles = check(value)
        if troubles:
            raise DeclarationError(f"{name}: {keyword}={value!r}: {troubles[0]}")


def _refuse_paths(cls: ObjectType) -> None:
    model = cast(type[msgspec.Struct], cls)
    try:
        problem = next(path_problems(model, cls.__kind__), "")
    except DeclarationError as error:
        if isinstance(error.__cause__, NameError):
            # An annotation names a class that the module defines later: the CRD's rendering checks the paths.
            return
        raise
    if problem:
        raise DeclarationError(f"{cls.__name__}: {problem}")


def _refuse_crd_metadata(name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> None:
    checks = [("crd_labels", key, qualified_name) for key in labels]
    checks += [("crd_annotations", key.lower(), qualified_name) for key in annotations]
    checks += [("crd_labels", value, label_value) for value in labels.values()]
    for keyword, text, check in checks:
        if troubles := check(text):
            raise DeclarationError(f"{name}: {keyword}: {text!r}: {troubles[0]}")


def _status_of_no_kind() -> Any:
    """Raise: a placeholder for the default that each `Resource[Spec, Status]` gets from its Status."""
    raise DeclarationError("Resource alone is no kind: derive from Resource[Spec, Status]")


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Object(Model, metaclass=ObjectType, kw_only=False):
    """A kind whose fields are at the top level, beside `metadata`, as in a ConfigMap.

    - `group`, `version`: the API group and version. A class without them is a base for kinds.
    - `kind`, `plural`, `singular`, `list_kind`: names, by default derived from the name of the class.
    - `scope`: "Namespaced" or "Cluster". `short_names`, `categories`: for kubectl.
    - `columns`: what `kubectl get` prints. `scale`: the paths of the scale subresource.
    - `status`: True if the kind has the status subresource, by default if it has a field `status`.
    - `stored`, `served`, `deprecated`: for kinds with several versions.
    - `selectable_fields`: fields for field selectors. `rules`: CEL rules for the whole object.
    - `crd_labels`, `crd_annotations`: metadata of the CRD.
    """

    __kind__: ClassVar[Kind]
    __crd_metadata__: ClassVar[dict[str, dict[str, str]]]
    metadata: Meta = msgspec.field(default_factory=Meta)

    def __init_subclass__(
        cls,
        *,
        group: str = "",
        version: str = "",
        kind: str = "",
        plural: str = "",
        singular: str = "",
        list_kind: str = "",
        scope: Scope = "Namespaced",
        short_names: Sequence[str] = (),
        categories: Sequence[str] = (),
        columns: Sequence[Column] = (),
        scale: Scale | None = None,
        status: bool | None = None,
        stored: bool = False,
        served: bool = True,
        deprecated: str | bool = False,
        selectable_fields: Sequence[str] = (),
        crd_labels: Mapping[str, str] | None = None,
        crd_annotations: Mapping[str, str] | None = None,
        rules: Sequence[Rule] = (),
        wire_names: Mapping[str, str] | None = None,
        lists: Mapping[str, tuple[str, ...]] | None = None,
        builtin: bool = False,
        external: bool = False,
        kw_only: bool = True,
    ) -> None:
        """Declare the class keywords for type checkers; the metaclass has read them."""
        super().__init_subclass__()

    if TYPE_CHECKING:
        # msgspec implements it and does not declare it. Protocols use it to find the class of an object.
        def __copy__(self) -> Self: ...

    @property
    def key(self) -> ObjectKey:
        """Return namespace and name."""
        return key_of_pair((self.metadata.namespace, self.metadata.name))


class Resource(Object, Generic[Spec, Status]):
    """A kind with `spec` and `status`: `class Shell(Resource[ShellSpec, ShellStatus], group=..., version=...)`.

    The keywords are those of `Object`. The docstring of the class is the description of the kind in `kubectl explain`.
    """

    if not TYPE_CHECKING:
        # Type checkers report a missing parameter by themselves.
        def __class_getitem__(cls, parameters: Any) -> Any:
            """Return the class with its parameters; raise DeclarationError if only the spec is given."""
            if cls is Resource and not isinstance(parameters, tuple):
                name = getattr(parameters, "__name__", repr(parameters))
                raise DeclarationError(
                    f"Resource[{name}] has no status: write Resource[{name}, {name.removesuffix('Spec')}Status] with "
                    "a Model for the status, or derive from Object with a field spec if the kind has no status"
                )
            return super().__class_getitem__(parameters)

    spec: Spec
    status: Status = msgspec.field(default_factory=_status_of_no_kind)


def is_controlled_by(child: Object, owner: Object) -> bool:
    """Return True if the child's controller reference has the owner's uid.

    An owner of the same kind and name that was deleted and created again has another uid and does not control it.
    """
    controller = controller_of(child.metadata)
    return controller is not None and bool(owner.metadata.uid) and controller.uid == owner.metadata.uid


def owner_reference(owner: Object, *, controller: bool = True) -> OwnerReference:
    """Return the owner reference to put into a child."""
    kind, meta = kind_of(owner), owner.metadata
    if not meta.uid:
        way = "only an object that was read from the server can own another"
        raise DeclarationError(f"{kind.kind} {owner.key} has no uid: {way}")
    return OwnerReference(
        api_version=kind.api_version,
        kind=kind.kind,
        name=meta.name,
        uid=meta.uid,
        controller=controller or None,
        block_owner_deletion=controller or None,
    )
