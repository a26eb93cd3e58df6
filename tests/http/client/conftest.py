"""TLS for servers on loopback, and the authority to trust."""

import ssl
from pathlib import Path

import pytest

from kubewright.certificates import Authority


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create()


@pytest.fixture
def server_tls(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    """Serve as 127.0.0.1."""
    pair = authority.serving("server", hosts=["127.0.0.1"])
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair.pem")
    return context


@pytest.fixture
def trust(authority: Authority) -> ssl.SSLContext:
    """Trust those servers."""
    return ssl.create_default_context(cadata=authority.pair.certificate.decode())
