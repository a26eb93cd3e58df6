"""Tell who asks: client certificates, bearer tokens, ServiceAccount tokens, impersonation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import unquote

from kubewright.devserver.auth.tokens import ISSUER, InvalidToken, TokenIssuer
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.identity import (
    AUTHENTICATED,
    Attributes,
    Authorizer,
    CertificateAuthenticator,
    User,
    forbidden,
)

ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))
SERVICE_ACCOUNTS = "system:serviceaccounts"
_AUTHENTICATION = "authentication.k8s.io"
_EXTRA = "impersonate-extra-"


class Objects(Protocol):
    """Where ServiceAccounts and what their tokens are bound to can be looked up."""

    def find(self, group: str, resource: str, namespace: str, name: str) -> JsonObject | None:
        """Read an object, or None when there is none."""
        ...


def service_account_user(
    namespace: str, name: str, uid: str = "", extra: Mapping[str, Any] | None = None
) -> User:
    """Name the user that a ServiceAccount is."""
    groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED)
    return User(f"system:serviceaccount:{namespace}:{name}", uid, groups, extra or {})


class TokenAuthenticator:
    """Know users by the tokens that the server gave out."""

    def __init__(self, issuer: TokenIssuer, objects: Objects) -> None:
        self._issuer = issuer
        self._objects = objects
        self._users: dict[str, User] = {}

    def add(self, token: str, name: str, groups: Sequence[str] = ()) -> None:
        """Make a token stand for a user."""
        self._users[token] = User(name, groups=(*groups, AUTHENTICATED))

    def check(self, token: str, audiences: Sequence[str] = (ISSUER,)) -> tuple[User, list[str]]:
        """Name the user of a token and the audiences that match, or raise InvalidToken."""
        if user := self._users.get(token):
            return user, list(audiences)
        claims = self._issuer.claims(token)
        matching = [audience for audience in audiences if audience in claims["aud"]]
        if not matching:
            raise InvalidToken(
                f"[invalid bearer token, token audiences {_quoted(claims['aud'])} is invalid "
                f"for the target audiences {_quoted(audiences)}]"
            )
        return self._service_account(claims), matching

    def _service_account(self, claims: Mapping[str, Any]) -> User:
        private = claims["kubernetes.io"]
        namespace, account = private["namespace"], private["serviceaccount"]
        found = self._objects.find("", "serviceaccounts", namespace, account["name"])
        if found is None or found["metadata"]["uid"] != account["uid"]:
            raise InvalidToken("[invalid bearer token, service account token has been invalidated]")
        extra = {"authentication.kubernetes.io/credential-id": (f"JTI={claims['jti']}",)}
        for kind, resource in (("pod", "pods"), ("secret", "secrets")):
            if (bound := private.get(kind)) is None:
                continue
            target = self._objects.find("", resource, namespace, bound["name"])
            if target is None or target["metadata"]["uid"] != bound["uid"]:
                raise InvalidToken("[invalid bearer token, service account token has been invalidated]")
            if kind == "pod":
                extra["authentication.kubernetes.io/pod-name"] = (bound["name"],)
                extra["authentication.kubernetes.io/pod-uid"] = (bound["uid"],)
        if (node := private.get("node")) is not None:
            # A token of a Pod dies with the Pod; only one that is bound to nothing else dies with the node.
            target = self._objects.find("", "nodes", "", node["name"])
            if "pod" not in private and (target is None or target["metadata"]["uid"] != node["uid"]):
                raise InvalidToken("[invalid bearer token, service account token has been invalidated]")
            extra["authentication.kubernetes.io/node-name"] = (node["name"],)
            if node.get("uid"):
                extra["authentication.kubernetes.io/node-uid"] = (node["uid"],)
        return service_account_user(namespace, account["name"], account["uid"], extra)


class RequestAuthenticator:
    """Name the user of a request by certificate or bearer token, or let nobody in as anonymous where allowed."""

    def __init__(self, tokens: TokenAuthenticator, *, anonymous: bool) -> None:
        self.tokens = tokens
        self._certificates = CertificateAuthenticator()
        self._anonymous = anonymous

    def authenticate(self, headers: Mapping[str, str], peer_certificate: Mapping[str, Any] | None) -> User:
        """Name the user, or raise `StatusError.unauthorized`."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            try:
                return self.tokens.check(token.strip())[0]
            except InvalidToken:
                raise StatusError.unauthorized() from None
        if peer_certificate:
            return self._certificates.authenticate({}, peer_certificate)
        if self._anonymous and not scheme:
            return ANONYMOUS
        raise StatusError.unauthorized()


def impersonated(
    user: User, headers: Mapping[str, str], groups: Sequence[str], wanted: Attributes, authorizer: Authorizer
) -> User:
    """Give the user whom a request impersonates, when its sender may; else the sender.

    `groups` are the values of every Impersonate-Group header, which may repeat; `wanted` is what the request asks.
    """
    name = headers.get("impersonate-user", "")
    extra = _extra(headers)
    if not name:
        if groups or extra or "impersonate-uid" in headers:
            shown = _shown(headers.get("impersonate-uid", ""), groups, extra)
            raise StatusError.bad_request(f"requested {shown} without impersonating a user name")
        return user
    parts = name.split(":")
    of_account = name.startswith("system:serviceaccount:") and len(parts) == 4
    asked = [
        Attributes("impersonate", "", "v1", "serviceaccounts", "", parts[2], parts[3])
        if of_account
        else Attributes("impersonate", "", "v1", "users", "", "", name)
    ]
    asked += [Attributes("impersonate", "", "v1", "groups", "", "", group) for group in groups]
    for key, values in extra.items():
        asked += [
            Attributes("impersonate", _AUTHENTICATION, "v1", "userextras", key, "", value) for value in values
        ]
    if uid := headers.get("impersonate-uid", ""):
        asked.append(Attributes("impersonate", _AUTHENTICATION, "v1", "uids", "", "", uid))
    if not all(authorizer.authorize(user, attributes).allowed for attributes in asked):
        # Servers that know constrained impersonation name the permission that would do for this request alone.
        mode = "serviceaccount" if of_account else "user-info"
        raise forbidden(user, replace(wanted, verb=f"impersonate-on:{mode}:{wanted.verb}"))
    implied = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{parts[2]}") if of_account else ()
    all_groups = list(dict.fromkeys(groups or implied))
    if (
        name != ANONYMOUS.name
        and "system:unauthenticated" not in all_groups
        and AUTHENTICATED not in all_groups
    ):
        all_groups.append(AUTHENTICATED)
    return User(name, uid, tuple(all_groups), extra)


def _extra(headers: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {
        unquote(name[len(_EXTRA) :]): tuple(part.strip() for part in value.split(","))
        for name, value in headers.items()
        if name.startswith(_EXTRA)
    }


def _shown(uid: str, groups: Sequence[str], extra: Mapping[str, Sequence[str]]) -> str:
    """Show a nameless user as the real server does, in Go's syntax."""
    more = ", ".join(f'"{key}":{_go_list(values)}' for key, values in sorted(extra.items()))
    extras = f"{{{more}}}" if extra else "(nil)"
    listed = _go_list(groups) if groups else "[]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:"{uid}", Groups:{listed}, Extra:map[string][]string{extras}}}'


def _go_list(values: Sequence[str]) -> str:
    return "[]string{" + ", ".join(f'"{value}"' for value in values) + "}"


def _quoted(values: Sequence[str]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"
