"""Authentication: client certificates, bearer tokens, ServiceAccount tokens, impersonation."""

import base64
import csv
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from msgspec.structs import replace

from kubewright.devserver.auth.rbac import RoleAuthorizer
from kubewright.devserver.auth.tokens import LEGACY_ISSUER, InvalidToken, TokenIssuer
from kubewright.devserver.objects import section
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.identity import (
    AUTHENTICATED,
    CREDENTIAL_ID,
    AuthorizationAttributes,
    UserInfo,
    forbidden,
)
from kubewright.devserver.request.info import FINGERPRINT
from kubewright.devserver.strategy.access import Access
from kubewright.http.server import Request

ANONYMOUS = UserInfo("system:anonymous", groups=("system:unauthenticated",))
SERVICE_ACCOUNTS = "system:serviceaccounts"
_AUTHENTICATION = "authentication.k8s.io"
_EXTRA = "impersonate-extra-"


def service_account_user(
    namespace: str, name: str, uid: str = "", extra: Mapping[str, Any] | None = None
) -> UserInfo:
    """Return the user of a ServiceAccount."""
    groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED)
    return UserInfo(f"system:serviceaccount:{namespace}:{name}", uid, groups, extra or {})


class TokenAuthenticator:
    """Authenticate the tokens that the server issued, and static tokens."""

    def __init__(self, issuer: TokenIssuer, api: Access) -> None:
        self._issuer = issuer
        self._api = api
        self._users: dict[str, UserInfo] = {}

    def add(self, token: str, name: str, groups: Sequence[str] = ()) -> None:
        """Register a static token of a user."""
        self.add_user(token, UserInfo(name, groups=tuple(groups)))

    def add_user(self, token: str, user: UserInfo) -> None:
        """Register a static token of a user, who becomes a member of system:authenticated."""
        groups = (*user.groups, AUTHENTICATED)
        self._users[token] = UserInfo(user.name, user.uid, groups, user.extra)

    def check(self, token: str, audiences: Sequence[str] = ()) -> tuple[UserInfo, list[str]]:
        """Return the user of a token and the audiences that match, or raise InvalidToken.

        Without audiences those of the server are meant.
        """
        audiences = audiences or self._issuer.audiences
        if user := self._users.get(token):
            return user, list(audiences)
        claims = self._issuer.claims(token)
        if claims["iss"] == LEGACY_ISSUER:
            return self._of_secret(token, claims), list(audiences)
        matching = [audience for audience in audiences if audience in claims["aud"]]
        if not matching:
            raise InvalidToken(
                f"[invalid bearer token, token audiences {_quoted(claims['aud'])} is invalid "
                f"for the target audiences {_quoted(audiences)}]"
            )
        return self._service_account(claims), matching

    def _of_secret(self, token: str, claims: Mapping[str, Any]) -> UserInfo:
        """Return the user of a token that a Secret must hold."""
        names = ("namespace", "secret.name", "service-account.name", "service-account.uid")
        namespace, secret, name, uid = (
            str(claims.get(f"kubernetes.io/serviceaccount/{key}")) for key in names
        )
        held = self._api.find("", "secrets", namespace, secret)
        account = self._api.find("", "serviceaccounts", namespace, name)
        stored = base64.b64encode(token.encode()).decode()
        if held is None or section(held, "data").get("token") != stored:
            raise InvalidToken("[invalid bearer token, service account token has been invalidated]")
        if account is None or account["metadata"]["uid"] != uid:
            raise InvalidToken("[invalid bearer token, service account token has been invalidated]")
        return service_account_user(namespace, name, uid)

    def _service_account(self, claims: Mapping[str, Any]) -> UserInfo:
        private = claims["kubernetes.io"]
        namespace, account = private["namespace"], private["serviceaccount"]
        found = self._api.find("", "serviceaccounts", namespace, account["name"])
        if found is None or found["metadata"]["uid"] != account["uid"]:
            raise InvalidToken("[invalid bearer token, service account token has been invalidated]")
        extra = {CREDENTIAL_ID: (f"JTI={claims['jti']}",)}
        for kind, resource in (("pod", "pods"), ("secret", "secrets")):
            if (bound := private.get(kind)) is None:
                continue
            target = self._api.find("", resource, namespace, bound["name"])
            if target is None or target["metadata"]["uid"] != bound["uid"]:
                raise InvalidToken("[invalid bearer token, service account token has been invalidated]")
            if kind == "pod":
                extra["authentication.kubernetes.io/pod-name"] = (bound["name"],)
                extra["authentication.kubernetes.io/pod-uid"] = (bound["uid"],)
        if (node := private.get("node")) is not None:
            # A token that is bound to a Pod is invalidated with the Pod, not with its node.
            target = self._api.find("", "nodes", "", node["name"])
            if "pod" not in private and (target is None or target["metadata"]["uid"] != node["uid"]):
                raise InvalidToken("[invalid bearer token, service account token has been invalidated]")
            extra["authentication.kubernetes.io/node-name"] = (node["name"],)
            if node.get("uid"):
                extra["authentication.kubernetes.io/node-uid"] = (node["uid"],)
        return service_account_user(namespace, account["name"], account["uid"], extra)


