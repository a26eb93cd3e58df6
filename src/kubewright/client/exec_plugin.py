"""Credentials from a program: exec plugins of client.authentication.k8s.io v1 and v1beta1."""

import asyncio
import base64
import os
import sys
from datetime import UTC, datetime
from math import inf
from typing import Any

import msgspec

from kubewright.api import CredentialError
from kubewright.client.config import ClusterConfig, ExecPlugin
from kubewright.client.credentials import Credential, bearer

TIMEOUT = 60.0
INTERACTIVE_TIMEOUT = 600.0
MAX_OUTPUT = 1024 * 1024
"""Bytes that a plugin may print: a credential has a few kilobytes."""


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status | None = None


_credentials = msgspec.json.Decoder(_ExecCredential)


class _Output(asyncio.SubprocessProtocol):
    """Collect what a plugin prints until it has exited and its output is closed, or until it is too much."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.exited = asyncio.Event()
        self.complete = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.received += data
        if len(self.received) > MAX_OUTPUT:
            self.complete.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.complete.set()
        self.exited.set()


class ExecSource:
    """Run the plugin whenever its last credential has expired or was refused."""

    def __init__(self, config: ClusterConfig, plugin: ExecPlugin) -> None:
        self._config = config
        self._plugin = plugin

    async def obtain(self, refused: bool) -> Credential:
        """Run the plugin and parse its output; its standard error is passed through."""
        plugin = self._plugin
        interactive = self._interactive()
        environment = {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": self._info(interactive)}
        try:
            transport, output = await asyncio.get_running_loop().subprocess_exec(
                _Output,
                plugin.command,
                *plugin.args,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stderr=None,
                env=environment,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "its arguments cannot be passed"
            raise CredentialError(self._failed(f"cannot be run: {reason}")) from None
        try:
            async with asyncio.timeout(INTERACTIVE_TIMEOUT if interactive else TIMEOUT):
                await output.complete.wait()
        except TimeoutError:
            raise CredentialError(self._failed("did not finish in time")) from None
        finally:
            # Kills the plugin if it still runs, and does not wait for processes that hold its standard output open.
            transport.close()
            await output.exited.wait()
        if len(output.received) > MAX_OUTPUT:
            raise CredentialError(self._failed(f"printed more than {MAX_OUTPUT // 1024**2} MiB"))
        if transport.get_returncode() != 0:
            raise CredentialError(self._failed(f"ended with exit code {transport.get_returncode()}"))
        return self._read(bytes(output.received))

    def _interactive(self) -> bool:
        mode = self._plugin.interactive_mode
        # A detached process may have no standard input at all.
        terminal = mode != "Never" and bool(sys.stdin) and sys.stdin.isatty()
        if mode == "Always" and not terminal:
            raise CredentialError(
                self._failed("requires a terminal (interactiveMode Always), and there is none")
            )
        return terminal

    def _info(self, interactive: bool) -> str:
        """Return the value of KUBERNETES_EXEC_INFO for the plugin."""
        spec: dict[str, Any] = {"interactive": interactive}
        config = self._config
        if self._plugin.provide_cluster_info:
            cluster: dict[str, Any] = {
                "server": config.server,
                "tls-server-name": config.tls_server_name,
                "insecure-skip-tls-verify": config.insecure,
                "certificate-authority-data": base64.b64encode(config.ca_data).decode(),
                "proxy-url": config.proxy_url,
                "config": self._plugin.cluster_extension,
            }
            spec["cluster"] = {key: value for key, value in cluster.items() if value}
        info = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(info).decode()

    def _read(self, output: bytes) -> Credential:
        try:
            printed = _credentials.decode(output)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Its output may contain a token, so it is not shown.
            raise CredentialError(self._failed("did not print an ExecCredential")) from None
        wanted = self._plugin.api_version
        if printed.kind != "ExecCredential" or printed.api_version != wanted:
            raise CredentialError(
                self._failed(
                    f"printed {printed.api_version} {printed.kind} where {wanted} ExecCredential is configured"
                )
            )
        status = printed.status
        if status is None or not (status.token or status.client_certificate_data):
            raise CredentialError(self._failed("printed neither a token nor a client certificate"))
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise CredentialError(self._failed("printed only one of client certificate and key"))
        return Credential(
            authorization=bearer(status.token, f"exec plugin {self._plugin.command}") if status.token else "",
            certificate=status.client_certificate_data.encode() or self._config.client_cert_data,
            key=status.client_key_data.encode() or self._config.client_key_data,
            valid_until=loop_time_of(status.expiration_timestamp),
        )

    def _failed(self, what: str) -> str:
        message = f"exec plugin {self._plugin.command} of {self._config.source} {what}"
        return f"{message}\n{self._plugin.install_hint}" if self._plugin.install_hint else message


def loop_time_of(moment: datetime | None) -> float:
    """Convert a time to the event loop's clock."""
    if moment is None:
        return inf
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return asyncio.get_running_loop().time() + (moment - datetime.now(UTC)).total_seconds()
