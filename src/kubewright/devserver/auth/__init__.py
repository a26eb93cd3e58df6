"""Who may do what: certificates, tokens, ServiceAccounts, impersonation, RBAC and its reviews."""

from .authentication import ANONYMOUS, RequestAuthenticator, TokenAuthenticator, impersonated, service_account_user
from .bootstrap import bootstrap_objects
from .escalation import refuse_escalation
from .rbac import GROUP, Policies, RoleAuthorizer
from .reviews import Reviews, user_info
from .tokens import ISSUER, TokenIssuer

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
    "bootstrap_objects",
    "impersonated",
    "refuse_escalation",
    "service_account_user",
    "user_info",
]
