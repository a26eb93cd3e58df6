"""The stand-in for etcd: a small process that responds to health checks and names its data directory.

The stand-in for kube-apiserver keeps its objects in a file in that directory, so they outlive a restart of the API
server, as with the real pair. This process only has to be up soon: envtest starts it first, and checks its health
100 ms later. It is therefore run as a file, with the standard library only, and without asyncio, which would take
longer to import than all the rest.
"""

import errno
import fcntl
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

DATA_DIRECTORY = "/kubewright/data-dir"
"""The path from which the stand-in for kube-apiserver reads the data directory."""
PARENT_POLL = 1.0
_LARGEST_REQUEST = 64 * 1024
_EMULATED = frozenset(
    {"data-dir", "name", "listen-client-urls", "advertise-client-urls", "unsafe-no-fsync", "help", "version"}
)
# Flags of replication and logs: one member without peers has neither, so there is nothing to emulate.
_WITHOUT_EFFECT = frozenset(
    {
        *("listen-peer-urls", "initial-advertise-peer-urls", "initial-cluster", "initial-cluster-state"),
        *("initial-cluster-token", "wal-dir", "snapshot-count", "heartbeat-interval", "election-timeout"),
        *("logger", "log-level", "log-format", "log-outputs", "quota-backend-bytes", "max-request-bytes"),
        *(
            "auto-compaction-mode",
            "auto-compaction-retention",
            "max-txn-ops",
            "listen-metrics-urls",
            "metrics",
        ),
    }
)
_LOOPBACK = "127.0.0.1"


class EtcdStartError(Exception):
    """What keeps etcd from starting, in the words of the real one."""

    code = 1


class EtcdFlagError(EtcdStartError):
    """A flag that etcd does not have, or a value that is not valid for it."""

    code = 2


def parse(arguments: Sequence[str], flags: Mapping[str, str]) -> dict[str, str]:
    """Return the values of flags in the syntax of Go's package flag; raise EtcdFlagError for an unknown flag."""
    values: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word in ("-", "--"):
            raise EtcdFlagError(f'"{word}" is not a valid flag')
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        name = "help" if name == "h" else name
        if name not in flags:
            raise EtcdFlagError(f"flag provided but not defined: -{name}")
        if flags[name] == "bool":
            value = value if equals else "true"
            if value.lower() not in ("true", "false", "1", "0", "t", "f"):
                raise EtcdFlagError(f'invalid boolean value "{value}" for -{name}: parse error')
        elif not equals:
            if not rest:
                raise EtcdFlagError(f"flag needs an argument: -{name}")
            value = rest.pop(0)
        values[name] = value
    return values


def not_emulated(values: Mapping[str, str]) -> list[str]:
    """Return the flags that were given and have no effect here but one on the real etcd."""
    return sorted(values.keys() - _EMULATED - _WITHOUT_EFFECT)


def listen(url: str) -> socket.socket:
    """Return a socket that listens at a client URL; raise EtcdStartError if that is not possible.

    Only on loopback even if the flags request every interface: the API server must be on this machine in any case.
    """
    parts = urlsplit(url)
    try:
        if parts.scheme in ("unix", "unixs"):
            path = f"{parts.netloc}{parts.path}"
            Path(path).unlink(missing_ok=True)
            found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            found.bind(path)
            found.listen()
            return found
        if parts.scheme != "http":
            raise EtcdStartError(f"--listen-client-urls {url}: only http:// and unix:// are emulated")
        host = _LOOPBACK if parts.hostname in (None, "0.0.0.0", "::") else str(parts.hostname)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, 2379 if parts.port is None else parts.port), family=family)
    except ValueError as error:
        raise EtcdStartError(f"--listen-client-urls {url}: {error}") from None
    except OSError as error:
        why = "address already in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise EtcdStartError(f"listen tcp {parts.netloc or parts.path}: bind: {why.lower()}") from None