class RequestAuthenticator:
    """Authenticate requests by bearer token or client certificate, else as anonymous where that is allowed."""

    def __init__(
        self, tokens: TokenAuthenticator, *, anonymous: bool, names_certificates: bool = True
    ) -> None:
        """Take the tokens; with `names_certificates`, the user of a certificate has its fingerprint."""
        self.tokens = tokens
        self._names_certificates = names_certificates
        self._anonymous = anonymous

    def authenticate(
        self, headers: Mapping[str, str], peer_certificate: Mapping[str, Any] | None
    ) -> UserInfo:
        """Return the user, or raise `StatusError.unauthorized`."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            try:
                return self.tokens.check(token.strip())[0]
            except InvalidToken:
                raise StatusError.unauthorized() from None
        if peer_certificate:
            user = _certificate_user(
                peer_certificate.get("subject", ()), peer_certificate.get(FINGERPRINT, "")
            )
            return user if self._names_certificates else UserInfo(user.name, user.uid, user.groups)
        if self._anonymous and not scheme:
            return ANONYMOUS
        raise StatusError.unauthorized()


class TokenFileError(ValueError):
    """A line of a token file is not in its form."""


def read_token_file(path: Path) -> dict[str, UserInfo]:
    """Return the users of a static token file: lines with token, name, uid and, in quotes, groups.

    Raise OSError if the file cannot be read, and TokenFileError with the line that is not in this form.
    """
    users: dict[str, UserInfo] = {}
    with path.open(newline="") as file:
        for number, row in enumerate(csv.reader(file, skipinitialspace=True), 1):
            if not row or row[0].startswith("#"):
                continue
            if len(row) < 3:
                raise TokenFileError(
                    f"{path}:{number}: expected token, user name, user uid, found {len(row)} columns"
                )
            groups = [group.strip() for group in row[3].split(",")] if len(row) > 3 else []
            users[row[0]] = UserInfo(row[1], row[2], tuple(filter(None, groups)))
    return users


@lru_cache(maxsize=256)
def _certificate_user(subject: Sequence[Sequence[tuple[str, str]]], fingerprint: str) -> UserInfo:
    """Return the user of a verified client certificate: the common name, with organizations as groups.

    Cached, since each request of a connection comes with its certificate.
    """
    name, groups = "", list[str]()
    for part in subject:
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    if not name:
        raise StatusError.unauthorized()
    extra = {CREDENTIAL_ID: (f"X509SHA256={fingerprint}",)} if fingerprint else {}
    return UserInfo(name, groups=(*groups, AUTHENTICATED), extra=extra)


def impersonated(
    user: UserInfo,
    request: Request,
    requested: AuthorizationAttributes,
    authorizer: RoleAuthorizer,
) -> UserInfo:
    """Return the user that a request impersonates, or the sender without impersonation headers.

    `requested` are the attributes of the request. Raise Forbidden if the sender may not impersonate.
    """
    headers, groups = request.headers, request.every("impersonate-group")
    name = headers.get("impersonate-user", "")
    extra = _extra(request)
    if not name:
        if groups or extra or "impersonate-uid" in headers:
            shown = _shown(headers.get("impersonate-uid", ""), groups, extra)
            raise StatusError.bad_request(f"requested {shown} without impersonating a user name")
        return user
    parts = name.split(":")
    of_account = name.startswith("system:serviceaccount:") and len(parts) == 4
    needed = [
        AuthorizationAttributes("impersonate", "", "v1", "serviceaccounts", "", parts[2], parts[3])
        if of_account
        else AuthorizationAttributes("impersonate", "", "v1", "users", "", "", name)
    ]
    needed += [AuthorizationAttributes("impersonate", "", "v1", "groups", "", "", group) for group in groups]
    for key, values in extra.items():
        needed += [
            AuthorizationAttributes("impersonate", _AUTHENTICATION, "v1", "userextras", key, "", value)
            for value in values
        ]
    if uid := headers.get("impersonate-uid", ""):
        needed.append(AuthorizationAttributes("impersonate", _AUTHENTICATION, "v1", "uids", "", "", uid))
    if not all(authorizer.authorize(user, attributes).allowed for attributes in needed):
        # Since constrained impersonation, kube-apiserver names the permission that suffices for this request alone.
        mode = "serviceaccount" if of_account else "user-info"
        raise forbidden(user, replace(requested, verb=f"impersonate-on:{mode}:{requested.verb}"))
    implied = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{parts[2]}") if of_account else ()
    all_groups = list(dict.fromkeys(groups or implied))
    if (
        name != ANONYMOUS.name
        and "system:unauthenticated" not in all_groups
        and AUTHENTICATED not in all_groups
    ):
        all_groups.append(AUTHENTICATED)
    return UserInfo(name, uid, tuple(all_groups), extra)


def _extra(request: Request) -> dict[str, tuple[str, ...]]:
    return {
        unquote(name[len(_EXTRA) :]): tuple(request.every(name))
        for name in request.headers
        if name.startswith(_EXTRA)
    }


def _shown(uid: str, groups: Sequence[str], extra: Mapping[str, Sequence[str]]) -> str:
    """Format a user without a name in Go syntax, as kube-apiserver's message does."""
    more = ", ".join(f'"{key}":{_go_list(values)}' for key, values in sorted(extra.items()))
    extras = f"{{{more}}}" if extra else "(nil)"
    listed = _go_list(groups) if groups else "[]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:"{uid}", Groups:{listed}, Extra:map[string][]string{extras}}}'


def _go_list(values: Sequence[str]) -> str:
    return "[]string{" + ", ".join(f'"{value}"' for value in values) + "}"


def _quoted(values: Sequence[str]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"
