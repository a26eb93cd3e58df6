"""Logs of one reconcile: each line carries the controller, the object and the reconcileID."""

import logging
import uuid
from collections.abc import Mapping, MutableMapping
from typing import Any

from kubewright.api import Kind, ObjectKey

FIELDS = "fields"
"""The attribute of a log record that holds its structured fields; `name` itself is taken by logging."""


class FieldLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records carry `fields`; fields given with a call are added to its own."""

    def __init__(self, logger: logging.Logger, fields: Mapping[str, Any]) -> None:
        super().__init__(logger)
        self._fields = fields

    @property
    def fields(self) -> Mapping[str, Any]:
        """Return what each record carries."""
        return self._fields

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Put the fields of the adapter and of the call into the record."""
        given: Mapping[str, Any] = kwargs.get("extra") or {}
        kwargs["extra"] = {FIELDS: {**self.fields, **given}}
        return msg, kwargs


class ReconcileLog(FieldLog):
    """The logger of one reconcile; its reconcileID is made when it is first asked for: most runs say nothing."""

    def __init__(self, log: FieldLog, kind: Kind, key: ObjectKey) -> None:
        super().__init__(log.logger, log.fields)
        self._kind = kind
        self._key = key
        self._complete = False

    @property
    def fields(self) -> Mapping[str, Any]:
        """Return what each record carries."""
        if not self._complete:
            namespace, name = self._key
            self._complete = True
            self._fields = {
                **self._fields,
                self._kind.kind: {"namespace": namespace, "name": name},
                "namespace": namespace,
                "name": name,
                "reconcileID": str(uuid.uuid4()),
            }
        return self._fields


def controller_log(name: str, kind: Kind) -> FieldLog:
    """Return the logger of a controller, with controller-runtime's keys."""
    fields = {"controller": name, "controllerGroup": kind.group, "controllerKind": kind.kind}
    return FieldLog(logging.getLogger("kubewright.controller"), fields)
