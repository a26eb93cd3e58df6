"""Reading: one object, or a list at the newest, a past or a promised revision."""

from collections.abc import Coroutine
from typing import Any

from kubewright.api import problems
from kubewright.devserver.core import Core
from kubewright.devserver.handlers.selection import ObjectSelection
from kubewright.devserver.handlers.shard_selector import ShardSelector
from kubewright.devserver.objects import JsonObject, decode, encode
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ServedResource
from kubewright.devserver.request.negotiation import ResponseFormat
from kubewright.devserver.request.options import ListParameters, parse_revision
from kubewright.devserver.storage import ContinueToken, Record, decode_token, encode_token, renewed_token
from kubewright.devserver.strategy import Strategy
from kubewright.devserver.strategy.tables import partial, table

FUTURE_SECONDS = 3.0


# Since this minor version, kube-apiserver checks the options of a list before it decides where to list from.
_FIRST_CHECKED_LISTS = 33


async def wait_for_revision(core: Core, revision: int) -> None:
    """Wait a little for a revision of the near future, else refuse."""
    if not await core.store.wait_for(revision, FUTURE_SECONDS):
        raise StatusError.too_large_revision(revision, core.store.revision)


def object_revision(text: str) -> int:
    """Read the resourceVersion of a get or a watch."""
    try:
        return parse_revision(text)
    except ValueError as error:
        raise StatusError.unknown(
            f"resourceVersion: Invalid value: {problems.quoted(text)}: {error}"
        ) from None


def list_revision(text: str) -> int:
    """Read the resourceVersion of a list, for which kube-apiserver has another error."""
    try:
        return object_revision(text)
    except StatusError as error:
        raise StatusError.bad_request(f"invalid resource version: {error.message}") from None


def get_record(
    resource: ServedResource, namespace: str, name: str, max_visible_revision: int | None
) -> Record:
    """Find one object's record, as it was at the max_visible_revision if there is one, or refuse."""
    key = resource.key(namespace, name)
    if max_visible_revision is None:
        record = resource.collection.get(key)
    else:
        record = next(
            (item for item in resource.collection.page_at(max_visible_revision, key, key) if item.key == key),
            None,
        )
    if record is None:
        raise StatusError.not_found(resource.group, resource.plural, name)
    return record


def object_body(core: Core, strategy: Strategy, data: bytes, form: ResponseFormat, include: str) -> bytes:
    """Return one object's bytes in the requested form, still as JSON."""
    if form.form == "object":
        return data
    obj = decode(data)
    if form.form == "Table":
        revision = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        document = table(
            strategy,
            [obj],
            revision,
            now=core.clock.seconds(),
            include=include,
            version=form.version,
        )
        return encode(document)
    return encode(partial(obj, form.version))


class Page:
    """The records of a list, its revision and its continue token."""

    __slots__ = ("records", "remaining", "revision", "token")

    def __init__(
        self, records: list[Record], revision: int, token: str = "", remaining: int | None = None
    ) -> None:
        self.records: list[Record] = records
        self.revision: int = revision
        self.token: str = token
        self.remaining: int | None = remaining


def list_page(
    core: Core, chosen: ObjectSelection, options: ListParameters
) -> Page | Coroutine[Any, Any, Page]:
    """Find the records of a list; a list at a revision of the future has to be awaited."""
    text = options.resource_version
    from_cache = not options.token and options.match != "Exact" and (options.match or options.limit <= 0)
    if from_cache and core.types.release.minor < _FIRST_CHECKED_LISTS:
        revision = object_revision(text)
    else:
        revision = list_revision(text)
    if options.token:
        if revision:
            raise StatusError.bad_request("specifying resource version is not allowed when using continue")
        return _continued(core, chosen, options, decode_token(options.token))
    if revision > core.store.revision:
        return _list_later(core, chosen, options, revision)
    return _list_now(core, chosen, options, revision)


async def _list_later(core: Core, chosen: ObjectSelection, options: ListParameters, revision: int) -> Page:
    await wait_for_revision(core, revision)
    return _list_now(core, chosen, options, revision)


def _list_now(core: Core, chosen: ObjectSelection, options: ListParameters, revision: int) -> Page:
    exact = options.match == "Exact" or (revision > 0 and options.limit > 0 and not options.match)
    if exact:
        if revision < core.store.compacted and not options.stale:
            raise _too_old()
        return _page_at(core, chosen, 0 if chosen.is_single else options.limit, revision, chosen.prefix)
    limit = _limit(options)
    if chosen.is_single:
        record = chosen.resource.collection.get(f"{chosen.prefix}{chosen.name}")
        found = [record] if record is not None and chosen.matches(record) else []
        return Page(found, core.store.revision)
    records = chosen.resource.collection.records(chosen.prefix)
    return _cut(chosen, chosen.indexed(records) if limit else records, limit, core.store.revision)


