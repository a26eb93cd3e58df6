"""The authorities that the client trusts, its own certificate, and errors of the handshake."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubewright.certificates import Authority
from kubewright.client import Client, ClusterConfig, ConfigError, ConnectionFailed, Unauthorized

from .conftest import Exchange, Serve, server_context
from .scripted import MAPS, OBJECT, found

pytestmark = pytest.mark.usefixtures("transport")


def expired_certificate(name: str) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.now(UTC) - timedelta(days=9))
        .not_valid_after(datetime.now(UTC) - timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem), private


async def test_the_clusters_authority_is_trusted_and_no_other(
    serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    pair = authority.serving("api", hosts=["127.0.0.1"])
    server = await serve(found, server_context(pair.certificate, pair.key, tmp_path))
    async with Client(ClusterConfig(server.url, ca_data=authority.pair.certificate)) as client:
        await client.get(MAPS, "a", "default")
    async with Client(ClusterConfig(server.url, ca_data=Authority.create().pair.certificate)) as client:
        with pytest.raises(ConnectionFailed, match="is not trusted"):
            await client.get(MAPS, "a", "default")
    async with Client(ClusterConfig(server.url, insecure=True)) as client:
        await client.get(MAPS, "a", "default")


async def test_a_client_can_be_opened_again(serve: Serve, authority: Authority, tmp_path: Path) -> None:
    pair = authority.serving("api", hosts=["127.0.0.1"])
    server = await serve(found, server_context(pair.certificate, pair.key, tmp_path))
    client = Client(ClusterConfig(server.url, ca_data=authority.pair.certificate))
    for _ in range(2):
        async with client:
            assert await client.get(MAPS, "a", "default") == OBJECT


async def test_tls_verifies_the_configured_server_name(
    serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    pair = authority.serving("api", hosts=["k8s.internal"])
    server = await serve(found, server_context(pair.certificate, pair.key, tmp_path))
    async with Client(ClusterConfig(server.url, ca_data=authority.pair.certificate)) as client:
        with pytest.raises(ConnectionFailed, match=r"IP address mismatch|not valid for"):
            await client.get(MAPS, "a", "default")
    config = ClusterConfig(server.url, ca_data=authority.pair.certificate, tls_server_name="k8s.internal")
    async with Client(config) as client:
        await client.get(MAPS, "a", "default")


async def test_a_servers_expired_certificate_is_called_expired(serve: Serve, tmp_path: Path) -> None:
    certificate, key = expired_certificate("api")
    server = await serve(found, server_context(certificate, key, tmp_path))
    config = ClusterConfig(server.url, ca_data=certificate, tls_server_name="localhost")
    async with Client(config) as client:
        with pytest.raises(ConnectionFailed, match="has expired"):
            await client.get(MAPS, "a", "default")


async def test_our_own_expired_certificate_is_called_expired(
    serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    async def refusing(exchange: Exchange) -> None:
        exchange.refuse(401, "Unauthorized", "Unauthorized")

    pair = authority.serving("api", hosts=["127.0.0.1"])
    server = await serve(refusing, server_context(pair.certificate, pair.key, tmp_path))
    certificate, key = expired_certificate("me")
    config = ClusterConfig(
        server.url, ca_data=authority.pair.certificate, client_cert_data=certificate, client_key_data=key
    )
    async with Client(config) as client:
        with pytest.raises(Unauthorized, match=r"the client certificate of .* expired on 20"):
            await client.get(MAPS, "a", "default")


async def test_an_https_url_of_a_plain_http_server_is_explained() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Client(ClusterConfig(f"https://127.0.0.1:{port}", insecure=True)) as client:
        with pytest.raises(ConnectionFailed, match="does not speak TLS"):
            await client.get(MAPS, "a", "default")


BAD_PEM = [
    ({"ca_data": b"canary"}, "certificate authority"),
    ({"ca_data": b"\xff"}, "certificate authority"),
    (
        {"insecure": True, "client_cert_data": b"canary", "client_key_data": b"canary"},
        "client certificate and key",
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD_PEM)
async def test_data_that_is_not_pem_is_refused_without_being_shown(
    options: dict[str, bytes], message: str
) -> None:
    async with Client(ClusterConfig("https://127.0.0.1:1", **options)) as client:  # pyright: ignore[reportArgumentType]
        with pytest.raises(ConfigError, match=message) as caught:
            await client.get(MAPS, "a", "default")
    assert "canary" not in str(caught.value)


async def test_an_unwritable_temporary_directory_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    certificate, key = expired_certificate("me")
    config = ClusterConfig(
        "https://127.0.0.1:1", insecure=True, client_cert_data=certificate, client_key_data=key
    )
    async with Client(config) as client:
        with pytest.raises(ConfigError, match="no temporary directory can be written to"):
            await client.get(MAPS, "a", "default")
