"""The registry: which resources are served, built in or defined by custom resource definitions."""

from kubewright.devserver.registry.catalog import Strategies, builtin_resources
from kubewright.devserver.registry.codecs import BuiltinCodec, Codec, CustomCodec
from kubewright.devserver.registry.conversion import Converter, Unconverted, converting
from kubewright.devserver.registry.definitions import custom_resources
from kubewright.devserver.registry.discovery import AGGREGATED, Discovery, Document
from kubewright.devserver.registry.openapi import OpenApi
from kubewright.devserver.registry.resources import Registry, Resource, Subresource

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
