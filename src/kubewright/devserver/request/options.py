"""Options that come with a request: how to write, how to delete, which objects to list and watch."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kubewright.api import (
    DurationError,
    FieldError,
    SelectorError,
    parse_duration,
    parse_fields,
    parse_labels,
    problems,
)
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.info import RequestInfo
from kubewright.http.server import Request

APPLY_PATCH = "application/apply-patch+yaml"
MAX_MANAGER = 128

_META_GROUP = "meta.k8s.io"
_LONG_RUNNING = frozenset({"attach", "exec", "log", "portforward", "proxy"})
_PROPAGATIONS = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class WriteParameters:
    """The options of a create, update or patch."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool | None = None

    def wire(self, kind: str) -> JsonObject:
        """Build the options object that admission is shown."""
        options: JsonObject = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            options["dryRun"] = ["All"]
        if self.force is not None and kind == "PatchOptions":
            options["force"] = self.force
        if self.field_manager:
            options["fieldManager"] = self.field_manager
        return options


def write_options(request: Request, kind: str, *, patch_type: str = "") -> WriteParameters:
    """Read and check the options of a create, update or patch."""
    manager = request.one("fieldManager")
    validation = request.one("fieldValidation")
    dry_run = [value for value in request.query.get("dryRun", ()) if value]
    force = _boolean(request, "force")
    errors: list[FieldError] = []
    if patch_type == APPLY_PATCH:
        if not manager:
            errors.append(problems.required("fieldManager", "is required for apply patch"))
    elif patch_type and force is not None:
        errors.append(problems.forbidden("force", "may not be specified for non-apply patch"))
    errors += _manager_errors(manager)
    errors += _dry_run_errors(dry_run)
    if validation not in ("", "Ignore", "Warn", "Strict"):
        errors.append(problems.not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    if errors:
        raise StatusError.invalid(_META_GROUP, kind, "", errors)
    return WriteParameters(bool(dry_run), manager, validation or "Warn", force)


def manager_of(options: WriteParameters, request: Request) -> str:
    """Return the field manager: the option, else the name in the User-Agent header."""
    if options.field_manager:
        return options.field_manager
    agent = request.headers.get("user-agent", "").split("/", 1)[0]
    kept = agent if agent.isprintable() else "".join(char for char in agent if char.isprintable())
    return kept.encode()[:MAX_MANAGER].decode(errors="ignore")


def _manager_errors(manager: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(manager.encode()) > MAX_MANAGER:
        errors.append(problems.too_long("fieldManager", MAX_MANAGER))
    for position, char in enumerate("" if manager.isprintable() else manager):
        if not char.isprintable():
            text = f"invalid character U+{ord(char):04X} (at position {position})"
            errors.append(problems.invalid("fieldManager", manager, text))
    return errors


def _dry_run_errors(values: Sequence[str]) -> list[FieldError]:
    if set(values) <= {"All"}:
        return []
    return [problems.not_supported("dryRun", list(values), ("All",))]


def _boolean(request: Request, name: str) -> bool | None:
    return request.flag(name) if name in request.query else None


UNDECODABLE = "ignoreStoreReadErrorWithClusterBreakingPotential"


@dataclass(slots=True)
class DeleteOptions:
    """How to delete."""

    dry_run: bool = False
    grace_period: int | None = None
    orphan_dependents: bool | None = None
    propagation: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    undecodable: bool = False
    """Delete an object that cannot be read (`ignoreStoreReadErrorWithClusterBreakingPotential`), and no other."""

    def wire(self) -> JsonObject:
        """Build the options object that admission is shown."""
        options: JsonObject = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        if self.grace_period is not None:
            options["gracePeriodSeconds"] = self.grace_period
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        if any(preconditions.values()):
            options["preconditions"] = {name: value for name, value in preconditions.items() if value}
        if self.orphan_dependents is not None:
            options["orphanDependents"] = self.orphan_dependents
        if self.propagation is not None:
            options["propagationPolicy"] = self.propagation
        if self.dry_run:
            options["dryRun"] = ["All"]
        if self.undecodable:
            options[UNDECODABLE] = True
        return options

    def undecodable_errors(self) -> list[FieldError]:
        """Return the errors of options that the deletion of an object that cannot be read does not take."""
        conflicting = (
            ("propagationPolicy", self.propagation),
            ("orphanDependents", self.orphan_dependents),
            ("gracePeriodSeconds", self.grace_period),
            ("preconditions", self.uid or self.resource_version),
        )
        return [
            problems.invalid(UNDECODABLE, True, f"cannot be set together with .{name}")
            for name, value in conflicting
            if self.undecodable and value is not None
        ]


def delete_options(request: Request, body: JsonObject | None, *, unsafe: bool) -> DeleteOptions:
    """Read the options of a deletion from its body, else from its query.

    Without `unsafe`, the option to delete an object that cannot be read is ignored.
    """
    found = _delete_query(request) if body is None else dict(body)
    if not unsafe:
        found.pop(UNDECODABLE, None)
    return read_delete_options(found)


def read_delete_options(body: JsonObject) -> DeleteOptions:
    """Read and check a DeleteOptions object."""
    dry_run: list[str] = body.get("dryRun") or []
    preconditions: JsonObject = body.get("preconditions") or {}
    options = DeleteOptions(
        dry_run=bool(dry_run),
        grace_period=body.get("gracePeriodSeconds"),
        orphan_dependents=body.get("orphanDependents"),
        propagation=body.get("propagationPolicy"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        undecodable=bool(body.get(UNDECODABLE)),
    )
    errors: list[FieldError] = []
    if options.propagation is not None:
        if options.orphan_dependents is not None:
            text = "orphanDependents and deletionPropagation cannot be both set"
            errors.append(problems.invalid("propagationPolicy", options.propagation, text))
        if options.propagation not in _PROPAGATIONS:
            errors.append(
                problems.not_supported("propagationPolicy", options.propagation, (*_PROPAGATIONS, "nil"))
            )
    errors += _dry_run_errors(dry_run)
    errors += options.undecodable_errors()
    if errors:
        raise invalid_delete_options(errors)
    return options


def invalid_delete_options(errors: list[FieldError]) -> StatusError:
    """Return the error that lists what is wrong with the options of a deletion."""
    return StatusError.invalid(_META_GROUP, "DeleteOptions", "", errors)


def _delete_query(request: Request) -> JsonObject:
    body: JsonObject = {}
    if dry_run := [value for value in request.query.get("dryRun", ()) if value]:
        body["dryRun"] = dry_run
    if "gracePeriodSeconds" in request.query:
        body["gracePeriodSeconds"] = integer(request, "gracePeriodSeconds")
    if "orphanDependents" in request.query:
        body["orphanDependents"] = request.flag("orphanDependents")
    if "propagationPolicy" in request.query:
        body["propagationPolicy"] = request.one("propagationPolicy")
    if UNDECODABLE in request.query:
        body[UNDECODABLE] = request.flag(UNDECODABLE)
    return body


def check_timeout(request: Request, info: RequestInfo) -> None:
    """Raise BadRequest for a `timeout` that is not a duration; long-running requests have none."""
    text = request.one("timeout")
    if not text or info.verb in ("watch", "proxy") or info.subresource in _LONG_RUNNING:
        return
    try:
        parse_duration(text)
    except DurationError:
        quoted = problems.quoted(text)
        unitless = re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)", text) is not None
        why = f"missing unit in duration {quoted}" if unitless else f"invalid duration {quoted}"
        raise StatusError.bad_request(f"invalid timeout specified in the request URL - time: {why}") from None


def integer(request: Request, name: str) -> int:
    """Read a whole number from the query."""
    text = request.one(name)
    if not text:
        return 0
    try:
        return int(text, 10)
    except ValueError:
        quoted = problems.quoted(text)
        raise StatusError.bad_request(f"strconv.ParseInt: parsing {quoted}: invalid syntax") from None


@dataclass(slots=True)
class ListParameters:
    """Which objects to list or watch, and how."""

    labels: str = ""
    fields: str = ""
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    token: str = ""
    bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout: int | None = None
    shards: str = ""
    stale: bool = False
    """A test holds reads back at this revision, for as long as it likes."""


def list_options(request: Request, *, watch: bool, watch_list: bool = True) -> ListParameters:
    """Read and check the options of a list or a watch; without `watch_list`, a watch sends no initial events."""
    options = ListParameters(
        labels=request.one("labelSelector"),
        fields=request.one("fieldSelector"),
        resource_version=request.one("resourceVersion"),
        match=request.one("resourceVersionMatch"),
        limit=integer(request, "limit"),
        token=request.one("continue"),
        bookmarks=request.flag("allowWatchBookmarks"),
        send_initial_events=_boolean(request, "sendInitialEvents"),
        timeout=integer(request, "timeoutSeconds") if "timeoutSeconds" in request.query else None,
        shards=request.one("shardSelector"),
    )
    errors = _watch_errors(options, watch_list) if watch else _list_errors(options)
    if errors:
        _check_selectors(options)
        raise StatusError.invalid(_META_GROUP, "ListOptions", "", errors)
    return options


def _check_selectors(options: ListParameters) -> None:
    """Raise BadRequest for selectors that cannot be parsed: they are read before options are checked."""
    try:
        parse_labels(options.labels)
        parse_fields(options.fields)
    except SelectorError as error:
        raise StatusError.bad_request(str(error)) from None


def _list_errors(options: ListParameters) -> list[FieldError]:
    errors: list[FieldError] = []
    field = "resourceVersionMatch"
    if options.match:
        if not options.resource_version:
            text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            errors.append(problems.forbidden(field, text))
        if options.token:
            errors.append(
                problems.forbidden(field, "resourceVersionMatch is forbidden when continue is provided")
            )
        if options.match not in ("Exact", "NotOlderThan"):
            errors.append(problems.not_supported(field, options.match, ("Exact", "NotOlderThan", "")))
        if options.match == "Exact" and options.resource_version == "0":
            text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(problems.forbidden(field, text))
    if options.send_initial_events is not None:
        errors.append(problems.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListParameters, watch_list: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    field = "resourceVersionMatch"
    if options.send_initial_events is not None and options.match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors.append(problems.forbidden(field, text))
    if options.send_initial_events is not None and not watch_list:
        text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        errors.append(problems.forbidden("sendInitialEvents", text))
    if options.match:
        if options.send_initial_events is None:
            text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(problems.forbidden(field, text))
        if options.match != "NotOlderThan":
            errors.append(problems.not_supported(field, options.match, ("NotOlderThan",)))
    if options.token:
        errors.append(
            problems.forbidden(field, "resourceVersionMatch is forbidden when continue is provided")
        )
    return errors


def parse_revision(text: str) -> int:
    """Read a resourceVersion; raise ValueError with Go's text."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"strconv.ParseUint: parsing {problems.quoted(text)}: invalid syntax")
    value = int(text)
    if value >= 2**64:
        raise ValueError(f"strconv.ParseUint: parsing {problems.quoted(text)}: value out of range")
    return value
