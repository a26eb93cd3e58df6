"""The registry: which resources are served, built in or defined by custom resource definitions."""

from .catalog import Strategies, builtin_resources
from .codecs import BuiltinCodec, Codec, CustomCodec
from .definitions import custom_resources
from .discovery import AGGREGATED, Discovery, Document
from .openapi import OpenApi
from .resources import Registry, Resource, Subresource

__all__ = [
    "AGGREGATED",
    "BuiltinCodec",
    "Codec",
    "CustomCodec",
    "Discovery",
    "Document",
    "OpenApi",
    "Registry",
    "Resource",
    "Strategies",
    "Subresource",
    "builtin_resources",
    "custom_resources",
]
