"""Call handlers that were written for kopf with kopf's arguments: the object as dictionaries, and a patch.

Delete this module once the handlers take the object and `ctx` themselves.
"""

import logging
from collections.abc import Awaitable, Iterator, Mapping
from copy import deepcopy
from typing import Any, NoReturn

import kubewright as kw
from kubewright.api import from_wire, to_wire

ESSENCE = kw.predicates.any_of(
    kw.predicates.generation_changed, kw.predicates.labels_changed, kw.predicates.annotations_changed
)
"""Changes for which kopf calls its update handlers: not of the status."""


class AdmissionError(Exception):
    """A webhook handler rejects the request; kopf's code is not sent."""

    def __init__(self, message: str = "rejected", code: int = 400) -> None:
        super().__init__(message)
        self.code = code


class _Unsupported:
    """Stands for the parts of kopf that have no counterpart."""

    def __getattr__(self, name: str) -> NoReturn:
        raise NotImplementedError(f"kopf.{name} has no counterpart: see MIGRATION.md")


kopf: Any = _Unsupported()


class Meta(dict[str, Any]):
    """The metadata of an object, with kopf's attributes."""

    @property
    def name(self) -> Any:
        """Return the name."""
        return self.get("name")

    @property
    def namespace(self) -> Any:
        """Return the namespace; None for a cluster-scoped object."""
        return self.get("namespace")

    @property
    def uid(self) -> Any:
        """Return the uid."""
        return self.get("uid")

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels."""
        return self.get("labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        """Return the annotations."""
        return self.get("annotations") or {}


class Body(dict[str, Any]):
    """An object as JSON, with kopf's attributes."""

    @property
    def spec(self) -> dict[str, Any]:
        """Return the spec."""
        return self.get("spec") or {}

    @property
    def status(self) -> dict[str, Any]:
        """Return the status."""
        return self.get("status") or {}

    @property
    def metadata(self) -> Meta:
        """Return the metadata."""
        return Meta(self.get("metadata") or {})

    @property
    def meta(self) -> Meta:
        """Return the metadata."""
        return self.metadata


class Patch(dict[str, Any]):
    """A merge patch that handlers fill and that is sent after them."""

    @property
    def spec(self) -> dict[str, Any]:
        """Return the patch of the spec."""
        return self.setdefault("spec", {})

    @property
    def status(self) -> dict[str, Any]:
        """Return the patch of the status."""
        return self.setdefault("status", {})

    @property
    def metadata(self) -> Any:
        """Return the patch of the metadata, with `labels` and `annotations` as attributes."""
        return _MetaPatch(self.setdefault("metadata", {}))

    @property
    def meta(self) -> Any:
        """Return the patch of the metadata."""
        return self.metadata


class _MetaPatch(dict[str, Any]):
    def __init__(self, target: dict[str, Any]) -> None:
        super().__init__(target)
        self._target = target

    def __setitem__(self, key: str, value: Any) -> None:
        self._target[key] = value

    @property
    def labels(self) -> dict[str, Any]:
        """Return the patch of the labels."""
        return self._target.setdefault("labels", {})

    @property
    def annotations(self) -> dict[str, Any]:
        """Return the patch of the annotations."""
        return self._target.setdefault("annotations", {})


class Handling:
    """One round of handlers for one object: their arguments, their results, and their errors."""

    undecided: Any = None
    """Stands for an argument that kubewright does not have; the handler raises before it is used."""

    def __init__(self, subject: Any, ctx: kw.Context | None = None) -> None:
        wire = dict(subject) if isinstance(subject, Mapping) else to_wire(subject)
        self._subject: Any = subject
        self._ctx = ctx
        self._errors: list[Exception] = []
        self.body: Any = Body(wire)
        self.spec: Any = self.body.spec
        self.status: Any = self.body.status
        self.meta: Any = self.body.metadata
        self.name: Any = self.meta.name
        self.namespace: Any = self.meta.namespace
        self.uid: Any = self.meta.uid
        self.labels: Any = self.meta.labels
        self.annotations: Any = self.meta.annotations
        self.logger: Any = ctx.log if ctx is not None else logging.getLogger(__name__)
        self.patch: Any = Patch()

    async def run(self, handler: str, call: Awaitable[Any]) -> None:
        """Await a handler; like kopf, store its result in the status and go on with the others if it fails."""
        try:
            result = await call
        except Exception as error:
            self._errors.append(error)
            return
        if result is not None:
            self.patch.status[handler] = result

    async def finish(self, *, has_status: bool) -> None:
        """Send the patch if it changes the object, then raise the error that decides when to try again."""
        if self._ctx is None:
            raise TypeError("Handling.finish() needs the context")
        patch = {key: value for key, value in self.patch.items() if value}
        status = patch.pop("status", None) if has_status else None
        if merged(self.body, patch) != self.body:
            await self._ctx.patch(self._subject, patch)
        if status and merged(self.status, status) != self.status:
            await self._ctx.patch(self._subject, {"status": status}, subresource="status")
        self._errors.sort(key=lambda error: (isinstance(error, kw.TerminalError), isinstance(error, kw.RetryLater)))
        for error in self._errors[1:]:
            self._ctx.log.error("Another handler failed", exc_info=error)
        if self._errors:
            raise self._errors[0]


def merged(value: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value with a merge patch applied (RFC 7386)."""
    result = deepcopy(dict(value))
    for key, change in patch.items():
        if isinstance(change, Mapping):
            inner = result.get(key)
            result[key] = merged(inner if isinstance(inner, Mapping) else {}, change)
        elif change is None:
            result.pop(key, None)
        else:
            result[key] = change
    return result


def overwrite(subject: Any, wire: Mapping[str, Any]) -> None:
    """Set the fields of an object to the values of its changed JSON form."""
    if isinstance(subject, dict):
        subject.clear()
        subject.update(wire)
        return
    changed = from_wire(type(subject), dict(wire))
    for name in subject.__struct_fields__:
        setattr(subject, name, getattr(changed, name))


def value_at(body: Mapping[str, Any], path: str) -> Any:
    """Return the value of a field such as `spec.size`; None if it is not there."""
    value: Any = body
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def adopt(children: Any, owner: Mapping[str, Any], *, reference: bool = False) -> None:
    """Prepare children as kopf.adopt does; `ctx.apply` sets the owner reference, unless `reference` asks for it here."""
    for child in _each(children):
        meta = child.setdefault("metadata", {})
        if not meta.get("name") and not reference:
            raise NotImplementedError(
                "a child without a name: kopf generates one, but ctx.apply needs a name that stays the same"
            )
        if not meta.get("name") and not meta.get("generateName"):
            meta["generateName"] = f"{owner['metadata']['name']}-"
        if owner["metadata"].get("namespace"):
            meta.setdefault("namespace", owner["metadata"]["namespace"])
        label(child, owner["metadata"].get("labels") or {})
        if reference:
            meta.setdefault("ownerReferences", []).append(
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            )


def label(children: Any, labels: Mapping[str, str]) -> None:
    """Add labels that the children do not have yet."""
    for child in _each(children):
        own = child.setdefault("metadata", {}).setdefault("labels", {})
        for key, value in labels.items():
            own.setdefault(key, value)


def _each(children: Any) -> Iterator[dict[str, Any]]:
    yield from [children] if isinstance(children, dict) else children
