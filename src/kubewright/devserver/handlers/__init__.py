"""Handlers: the verbs of the API over the store, each write through one path."""

from kubewright.devserver.handlers.access import StoreAccess
from kubewright.devserver.handlers.call import Call
from kubewright.devserver.handlers.connect import connect
from kubewright.devserver.handlers.verbs import (
    create_object,
    delete_collection,
    delete_object,
    get,
    list_objects,
    patch_object,
    update_object,
    watch,
)

__all__ = [
    "Call",
    "StoreAccess",
    "connect",
    "create_object",
    "delete_collection",
    "delete_object",
    "get",
    "list_objects",
    "patch_object",
    "update_object",
    "watch",
]
