"""Logs of one reconcile: each line carries the controller, the object and the reconcileID."""

import logging
from collections.abc import Mapping, MutableMapping
from typing import Any

from kubewright.api import Kind, ObjectKey

FIELDS = "fields"
"""The attribute of a log record that holds its structured fields; `name` itself is taken by logging."""


class FieldLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records carry `fields`; fields given with a call are added to its own."""

    def __init__(self, logger: logging.Logger, fields: Mapping[str, Any]) -> None:
        super().__init__(logger)
        self.fields: dict[str, Any] = dict(fields)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Put the fields of the adapter and of the call into the record."""
        given: Mapping[str, Any] = kwargs.get("extra") or {}
        kwargs["extra"] = {FIELDS: {**self.fields, **given}}
        return msg, kwargs

    def with_fields(self, **fields: Any) -> "FieldLog":
        """Return a logger that adds these fields too."""
        return FieldLog(self.logger, {**self.fields, **fields})


def controller_log(name: str, kind: Kind) -> FieldLog:
    """Return the logger of a controller, with controller-runtime's keys."""
    fields = {"controller": name, "controllerGroup": kind.group, "controllerKind": kind.kind}
    return FieldLog(logging.getLogger("kubewright.controller"), fields)


def object_log(log: FieldLog, kind: Kind, key: ObjectKey, reconcile_id: str) -> FieldLog:
    """Return the logger of one reconcile."""
    fields = {
        kind.kind: {"namespace": key.namespace, "name": key.name},
        "namespace": key.namespace,
        "name": key.name,
        "reconcileID": reconcile_id,
    }
    return log.with_fields(**fields)
