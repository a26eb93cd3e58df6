"""Certificates: an authority that issues them, and a TLS context that uses the newest.

Loads `cryptography`: import it only where TLS is used.
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
