"""Read the same WatchList as the cache does and look at nothing: what of a cold cache is the server's sending."""

import json
import socket
import sys
import time
from pathlib import Path

from coldcache import Sample

from kubewright.api import kind_of
from kubewright.client import load_config
from kubewright.client.tls import tls_context
from kubewright.http.client import Origin

QUERY = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
ADDED = b'{"type":"ADDED"'
END = b'"k8s.io/initial-events-end":"true"'


def read(kubeconfig: Path) -> dict[str, float]:
    config, kind = load_config(kubeconfig), kind_of(Sample)
    place = Origin.of(config.server)
    context = tls_context(config, config.client_cert_data, config.client_key_data)
    started, objects, last = time.perf_counter(), 0, b""
    with (
        socket.create_connection((place.host, place.port)) as plain,
        context.wrap_socket(plain, server_hostname=place.host) as connection,
    ):
        target = f"{kind.path}/{kind.plural}?{QUERY}"
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: {place.authority}\r\n\r\n".encode())
        while END not in last:
            data = connection.recv(65536)
            if not data:
                raise SystemExit("the stream ended before the initial events did")
            # Records of TLS end anywhere, also in the midst of what is looked for.
            known = last[-len(END) :]
            last = known + data
            objects += last.count(ADDED) - known.count(ADDED)
    return {"at": time.time(), "seconds": time.perf_counter() - started, "objects": objects}


if __name__ == "__main__":
    print(json.dumps(read(Path(sys.argv[1]))))