def open_data(path: Path) -> int:
    """Create the data directory and lock it for this process; raise EtcdStartError if another process has it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (path / "member").exists():
            raise EtcdStartError(f"{path} holds the data of a real etcd: choose another --data-dir")
        descriptor = os.open(path / "kubewright.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise EtcdStartError(f"another etcd process is using {path} and holds the file lock") from None
    except OSError as error:
        raise EtcdStartError(
            f"cannot access data directory: {path}: {(error.strerror or '').lower()}"
        ) from None
    return descriptor


class EtcdServer:
    """Respond to HTTP requests on some sockets until SIGTERM, SIGINT, or the end of the parent process."""

    def __init__(self, listeners: Sequence[socket.socket], documents: Mapping[str, bytes]) -> None:
        self._documents = documents
        self._selector = selectors.DefaultSelector()
        self._received: dict[socket.socket, bytes] = {}
        for listener in listeners:
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ, listener)
        self._stopped = False

    def run(self, parent: int | None) -> None:
        """Serve until a signal arrives or, unless `parent` is None, that process has ended."""
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        signal.set_wakeup_fd(writer.fileno())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        self._selector.register(reader, selectors.EVENT_READ)
        descriptor = parent_descriptor(parent)
        if descriptor is not None:
            self._selector.register(descriptor, selectors.EVENT_READ)
        poll = PARENT_POLL if descriptor is None and parent is not None else None
        while not self._stopped and parent in (None, os.getppid()):
            for key, _ in self._selector.select(poll):
                if isinstance(key.data, socket.socket):
                    self._accept(key.data)
                elif isinstance(key.fileobj, socket.socket) and key.fileobj is not reader:
                    self._read(key.fileobj)

    def _stop(self, *_: object) -> None:
        self._stopped = True

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # the client has gone already
        connection.setblocking(False)
        self._received[connection] = b""
        self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(_LARGEST_REQUEST)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        received = self._received[connection] + data
        *requests, self._received[connection] = received.split(b"\r\n\r\n")
        closing = not data or len(received) > _LARGEST_REQUEST
        for request in requests:
            closing |= not self._respond(connection, request)
        if closing:
            self._selector.unregister(connection)
            del self._received[connection]
            connection.close()

    def _respond(self, connection: socket.socket, request: bytes) -> bool:
        """Send the response; return False if the connection ends with it."""
        line, _, headers = request.partition(b"\r\n")
        method, _, rest = line.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
        body = self._documents.get(path)
        status = b"200 OK" if body is not None else b"404 Not Found"
        body = body if body is not None else b"404 page not found\n"
        # A request with a body is answered too, but where its body ends is not looked for.
        keep = method in (b"GET", b"HEAD") and b"connection: close" not in headers.lower()
        head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % (
            status,
            len(body),
        )
        head += b"\r\n" if keep else b"Connection: close\r\n\r\n"
        try:
            connection.sendall(head if method == b"HEAD" else head + body)
        except OSError:
            return False
        return keep


def watched_parent() -> int | None:
    """Return the process whose end stops this one; None under nohup, which asks to outlive it, or without a parent."""
    parent = os.getppid()
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return None if ignored or parent <= 1 else parent


def parent_descriptor(parent: int | None) -> int | None:
    """Return a descriptor that is readable once the parent process has ended; None where the system has none."""
    if parent is None or not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(parent)
    except OSError:
        return None  # an old kernel, or the parent has ended: the caller compares getppid


def known_flags() -> tuple[str, dict[str, str]]:
    """Return the version of the real etcd and the types of its flags."""
    known = json.loads(Path(__file__).with_name("flags.json").read_bytes())["etcd"]
    return known["version"], known["flags"]


def help_text() -> str:
    """Return the output of `--help`: all flags in the form that envtest looks for."""
    version, flags = known_flags()
    head = ["kubewright's stand-in for etcd.", "", "Usage:", "  etcd [flags]", ""]
    head += [f"Flags of etcd {version}; a warning at start names those that have no effect here:", ""]
    return "\n".join([*head, *(f"  --{name}" for name in flags)]) + "\n"


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run etcd; return the exit code."""
    parent = watched_parent()
    version, flags = known_flags()
    try:
        values = _from_environment(environment, flags) | parse(arguments, flags)
        if "help" in values or "version" in values:
            print(help_text() if "help" in values else f"etcd Version: {version}\n", end="")
            return 0
        if others := not_emulated(values):
            print(f"Warning: kubewright does not emulate --{', --'.join(others)} of etcd", file=sys.stderr)
        data = Path(values.get("data-dir") or f"{values.get('name', 'default')}.etcd").absolute()
        lock = open_data(data)
        urls = values.get("listen-client-urls") or "http://localhost:2379"
        listeners = [listen(url.strip()) for url in urls.split(",")]
    except EtcdStartError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.code
    documents = {
        "/health": b'{"health":"true","reason":""}',
        "/livez": b"ok\n",
        "/readyz": b"ok\n",
        "/version": json.dumps({"etcdserver": version, "etcdcluster": version}).encode(),
        DATA_DIRECTORY: json.dumps(str(data)).encode(),
    }
    EtcdServer(listeners, documents).run(parent)
    os.close(lock)
    return 0


def _from_environment(environment: Mapping[str, str], flags: Mapping[str, str]) -> dict[str, str]:
    """Return the flags that are set by variables, such as ETCD_DATA_DIR."""
    named = {f"ETCD_{name.upper().replace('-', '_')}": name for name in flags}
    return {named[name]: value for name, value in environment.items() if name in named and value}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
