"""Who may do what: certificates, tokens, ServiceAccounts, impersonation, RBAC and its reviews."""

from kubewright.devserver.auth.authentication import (
    ANONYMOUS,
    RequestAuthenticator,
    TokenAuthenticator,
    impersonated,
    service_account_user,
)
from kubewright.devserver.auth.escalation import refuse_escalation
from kubewright.devserver.auth.rbac import GROUP, Policies, RoleAuthorizer
from kubewright.devserver.auth.reviews import Reviews
from kubewright.devserver.auth.tokens import ISSUER, TokenIssuer

__all__ = [
    "ANONYMOUS",
    "GROUP",
    "ISSUER",
    "Policies",
    "RequestAuthenticator",
    "Reviews",
    "RoleAuthorizer",
    "TokenAuthenticator",
    "TokenIssuer",
    "impersonated",
    "refuse_escalation",
    "service_account_user",
]
