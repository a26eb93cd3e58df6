"""Secrets that hold a token of a ServiceAccount."""

from kubewright.api import Meta
from kubewright.api.builtin import authentication_v1, core_v1
from kubewright.testing import Cluster

TYPE = "kubernetes.io/service-account-token"
NAME = "kubernetes.io/service-account.name"


async def _user(cluster: Cluster, token: str) -> str:
    """Return the user of a token, or nothing if it is not valid."""
    review = authentication_v1.TokenReview(spec=authentication_v1.TokenReviewSpec(token=token))
    answer = await cluster.client.create(review)
    return answer.status.user.username if answer.status.authenticated and answer.status.user else ""


async def test_a_secret_gets_the_token_of_its_account_and_goes_with_it(cluster: Cluster) -> None:
    namespace = cluster.namespace
    account = await cluster.create(core_v1.ServiceAccount(Meta("robot", namespace=namespace)))
    metadata = Meta("robot-token", namespace=namespace, annotations={NAME: "robot"})
    await cluster.create(core_v1.Secret(metadata, type=TYPE))
    filled = await cluster.eventually(
        core_v1.Secret, "robot-token", lambda secret: "token" in (secret.data or {})
    )
    assert (filled.data or {}).keys() == {"ca.crt", "namespace", "token"}
    assert (filled.data or {})["namespace"] == namespace.encode()
    assert (filled.metadata.annotations or {})["kubernetes.io/service-account.uid"] == account.metadata.uid
    token = (filled.data or {})["token"].decode()
    assert await _user(cluster, token) == f"system:serviceaccount:{namespace}:robot"
    await cluster.client.delete(account)
    await cluster.eventually_gone(core_v1.Secret, "robot-token")


async def test_a_token_is_not_valid_without_its_secret(cluster: Cluster) -> None:
    namespace = cluster.namespace
    await cluster.create(core_v1.ServiceAccount(Meta("robot", namespace=namespace)))
    metadata = Meta("robot-token", namespace=namespace, annotations={NAME: "robot"})
    await cluster.create(core_v1.Secret(metadata, type=TYPE))
    filled = await cluster.eventually(
        core_v1.Secret, "robot-token", lambda secret: "token" in (secret.data or {})
    )
    await cluster.client.delete(filled)
    assert await _user(cluster, (filled.data or {})["token"].decode()) == ""
