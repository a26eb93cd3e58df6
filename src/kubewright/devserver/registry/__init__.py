"""The registry: which resources are served, built in or defined by custom resource definitions."""

from .catalog import Strategies, builtin_resources
from .codecs import BuiltinCodec, Codec, CustomCodec
from .conversion import Converter, Unconverted, converting
from .definitions import custom_resources
from .discovery import AGGREGATED, Discovery, Document
from .openapi import OpenApi
from .resources import Registry, Resource, Subresource

__all__ = [
    "AGGREGATED",
    "BuiltinCodec",
    "Codec",
    "Converter",
    "CustomCodec",
    "Discovery",
    "Document",
    "OpenApi",
    "Registry",
    "Resource",
    "Strategies",
    "Subresource",
    "Unconverted",
    "builtin_resources",
    "converting",
    "custom_resources",
]
