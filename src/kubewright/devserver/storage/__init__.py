"""Objects as bytes under one rising revision, with history for watches and chunked lists.

Read in this order: `store` (`ObjectStore`, the entry point), `collection` (the objects of one resource and their history), `records`
(records and events), `tokens` (continue tokens), `expiry` (Events), `journal` (the data file).
"""

from kubewright.devserver.storage.collection import Collection
from kubewright.devserver.storage.expiry import EVENT_SECONDS, Expiry
from kubewright.devserver.storage.journal import DataFile, JournalError
from kubewright.devserver.storage.records import ADDED, DELETED, MODIFIED, Record, StoreEvent
from kubewright.devserver.storage.store import Backup, Derived, ObjectStore, WriteConflict
from kubewright.devserver.storage.tokens import ContinueToken, decode_token, encode_token, renewed_token

__all__ = [
    "ADDED",
    "DELETED",
    "EVENT_SECONDS",
    "MODIFIED",
    "Backup",
    "Collection",
    "ContinueToken",
    "DataFile",
    "Derived",
    "Expiry",
    "JournalError",
    "ObjectStore",
    "Record",
    "StoreEvent",
    "WriteConflict",
    "decode_token",
    "encode_token",
    "renewed_token",
]
