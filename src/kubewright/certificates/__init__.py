"""Certificates: an authority that issues them, and a TLS context that shows the newest.

Loads `cryptography`: whoever imports this is itself loaded only where TLS is served or tried.
"""

from kubewright.certificates.authority import SKEW, Authority, KeyPair, private_key, requested_organizations
from kubewright.certificates.context import FollowingContext, load_pair

__all__ = [
    "SKEW",
    "Authority",
    "FollowingContext",
    "KeyPair",
    "load_pair",
    "private_key",
    "requested_organizations",
]
