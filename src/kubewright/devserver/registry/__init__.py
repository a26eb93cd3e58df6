"""The registry: which resources are served, built in or defined by custom resource definitions."""

from .codecs import BuiltinCodec, Codec, CustomCodec
from .resources import Registry, Resource, Subresource

__all__ = ["BuiltinCodec", "Codec", "CustomCodec", "Registry", "Resource", "Subresource"]
