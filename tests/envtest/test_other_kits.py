"""The programs started as other test kits than envtest start them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from programs import Program, free_port, healthy

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.client import Client, ClusterConfig, load_config
from kubewright.testing import ControlPlane


def self_signed(folder: Path, name: str, subject: x509.Name, *hosts: x509.GeneralName) -> None:
    """Write an RSA key and a certificate that is its own authority, without saying that it is one."""
    key, now = rsa.generate_private_key(65537, 2048), datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=365))
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    (folder / f"{name}.key").write_bytes(pem)


def write_certificates(folder: Path) -> None:
    common = x509.NameAttribute(NameOID.COMMON_NAME, "kubeapitest")
    masters = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters")
    address = x509.IPAddress(ip_address("127.0.0.1"))
    self_signed(folder, "apiserver", x509.Name([common]), address, x509.DNSName("kubernetes"))
    self_signed(folder, "client", x509.Name([masters, common]))


@asynccontextmanager
async def started_by_fabric8(assets: Path, folder: Path) -> AsyncGenerator[ClusterConfig]:
    """Start both with the flags of fabric8's kube-api-test: values in words of their own, one dash, every interface."""
    await asyncio.to_thread(write_certificates, folder)
    port, etcd_port, peer_port = free_port(), free_port(), free_port()
    etcd_flags = [
        *("-data-dir", f"{folder}/data", "-wal-dir", f"{folder}/wal"),
        *("--listen-client-urls", f"http://0.0.0.0:{etcd_port}"),
        *("--advertise-client-urls", f"http://0.0.0.0:{etcd_port}"),
        *("--initial-cluster", f"default=http://localhost:{peer_port}"),
        *("--initial-advertise-peer-urls", f"http://localhost:{peer_port}"),
        *("--listen-peer-urls", f"http://localhost:{peer_port}"),
    ]
    flags = [
        *("--cert-dir", str(folder), "--secure-port", str(port)),
        *("--etcd-servers", f"http://0.0.0.0:{etcd_port}", "--authorization-mode", "RBAC"),
        *("--service-account-issuer", "https://localhost"),
        *("--service-account-signing-key-file", f"{folder}/apiserver.key"),
        *("--service-account-key-file", f"{folder}/apiserver.key"),
        *("--service-account-issuer", f"{folder}/apiserver.crt"),
        *("--disable-admission-plugins", "ServiceAccount", "--client-ca-file", f"{folder}/client.crt"),
        *("--service-cluster-ip-range", "10.0.0.0/24", "--allow-privileged"),
    ]
    async with (
        Program(assets / "etcd", *etcd_flags) as etcd,
        Program(assets / "kube-apiserver", *flags) as server,
    ):
        await healthy(etcd_port, "/health", etcd, tls=False)
        await healthy(port, "/readyz", server)
        yield ClusterConfig(
            f"https://127.0.0.1:{port}",
            insecure=True,
            client_cert_file=f"{folder}/client.crt",
            client_key_file=f"{folder}/client.key",
        )
        assert (await server.stop()).errors == ""
        assert (await etcd.stop()).errors == ""


async def test_a_java_test_kit_works_with_self_signed_certificates(assets: Path, tmp_path: Path) -> None:
    async with started_by_fabric8(assets, tmp_path) as config, Client(config) as client:
        await client.create(core_v1.ConfigMap(metadata=kw.Meta(name="one", namespace="default")))
        account = core_v1.ServiceAccount(metadata=kw.Meta(name="robot", namespace="default"))
        await client.create(account)
        token = await client.token_request("robot", "default")
    assert token


async def test_the_control_plane_of_the_test_kit_starts_the_programs_on_sockets(assets: Path) -> None:
    async with ControlPlane(assets, controllers=False, users={"ann": ["system:masters"]}) as plane:
        config = await asyncio.to_thread(load_config, plane.kubeconfig)
        async with Client(config) as client:
            await client.create(core_v1.ConfigMap(metadata=kw.Meta(name="one", namespace="default")))
        await plane.stop_api_server(grace=0)
        await plane.start_api_server()
        token = ClusterConfig(plane.url, ca_data=plane.ca, token=plane.tokens["ann"])
        async with Client(token) as client:
            await client.get(core_v1.ConfigMap, "one", "default")
