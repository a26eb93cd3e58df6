"""Storage: objects as bytes under one rising revision, with history for watches and chunked lists."""

from .collection import Collection
from .journal import Journal
from .records import ADDED, DELETED, MODIFIED, Event, Record
from .store import Conflict, Store
from .tokens import Token, decode_token, encode_token, renewed_token

__all__ = [
    "ADDED",
    "DELETED",
    "MODIFIED",
    "Collection",
    "Conflict",
    "Event",
    "Journal",
    "Record",
    "Store",
    "Token",
    "decode_token",
    "encode_token",
    "renewed_token",
]
