"""Conversion between versions of a custom resource, by a conversion webhook.

Reading an object in another version may need the webhook, which is I/O, while most readers are pure functions:
they raise `Unconverted`, and `converting` calls the webhook and runs them again.
"""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

from kubewright.api import FieldError, GroupVersionKind, KubewrightError, names, problems
from kubewright.devserver.feature_gates import FeatureGates
from kubewright.devserver.objects import JsonObject, copy, encode, items, meta, section, split_api_version
from kubewright.devserver.objects.status import StatusError, group_resource, quote
from kubewright.devserver.webhook_client import Caller, CallFailed, read_review

T = TypeVar("T")
UNSAFE_DELETION = "AllowUnsafeMalformedObjectDeletion"
"""The feature gate of deletions of objects that cannot be read, which also names such objects in errors of reads."""


class Unconverted(KubewrightError):
    """An object has not been converted to the requested version yet; awaiting `supply()` converts it."""

    def __init__(self, supply: Callable[[], Awaitable[None]]) -> None:
        super().__init__("an object was read before it was converted")
        self.supply = supply


class UnconvertibleObjects(StatusError):
    """Stored objects that the conversion webhook does not convert to the requested version: the error of a write.

    kube-apiserver converts while it decodes what it reads from etcd, so it reports such objects as corrupt. A read of
    one object and a list have errors of their own.
    """

    def __init__(self, group: str, plural: str, failures: Sequence[tuple[str, str]]) -> None:
        """Take the storage key of each object, and why it cannot be decoded."""
        super().__init__(500, "", failures[0][1])
        self._group, self._plural, self._failures = group, plural, failures

    def of_object(self, gates: FeatureGates) -> StatusError:
        """Return the error of a read or deletion of the object."""
        return StatusError.internal(self._storage_errors("")[0]) if gates.enabled(UNSAFE_DELETION) else self

    def of_list(self, gates: FeatureGates | None = None) -> StatusError:
        """Return the error of a list."""
        if gates is not None and not gates.enabled(UNSAFE_DELETION):
            return self
        texts = self._storage_errors("/registry")
        causes: list[JsonObject] = [
            {"reason": "UnexpectedServerResponse", "message": text, "field": f"/registry{self._path(key)}"}
            for text, (key, _) in zip(texts, self._failures, strict=True)
        ]
        if len(causes) == MAX_FAILURES:
            causes.append(
                {"reason": "FieldValueTooMany", "message": "too many errors, the list is truncated"}
            )
        message = f"failed to read one or more {group_resource(self._group, self._plural)} from the storage: {texts[0]}"
        if len(texts) > 1:
            message += f" (and {len(texts) - 1} more)"
        details = {"name": "list", "group": self._group, "kind": self._plural, "causes": causes}
        return StatusError(500, "StorageReadError", message, details)

    def _path(self, key: str) -> str:
        return f"/{self._group}/{self._plural}/{key}"

    def _storage_errors(self, prefix: str) -> list[str]:
        return [
            f"StorageError: corrupt object, Code: 7, Key: {prefix}{self._path(key)}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: {why}"
            for key, why in self._failures
        ]


async def converting(make: Callable[[], T]) -> T:
    """Return the result of `make`, running it again after each conversion it needs."""
    while True:
        try:
            return make()
        except Unconverted as missing:
            await missing.supply()


GROUP = "apiextensions.k8s.io"
KIND = "ConversionReview"
_SCHEME = "k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go:46"
SECONDS = 30
# A list reports at most so many objects that cannot be converted.
MAX_FAILURES = 100
_REVIEWS = ("v1", "v1beta1")


