"""A session with vCenter: its settings, logging in, and logging in again."""

import http.client
import os
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from xml.parsers.expat import ExpatError

from pyVim import connect as connect_functions
from pyVmomi import vim as vim_types
from pyVmomi import vmodl as vmodl_types

import kubewright as kw
from vmgroup.provider import ProviderError

connect: Any = connect_functions
vim: Any = vim_types
vmodl: Any = vmodl_types
T = TypeVar("T")

REQUEST_SECONDS = 30
BROKEN = (OSError, http.client.HTTPException, ExpatError)
"""Errors of a connection that broke, or of a response that ended early."""
IDLE_SECONDS = 20
"""Idle connections are not used again after that: the other side may have closed them."""


@dataclass(frozen=True)
class Settings:
    """The address and credentials of vCenter; `folder` is the parent of all groups' folders."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    insecure: bool = False
    folder: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls) -> Self:
        """Read VC_HOST (or HOST:PORT), VC_USER, VC_PASS, VC_INSECURE and VC_FOLDER."""
        missing = [name for name in ("VC_HOST", "VC_USER", "VC_PASS") if not os.environ.get(name)]
        if missing:
            raise kw.errors.ConfigError(
                f'the provider "vcenter" needs {", ".join(missing)} in its environment'
            )
        host, _, port = os.environ["VC_HOST"].partition(":")
        if port and not port.isdecimal():
            raise kw.errors.ConfigError(f"VC_HOST is HOST or HOST:PORT, and {port!r} is no port")
        return cls(
            host,
            int(port or 443),
            os.environ["VC_USER"],
            os.environ["VC_PASS"],
            os.environ.get("VC_INSECURE", "").lower() == "true",
            tuple(part for part in os.environ.get("VC_FOLDER", "").split("/") if part),
        )


class Session:
    """One login, renewed when it has run out; for any number of threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._instance: Any = None
        self._turn = threading.Lock()

    def open(self) -> None:
        """Log in; raise ConfigError for a wrong password or an untrusted certificate, which retries cannot fix."""
        where, user = f"vCenter {self._settings.host}", self._settings.user
        try:
            self._connected()
        except vim.fault.InvalidLogin:
            raise kw.errors.ConfigError(
                f"{where} does not let {user} in: check VC_USER and VC_PASS"
            ) from None
        except ssl.SSLCertVerificationError as error:
            raise kw.errors.ConfigError(
                f"{where} cannot be trusted: {error.verify_message}. Name its authority's certificate in "
                "SSL_CERT_FILE, or set VC_INSECURE=true to accept any certificate"
            ) from None
        except (vmodl.MethodFault, *BROKEN) as error:
            raise ProviderError(f"{where}: {_text(error)}") from None

    def close(self) -> None:
        """Log out, if that is still possible."""
        if self._instance is not None:
            try:
                connect.Disconnect(self._instance)
            except (vmodl.MethodFault, *BROKEN):
                pass

    def call(self, function: Callable[[Any], T]) -> T:
        """Call a function with vCenter's content; an expired session is renewed once."""
        try:
            instance = self._connected()
            try:
                return function(instance.content)
            except vim.fault.NotAuthenticated:
                self._forget(instance)
            return function(self._connected().content)
        except (vmodl.MethodFault, *BROKEN) as error:
            if isinstance(error, BROKEN):
                self._forget(self._instance)
            raise ProviderError(f"vCenter {self._settings.host}: {_text(error)}") from None

    def _connected(self) -> Any:
        with self._turn:
            if self._instance is None:
                trust = ssl.create_default_context()
                if self._settings.insecure:
                    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
                self._instance = connect.SmartConnect(
                    host=self._settings.host,
                    port=self._settings.port,
                    user=self._settings.user,
                    pwd=self._settings.password,
                    sslContext=trust,
                    httpConnectionTimeout=REQUEST_SECONDS,
                    connectionPoolTimeout=IDLE_SECONDS,
                )
            return self._instance

    def _forget(self, instance: Any) -> None:
        with self._turn:
            if instance is not None and self._instance is instance:
                self._instance = None
                instance._stub.DropConnections()


def _text(error: Any) -> str:
    return getattr(error, "msg", "") or str(error) or type(error).__name__