def _continued(core: Core, chosen: ObjectSelection, options: ListParameters, token: ContinueToken) -> Page:
    start = chosen.prefix + token.start
    # Without snapshots of its cache, kube-apiserver reads all pages but the first from etcd.
    from_cache = core.types.release.enabled("ListFromCacheSnapshot")
    limit = _limit(options) if from_cache else options.limit
    if token.revision < 0:
        records = chosen.resource.collection.page(chosen.prefix, start)
        return _cut(chosen, records, limit, core.store.revision)
    if token.revision < max(chosen.resource.collection.floor, core.store.compacted):
        raise StatusError.expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new "
            "list without the continue parameter, or use the continue token in this response to retrieve the "
            "remainder of the results. Continuing with the provided token results in an inconsistent list - "
            "objects that were created, modified, or deleted between the time the first chunk was returned and "
            "now may show up in the list.",
            metadata={"continue": renewed_token(options.token)},
        )
    return _page_at(core, chosen, limit, token.revision, start)


def _limit(options: ListParameters) -> int:
    """Return the size of a page, 0 for no limit: with revision 0 kube-apiserver lists from its cache, in one page."""
    return 0 if options.resource_version == "0" else options.limit


def _too_old() -> StatusError:
    return StatusError.expired("The resourceVersion for the provided list is too old.")


def _page_at(core: Core, chosen: ObjectSelection, limit: int, revision: int, start: str) -> Page:
    collection = chosen.resource.collection
    if revision < collection.floor:
        raise _too_old()
    if revision >= core.store.revision or not collection.after(revision):
        records = collection.page(chosen.prefix, start)
    else:
        records = collection.page_at(revision, chosen.prefix, start)
    return _cut(chosen, records, limit, revision)


def _cut(chosen: ObjectSelection, records: list[Record], limit: int, revision: int) -> Page:
    if chosen.whole:
        if limit <= 0 or len(records) <= limit:
            return Page(records, revision)
        kept = records[:limit]
        return Page(kept, revision, _token(chosen, kept[-1], revision), len(records) - limit)
    found: list[Record] = []
    for record in records:
        if 0 < limit == len(found):
            # The page is full; whether one of the remaining objects matches is seen with the next one.
            return Page(found, revision, _token(chosen, found[-1], revision))
        if chosen.matches(record):
            found.append(record)
    return Page(found, revision)


def _token(chosen: ObjectSelection, last: Record, revision: int) -> str:
    return encode_token(revision, last.key.removeprefix(chosen.prefix))


def page_meta(page: Page, *, custom: bool, shards: ShardSelector | None = None) -> JsonObject:
    """Build the metadata of a list."""
    metadata: JsonObject = {"continue": page.token} if custom else {}
    metadata["resourceVersion"] = str(page.revision)
    if page.token:
        metadata["continue"] = page.token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    if shards is not None and not custom:
        # kube-apiserver sets it only on Go types of lists: those of custom resources, tables and metadata lack it.
        metadata["shardInfo"] = {"selector": shards.text}
    return metadata


def list_body(core: Core, chosen: ObjectSelection, page: Page, form: ResponseFormat, include: str) -> bytes:
    """Return a list's bytes in the requested form, still as JSON; plain lists are joined from stored bytes."""
    resource = chosen.resource
    if form.form == "object":
        return _join(resource, page, chosen.shards)
    objects = [resource.read(record) for record in page.records]
    metadata = page_meta(page, custom=False)
    if form.form == "Table":
        now = core.clock.seconds()
        document = table(
            resource.strategy,
            objects,
            metadata,
            now=now,
            is_list=True,
            include=include,
            version=form.version,
        )
        return encode(document)
    document = {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": metadata,
        # An empty list is Go's nil here.
        "items": [partial(obj, form.version) for obj in objects] or None,
    }
    return encode(document)


def protobuf_list(core: Core, chosen: ObjectSelection, page: Page) -> bytes:
    """Return a list of whole objects in protobuf; each record's message is written once."""
    resource = chosen.resource
    messages = [resource.protobuf_message(core.types, record) for record in page.records]
    metadata = page_meta(page, custom=False, shards=chosen.shards)
    return core.types.protobuf_list(resource.api_version, resource.list_kind, metadata, messages)


def _join(resource: ServedResource, page: Page, shards: ShardSelector | None) -> bytes:
    metadata = encode(page_meta(page, custom=resource.custom, shards=shards))
    render = resource.render
    if resource.custom:
        items = b",".join([render(record) for record in page.records])
        head = b'{"apiVersion":"%b","items":[' % resource.api_version.encode()
        return head + items + b'],"kind":"%b","metadata":%b}' % (resource.list_kind.encode(), metadata)
    head = b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % (
        resource.list_kind.encode(),
        resource.api_version.encode(),
        metadata,
    )
    if not page.records:
        return head + b"]}"
    start = resource.codec.list_prefix
    return head + b"{" + b",{".join([render(record)[start:] for record in page.records]) + b"]}"
