"""A server with the certificates, keys and tokens that it is given."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from devserver_http import APPLY, Http

from kubewright.certificates import Authority
from kubewright.devserver import AuthorizationAttributes, Server, ServerCredentials, TokenFileError, UserInfo

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
MYSELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def pem(key: Key) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_pem(key: Key) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


async def token_of(http: Http, name: str) -> str:
    await http.create(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return str((await http.create(f"{ACCOUNTS}/{name}/token", request))["status"]["token"])


async def user_of(http: Http, token: str) -> Any:
    reply = await http.request("POST", MYSELF, REVIEW, {"Authorization": f"Bearer {token}"})
    return reply.json()["status"]["userInfo"]["username"] if reply.status == 201 else reply.status


def part(token: str, place: int) -> Any:
    text = token.split(".")[place]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa.generate_private_key(65537, 2048), "RS256"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ec.generate_private_key(ec.SECP521R1()), "ES512"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_tokens_are_signed_with_the_given_key(key: Key, algorithm: str) -> None:
    given = ServerCredentials(token_key=pem(key), token_issuers=["https://one", "https://two"])
    async with Server(credentials=given) as server, Http(server) as http:
        token = await token_of(http, "robot")
        assert await user_of(http, token) == "system:serviceaccount:default:robot"
        assert part(token, 0)["alg"] == algorithm
        assert (part(token, 1)["iss"], part(token, 1)["aud"]) == (
            "https://one",
            ["https://one", "https://two"],
        )
        keys = (await http.get("/openid/v1/jwks"))["keys"]
        assert [(item["kid"], item["alg"]) for item in keys] == [(part(token, 0)["kid"], algorithm)]
        document = await http.get("/.well-known/openid-configuration")
        assert (document["issuer"], document["id_token_signing_alg_values_supported"]) == (
            "https://one",
            [algorithm],
        )


async def test_tokens_of_a_further_key_and_issuer_are_accepted(
    tmp_path: Path, blocking_calls: BlockBuster
) -> None:
    # Writing to the data file blocks the event loop by design.
    blocking_calls.deactivate()
    old, new = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())
    data = tmp_path / "data"
    given = ServerCredentials(token_key=pem(old), token_issuers=["https://old"])
    async with Server(data=data, credentials=given) as server, Http(server) as http:
        token = await token_of(http, "robot")
    given = ServerCredentials(
        token_key=pem(new),
        token_verification_keys=[public_pem(new), public_pem(old)],
        token_issuers=["https://new", "https://old"],
    )
    async with Server(data=data, credentials=given) as server, Http(server) as http:
        assert await user_of(http, token) == "system:serviceaccount:default:robot"
    async with (
        Server(data=data, credentials=ServerCredentials(token_key=pem(new))) as server,
        Http(server) as http,
    ):
        assert await user_of(http, token) == 401


async def test_a_token_file_names_users_and_their_groups(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text('secret,ann,u1,"staff,system:masters"\nother,bob,u2\n')
    given = ServerCredentials(token_file=file)
    async with Server(credentials=given) as server, Http(server) as http:
        reply = await http.request("POST", MYSELF, REVIEW, {"Authorization": "Bearer secret"})
        info = reply.json()["status"]["userInfo"]
        assert (info["username"], info["uid"]) == ("ann", "u1")
        assert info["groups"] == ["staff", "system:masters", "system:authenticated"]
        assert (
            await http.request("GET", CONFIG_MAPS, headers={"Authorization": "Bearer other"})
        ).status == 403


async def test_a_line_of_a_token_file_without_a_uid_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text("secret,ann,u1\nother,bob\n")
    with pytest.raises(
        TokenFileError, match=r"tokens\.csv:2: expected token, user name, user uid, found 2 columns"
    ):
        async with Server(credentials=ServerCredentials(token_file=file)):
            pass


@pytest.mark.parametrize("key", [b"", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
async def test_a_file_without_a_verification_key_is_an_error(key: bytes) -> None:
    with pytest.raises(ValueError, match="data does not contain any valid RSA or ECDSA public keys"):
        async with Server(credentials=ServerCredentials(token_verification_keys=[key])):
            pass


@pytest.mark.parametrize("private_format", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
async def test_private_keys_serve_as_verification_keys_in_the_formats_of_kube_apiserver(
    private_format: PrivateFormat,
) -> None:
    rsa_key, curve_key = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())
    for key in (rsa_key, curve_key):
        given = ServerCredentials(
            token_key=pem(key),
            token_verification_keys=[key.private_bytes(Encoding.PEM, private_format, NoEncryption())],
        )
        if key is curve_key and private_format is PrivateFormat.PKCS8:
            with pytest.raises(ValueError, match="any valid RSA or ECDSA public keys"):
                async with Server(credentials=given):
                    pass
        else:
            async with Server(credentials=given) as server, Http(server) as http:
                assert (
                    await user_of(http, await token_of(http, "robot"))
                    == "system:serviceaccount:default:robot"
                )


async def test_the_given_certificate_is_served() -> None:
    authority = Authority.create("given")
    serving = authority.serving("given", ["127.0.0.1"])
    serving = type(serving)(serving.certificate + authority.pair.certificate, serving.key)
    async with Server(credentials=ServerCredentials(serving=serving)) as server:
        assert authority.pair.certificate in server.ca_pem
        async with Http(server) as http:
            assert await http.get("/version")


@pytest.mark.parametrize(("mode", "status"), [("AlwaysAllow", 200), ("AlwaysDeny", 403), ("RBAC", 403)])
async def test_the_authorization_mode_decides_about_users_without_roles(mode: Any, status: int) -> None:
    async with Server(authorization_modes=[mode]) as server, Http(server) as http:
        token = server.add_user("ann")
        reply = await http.request("GET", CONFIG_MAPS, headers={"Authorization": f"Bearer {token}"})
        assert reply.status == status
        assert (await http.request("GET", CONFIG_MAPS)).status == 200


async def test_the_observer_sees_what_requests_use_and_not_what_reviews_ask() -> None:
    seen: list[tuple[str, str, str, bool]] = []

    def observe(user: UserInfo, attributes: AuthorizationAttributes, allowed: bool) -> None:
        seen.append((user.name, attributes.verb, attributes.resource, allowed))

    async with Server(authorization_observer=observe) as server, Http(server) as http:
        token = server.add_user("ann")
        await http.request("GET", CONFIG_MAPS, headers={"Authorization": f"Bearer {token}"})
        asked = {"user": "bob", "resourceAttributes": {"verb": "delete", "resource": "pods"}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked}
        await http.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert ("ann", "list", "configmaps", False) in seen
    assert ("kubernetes-admin", "create", "subjectaccessreviews", True) in seen
    assert not [name for name, *_ in seen if name == "bob"]


async def test_an_apply_that_creates_uses_two_permissions() -> None:
    seen: list[str] = []
    async with (
        Server(
            authorization_observer=lambda user, attributes, allowed: seen.append(attributes.verb)
        ) as server,
        Http(server) as http,
    ):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
        await http.request("PATCH", f"{CONFIG_MAPS}/one?fieldManager=x", body, APPLY)
    assert seen == ["patch", "create"]