class WebhookConverter:
    """Convert objects with a conversion webhook."""

    def __init__(self, caller: Caller, config: JsonObject, review: str) -> None:
        self._caller = caller
        self._config = config
        self._review = review

    async def convert(self, objects: Sequence[JsonObject], target: GroupVersionKind) -> list[JsonObject]:
        """Convert objects to the version of `target` in one request, keeping their order.

        Objects that already have that version are not sent.
        """
        desired = target.api_version
        foreign = [obj for obj in objects if obj.get("apiVersion") != desired]
        if not foreign:
            return list(objects)
        found = iter(await self._convert(foreign, target))
        return [obj if obj.get("apiVersion") == desired else next(found) for obj in objects]

    async def _convert(self, objects: list[JsonObject], target: GroupVersionKind) -> list[JsonObject]:
        source = _kind_text(objects[0])
        found = await self._call(objects, target.api_version, source)
        return [_accept(obj, review, target, source) for obj, review in zip(objects, found, strict=True)]

    async def _call(self, objects: list[JsonObject], desired: str, source: str) -> list[Any]:
        if not self._review:
            raise StatusError.unknown("no supported conversion review versions")
        uid = str(uuid.uuid4())
        body = encode(
            {
                "kind": KIND,
                "apiVersion": f"{GROUP}/{self._review}",
                "request": {"uid": uid, "desiredAPIVersion": desired, "objects": objects},
            }
        )
        try:
            reply = await self._caller.post(self._config, body, SECONDS, f"timeout={SECONDS}s")
            review = read_review(reply, GroupVersionKind(GROUP, self._review, KIND), _REVIEWS, _SCHEME)
            found = self._verify(review, uid)
        except CallFailed as error:
            raise StatusError.unknown(f"conversion webhook for {source} failed: {error}") from None
        if len(found) != len(objects):
            raise StatusError.unknown(
                f"conversion webhook for {source} returned {len(found)} objects, expected {len(objects)}"
            )
        return found

    def _verify(self, review: JsonObject, uid: str) -> list[Any]:
        version, kind = review.get("apiVersion", ""), review.get("kind", "")
        if self._review == "v1" and (version, kind) != (f"{GROUP}/v1", KIND):
            shown = f"{version if '/' in version else f'/{version}'}, Kind={kind}"
            raise CallFailed(f"expected webhook response of {GROUP}/v1, Kind={KIND}, got {shown}")
        found: JsonObject | None = review.get("response")
        if found is None:
            raise CallFailed("no response provided")
        if self._review == "v1" and found["uid"] != uid:
            raise CallFailed(f"expected response.uid={quote(uid)}, got {quote(found['uid'])}")
        result = section(found, "result")
        if result.get("status") != "Success":
            raise CallFailed(
                result.get("message")
                or f"response.result.status was '{result.get('status', '')}', not 'Success'"
            )
        return items(found, "convertedObjects")


def converter_of(crd: JsonObject, caller: Caller) -> WebhookConverter | None:
    """Return the conversion webhook of a CustomResourceDefinition, or None for the strategy None."""
    conversion = section(crd, "spec", "conversion")
    if conversion.get("strategy") != "Webhook":
        return None
    hook = section(conversion, "webhook")
    review = next((item for item in items(hook, "conversionReviewVersions") if item in _REVIEWS), "")
    return WebhookConverter(caller, section(hook, "clientConfig"), review)


def _kind_text(obj: JsonObject) -> str:
    return f"{obj.get('apiVersion', '')}, Kind={obj.get('kind', '')}"


def _accept(original: JsonObject, found: Any, target: GroupVersionKind, source: str) -> JsonObject:
    """Return one converted object; raise if the webhook changed its identity."""
    converted = cast(JsonObject, found) if isinstance(found, dict) else JsonObject()
    invalid = f"conversion webhook for {source} returned invalid"
    group_version = split_api_version(str(converted.get("apiVersion", "")))
    if group_version != (target.group, target.version):
        got = "/".join(part for part in group_version if part)
        why = f"invalid groupVersion (expected {target.api_version}, received {got})"
        raise StatusError.unknown(f"{invalid} object at index 0: {why}")
    if converted.get("kind") != target.kind:
        why = f"invalid kind (expected {target.kind}, received {converted.get('kind', '')})"
        raise StatusError.unknown(f"{invalid} object at index 0: {why}")
    if why := _changed_identity(meta(original), section(converted, "metadata")):
        raise StatusError.unknown(f"{invalid} object: {why}")
    try:
        converted["metadata"] = _restored(meta(original), converted.get("metadata"))
    except CallFailed as error:
        raise StatusError.unknown(f"{invalid} metadata: {error}") from None
    return converted


def _changed_identity(before: JsonObject, after: JsonObject) -> str:
    for field, title in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if before.get(field, "") != after.get(field, ""):
            return f"must have the same {title}: {before.get(field, '')} != {after.get(field, '')}"
    return ""


def _restored(before: JsonObject, after: Any) -> JsonObject:
    """Return the original metadata with the labels and annotations of the converted object."""
    if not isinstance(after, dict):
        raise CallFailed("missing metadata in converted object")
    review = cast(JsonObject, after)
    kept: JsonObject = copy(before)
    for field in ("labels", "annotations"):
        found = review.get(field)
        if found is None:
            kept.pop(field, None)
            continue
        if not isinstance(found, dict):
            raise CallFailed(f"invalid metadata.{field} of type {type(found).__name__} in converted object")
        values = cast(dict[str, Any], found)
        for key, value in values.items():
            if not isinstance(value, str):
                sort = type(value).__name__
                raise CallFailed(
                    f"metadata.{field}[{key}] must be a string, but is {sort} in converted object"
                )
        if values != (before.get(field) or {}) and (errors := _check(field, values)):
            raise CallFailed(", ".join(map(str, errors)))
        kept[field] = values
    return kept


def _check(field: str, values: dict[str, Any]) -> list[FieldError]:
    path = "metadata.labels" if field == "labels" else "metadata.annotation"
    errors: list[FieldError] = []
    for key, value in values.items():
        name = key if field == "labels" else key.lower()
        errors += [problems.invalid(path, key, text) for text in names.qualified_name(name)]
        if field == "labels":
            errors += [problems.invalid(path, value, text) for text in names.label_value(value)]
    return errors
