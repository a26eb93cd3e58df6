"""Authentication and authorization.

Read in this order: `authentication` (certificates, tokens, impersonation), `tokens` (ServiceAccount tokens) and `token_keys`, `rbac`
(`RoleAuthorizer`, the entry point) with `rules` (matching), `escalation` (writes of roles and bindings), `reviews` (TokenReview,
SubjectAccessReview and the other review kinds).
"""

from kubewright.devserver.auth.authentication import (
    ANONYMOUS,
    RequestAuthenticator,
    TokenAuthenticator,
    TokenFileError,
    impersonated,
    read_token_file,
    service_account_user,
)
from kubewright.devserver.auth.escalation import check_escalation, only_collected_fields_differ
from kubewright.devserver.auth.rbac import GROUP, AuthorizationMode, AuthorizationObserver, RoleAuthorizer
from kubewright.devserver.auth.reviews import Reviews
from kubewright.devserver.auth.tokens import TokenIssuer

__all__ = [
    "ANONYMOUS",
    "GROUP",
    "AuthorizationMode",
    "AuthorizationObserver",
    "RequestAuthenticator",
    "Reviews",
    "RoleAuthorizer",
    "TokenAuthenticator",
    "TokenFileError",
    "TokenIssuer",
    "check_escalation",
    "impersonated",
    "only_collected_fields_differ",
    "read_token_file",
    "service_account_user",
]
