"""TLS contexts from certificates in memory, and messages for failed handshakes."""

import os
import ssl
from datetime import UTC, datetime
from importlib import import_module

from kubewright.api import ConfigError
from kubewright.client.certificates import valid_until
from kubewright.client.config import ClusterConfig

_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED
_NOT_YET_VALID = 9  # X509_V_ERR_CERT_NOT_YET_VALID


def tls_context(config: ClusterConfig, certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Return a context with the cluster's authority and the client certificate; blocks briefly."""
    if config.insecure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif config.ca_data:
        context = trusting_only(config.ca_data, config.source)
    else:
        context = ssl.create_default_context()
    if certificate:
        _show(context, certificate, key, config.source)
    # Otherwise a gateway that also supports HTTP/2 might choose it.
    context.set_alpn_protocols(["http/1.1"])
    return context


def trusting_only(authority: bytes, source: str) -> ssl.SSLContext:
    """Return a context that trusts one PEM bundle and nothing else."""
    try:
        return ssl.create_default_context(cadata=authority.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise ConfigError(f"the certificate authority of {source} is not a PEM certificate") from None


def explain_tls(error: ssl.SSLError, server: str) -> str:
    """Return in one line why a handshake failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == _EXPIRED:
            return f"the certificate of {server} has expired"
        if error.verify_code == _NOT_YET_VALID:
            return f"the certificate of {server} is not valid yet: check this machine's clock"
        return f"the certificate of {server} is not trusted: {error.verify_message}"
    reason = (error.reason or "").replace("_", " ").lower()
    if "certificate expired" in reason:
        return f"{server} says that our client certificate has expired"
    if "alert" in reason:
        return f"{server} refused the TLS handshake: {reason}"
    if "wrong version number" in reason or "record layer failure" in reason or "http request" in reason:
        return f"{server} does not speak TLS: is it http:// instead of https://?"
    return f"TLS with {server} failed: {reason or 'no reason given'}"


def certificate_expiry(certificate: bytes) -> datetime | None:
    """Return when a PEM certificate expired, or None while it is valid or unreadable."""
    try:
        until = valid_until(certificate)
    except ValueError:
        return None
    return until if until <= datetime.now(UTC) else None


def _show(context: ssl.SSLContext, certificate: bytes, key: bytes, source: str) -> None:
    # Python's ssl reads a chain only from a file, so one that only this user can read exists during this call.
    try:
        # Loaded only for client certificates, which a Pod does not have: it takes half a dozen modules with it.
        handle, name = import_module("tempfile").mkstemp(prefix="kubewright-")
    except OSError:
        raise ConfigError(
            f"the client certificate of {source} must lie in a file for a moment, and no temporary directory "
            "can be written to: give the process one at /tmp"
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate.rstrip() + b"\n" + key)
        context.load_cert_chain(name, password=_no_password)
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            f"the client certificate and key of {source} are not PEM, or do not belong together"
        ) from None
    finally:
        os.unlink(name)


def _no_password() -> bytes:
    """Keep OpenSSL from asking on the terminal for the password of an encrypted key."""
    raise ValueError("encrypted keys are not supported")
