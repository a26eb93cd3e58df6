"""Which resources are served, built in or by CustomResourceDefinitions.

Read in this order: `resources` (`ResourceRegistry`, the entry point, and `ServedResource`), `catalog` (built-in resources), `definitions` and
`scale_checks` (custom resources), `codecs` (decoding, defaults and validation of one version), `conversion` (conversion webhooks).
"""

from kubewright.devserver.registry.catalog import Strategies, builtin_resources
from kubewright.devserver.registry.codecs import BuiltinCodec, Codec, CustomCodec
from kubewright.devserver.registry.conversion import (
    UNSAFE_DELETION,
    Unconverted,
    UnconvertibleObjects,
    WebhookConverter,
    converting,
)
from kubewright.devserver.registry.definitions import custom_resources
from kubewright.devserver.registry.resources import ResourceRegistry, ServedResource, Subresource

__all__ = [
    "UNSAFE_DELETION",
    "BuiltinCodec",
    "Codec",
    "CustomCodec",
    "ResourceRegistry",
    "ServedResource",
    "Strategies",
    "Subresource",
    "Unconverted",
    "UnconvertibleObjects",
    "WebhookConverter",
    "builtin_resources",
    "converting",
    "custom_resources",
]
