"""The token controller: fills Secrets that ask for a token of a ServiceAccount, and deletes them with the account."""

import base64
from typing import Protocol

from kubewright.api.builtin import core_v1
from kubewright.controller import Context, Controller, Index, Options, Selector, needs, watch

NAME = "serviceaccount-token-controller"
TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"


class IssueToken(Protocol):
    """Issue a token without an end for a ServiceAccount, which is valid as long as its Secret holds it."""

    def __call__(self, *, namespace: str, account: str, uid: str, secret: str) -> str:
        """Return the token."""
        ...


class TokenSecrets:
    """Fill the Secrets of ServiceAccounts."""

    def __init__(self, issue: IssueToken, ca_pem: bytes) -> None:
        self._issue = issue
        self._ca = ca_pem

    async def reconcile(self, secret: core_v1.Secret, ctx: Context) -> None:
        """Add the token, the certificate and the namespace, or delete a Secret without its ServiceAccount."""
        annotations = secret.metadata.annotations or {}
        name, namespace = annotations.get(ACCOUNT_NAME, ""), secret.metadata.namespace
        account = await ctx.live.find(core_v1.ServiceAccount, name, namespace)
        uid = annotations.get(ACCOUNT_UID)
        if account is None or uid not in (None, account.metadata.uid):
            await ctx.delete(secret)
            return
        data = secret.data or {}
        missing: dict[str, bytes] = {}
        if data.get("ca.crt") != self._ca:
            missing["ca.crt"] = self._ca
        if data.get("namespace") != namespace.encode():
            missing["namespace"] = namespace.encode()
        if not data.get("token"):
            token = self._issue(
                namespace=namespace, account=name, uid=account.metadata.uid, secret=secret.metadata.name
            )
            missing["token"] = token.encode()
        if not missing and uid is not None:
            return
        await ctx.patch(
            secret,
            {
                "metadata": {
                    "annotations": {ACCOUNT_UID: account.metadata.uid},
                    "resourceVersion": secret.metadata.resource_version,
                },
                "data": {key: base64.b64encode(value).decode() for key, value in missing.items()},
            },
        )


def _account_of(secret: core_v1.Secret) -> list[str]:
    name = (secret.metadata.annotations or {}).get(ACCOUNT_NAME, "")
    return [f"{secret.metadata.namespace}/{name}"]


secrets_by_account: Index[core_v1.Secret] = Index(core_v1.Secret, _account_of)


def controller(issue: IssueToken, ca_pem: bytes) -> Controller[core_v1.Secret]:
    """Declare the token controller."""
    return Controller(
        core_v1.Secret,
        TokenSecrets(issue, ca_pem),
        name=NAME,
        selector=Selector(fields=f"type={TYPE}"),
        watches=[
            watch(
                core_v1.ServiceAccount,
                via=secrets_by_account,
                key=lambda account: f"{account.metadata.namespace}/{account.metadata.name}",
            )
        ],
        needs=[needs(core_v1.Secret, "patch", "delete")],
        options=Options(reporter=NAME),
    )
