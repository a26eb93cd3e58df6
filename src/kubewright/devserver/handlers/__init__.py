"""Handlers: the verbs of the API over the store, each write through one path."""

from .access import StoreAccess
from .call import Call, refuse
from .connect import connect
from .verbs import (
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
    "refuse",
    "update_object",
    "watch",
]
