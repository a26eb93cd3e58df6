"""Storage: objects as bytes under one rising revision, with history for watches and chunked lists."""

from kubewright.devserver.storage.collection import Collection
from kubewright.devserver.storage.journal import Journal, JournalError
from kubewright.devserver.storage.records import ADDED, DELETED, MODIFIED, Event, Record
from kubewright.devserver.storage.store import Backup, Conflict, Store
from kubewright.devserver.storage.tokens import Token, decode_token, encode_token, renewed_token

__all__ = [
    "ADDED",
    "DELETED",
    "MODIFIED",
    "Backup",
    "Collection",
    "Conflict",
    "Event",
    "Journal",
    "JournalError",
    "Record",
    "Store",
    "Token",
    "decode_token",
    "encode_token",
    "renewed_token",
]
