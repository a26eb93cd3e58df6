"""A server of the live page with generated data: `python fake_feed.py --objects 10000 --changes 100` prints its link.

It serves `kubewright/ui/static` and the same addresses as `kubewright.ui`, so that tests can make states that a real
cluster reaches rarely or slowly: 10,000 objects, interruptions, refusals, names with markup.
"""

import argparse
import json
import queue
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import kubewright

Json = dict[str, Any]

STATIC = Path(kubewright.__file__).parent / "ui" / "static"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PART = 2000
"""Objects in one part of a reset."""
HISTORY = 300.0
"""Seconds before the start that the history goes back."""
GROUPS = {"Shell": "example.com", "Deployment": "apps", "ReplicaSet": "apps"}
PLURALS = {"Shell": "shells", "Deployment": "deployments", "ReplicaSet": "replicasets", "Pod": "pods"}


def stamp(at: float) -> str:
    """Return a time as RFC 3339."""
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


class GeneratedState:
    """Objects, reconciles and operators; each change is published to the open streams."""

    def __init__(self, *, shells: int = 0, pods: int = 2, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.lock = threading.RLock()
        self.streams: list[queue.Queue[tuple[str, Json] | None]] = []
        self.started = time.time()
        self.hello: Json = {
            "title": "Generated",
            "source": {"type": "dev", "text": "generated objects"},
            "writable": True,
            "live": True,
            "samples": True,
        }
        self.objects: dict[str, Json] = {}
        self.reconciles: list[Json] = []
        self.records: dict[str, Json] = {}
        self.operators: list[Json] = []
        self.problems: list[str] = []
        self.snapshots: Callable[[float], list[Json]] = self._snapshot
        self.actions: list[Json] = []
        self.refusal = ""
        """The message with which actions are refused."""
        self.stream_status = 200
        """The status code for new streams."""
        self.samples = [{"title": "a Shell", "manifest": "apiVersion: example.com/v1\nkind: Shell\n"}]
        self._count = 0
        for number in range(shells):
            self.add_shell(f"shell-{number:04d}", pods)

    # What there is

    def add(self, kind: str, name: str, *, owner: Json | None = None, **fields: Any) -> Json:
        """Add an object, and return its summary."""
        self._count += 1
        summary: Json = {
            "uid": f"uid-{self._count}",
            "group": GROUPS.get(kind, ""),
            "kind": kind,
            "resource": PLURALS.get(kind, kind.lower() + "s"),
            "namespace": "demo",
            "name": name,
            "generation": 1,
            "resourceVersion": str(self._count),
            "created": stamp(self.started - HISTORY + min(200, self._count / 50)),
            "owners": [],
            "references": [],
            "conditions": [],
            "state": "ready",
            "stateText": "",
            "reconciled": kind == "Shell",
            **fields,
        }
        if owner is not None:
            reference = {
                "uid": owner["uid"],
                "kind": owner["kind"],
                "name": owner["name"],
                "controller": True,
            }
            summary["owners"] = [reference]
        self.objects[summary["uid"]] = summary
        return summary

    def add_shell(self, name: str, pods: int = 2) -> Json:
        """Add a Shell with a Deployment, a ReplicaSet, Pods and the ConfigMap that they mount."""
        ready = {"type": "Ready", "status": "True", "reason": "AllReady", "message": f"{pods} Pods are ready"}
        ready["since"] = stamp(self.started - 60)
        shell = self.add(
            "Shell", name, stateText=f"{pods}/{pods} ready", conditions=[ready], scale={"replicas": pods}
        )
        deployment = self.add(
            "Deployment", name, owner=shell, stateText=f"{pods}/{pods}", scale={"replicas": pods}
        )
        replicas = self.add("ReplicaSet", f"{name}-5d9c7b", owner=deployment, stateText=f"{pods}/{pods}")
        settings = {"group": "", "kind": "ConfigMap", "namespace": "demo", "name": f"{name}-settings"}
        settings["path"] = "spec.volumes[name=settings].configMap.name"
        self.add("ConfigMap", settings["name"], stateText="2 keys")
        for number in range(pods):
            self.add(
                "Pod",
                f"{name}-5d9c7b-{number:05x}",
                owner=replicas,
                stateText="Running",
                references=[settings],
            )
        return shell

    def add_reconcile(self, shell: Json, *, at: float | None = None, error: str = "", **fields: Any) -> Json:
        """Add a reconcile of a Shell, and publish it."""
        number = len(self.records) + 1
        summary: Json = {
            "operator": "shells",
            "id": f"reconcile-{number}",
            "number": number,
            "controller": "shell",
            "group": "example.com",
            "kind": "Shell",
            "namespace": shell["namespace"],
            "name": shell["name"],
            "uid": shell["uid"],
            "startedAt": stamp(time.time() if at is None else at),
            "duration": 0.004 + self.random.random() / 50,
            "outcome": "error" if error else "success",
            "error": error,
            "causes": [
                {
                    "kind": "Deployment",
                    "namespace": "demo",
                    "name": shell["name"],
                    "type": "update",
                    "changes": ["status.readyReplicas"],
                }
            ],
            "writes": [
                {
                    "verb": "apply",
                    "resource": "shells/status.example.com",
                    "namespace": "demo",
                    "name": shell["name"],
                    "status": 200,
                    "changes": 1,
                }
            ],
            "events": 0,
            "logs": 1,
            "logLevel": "info",
            **fields,
        }
        self.records[summary["id"]] = self.record_of(summary)
        with self.lock:
            self.reconciles.append(summary)
            self.publish("reconciles", {"reset": False, "added": [summary], "dropped": 0})
        return summary

    def record_of(self, summary: Json) -> Json:
        """Return the whole record of a reconcile."""
        change = {"path": "status.ready", "before": 1, "after": 2}
        template = {
            "path": "spec.template.spec.containers[name=sh]",
            "before": {"name": "sh", "image": "busybox:1", "command": ["sleep", "9999"]},
            "after": {"name": "sh", "image": "busybox:2", "command": ["sleep", "9999"], "tty": True},
        }
        details = {"at": summary["startedAt"], "changes": [change, template]}
        writes = [{**write, **details} for write in summary["writes"]]
        line = {
            "at": summary["startedAt"],
            "level": "info",
            "logger": "shell",
            "message": "Applied Deployment",
        }
        changes = [{"path": "status.readyReplicas", "before": 1, "after": 2}]
        causes = [{**cause, "changes": changes} for cause in summary["causes"]]
        return {**summary, "causes": causes, "writes": writes, "log": [line], "events": [], "reads": []}

    # What clients ask for

    def details(self, uid: str, at: float | None = None) -> Json | None:
        """Return what /api/object responds, for now or for a past moment."""
        known = self.objects if at is None else {each["uid"]: each for each in self.snapshots(at)}
        summary = known.get(uid)
        if summary is None:
            return None
        container = {"name": "sh", "image": "busybox:2", "env": [{"name": "A", "value": "<b>1</b>"}]}
        return {
            "object": {
                "apiVersion": f"{summary['group']}/v1".lstrip("/"),
                "kind": summary["kind"],
                "metadata": {
                    "name": summary["name"],
                    "namespace": "demo",
                    "uid": uid,
                    "resourceVersion": "2",
                    "labels": {"app.kubernetes.io/name": summary["name"]},
                },
                "spec": {"replicas": 2, "containers": [container], "paused": False},
                "status": {"ready": 2},
            },
            "managers": [
                {"path": "spec.replicas", "manager": "kubectl", "operation": "Apply"},
                {"path": "spec.containers[name=sh].image", "manager": "shells", "operation": "Apply"},
                {
                    "path": "status.ready",
                    "manager": "shells",
                    "operation": "Apply",
                    "subresource": "status",
                },
            ],
            "events": [
                {
                    "type": "Normal",
                    "reason": "Created",
                    "message": "created the Deployment",
                    "count": 2,
                    "lastSeen": stamp(self.started),
                    "from": "shell",
                }
            ],
            "reconciles": [each for each in reversed(self.reconciles) if each["uid"] == uid][:50],
            "versions": [
                {"resourceVersion": "1", "at": stamp(self.started - 100)},
                {"resourceVersion": "2", "at": stamp(self.started)},
            ],
        }

    def _snapshot(self, at: float) -> list[Json]:
        """Return half of the objects: the history of generated data is not kept."""
        with self.lock:
            return [each for each in self.objects.values() if int(each["uid"][4:]) % 2]

    def act(self, action: Json) -> tuple[int, Json]:
        """Take note of an action."""
        self.actions.append(action)
        if self.refusal:
            return 422, {"message": self.refusal}
        if action["action"] == "delete":
            self.remove(action["uid"])
        return 200, {"message": f"{action['action']} done"}

    # Streams

    def publish(self, event: str, data: Json) -> None:
        """Send an event to all streams."""
        with self.lock:
            for stream in self.streams:
                stream.put((event, data))

    def change(self, *summaries: Json) -> None:
        """Publish changed objects."""
        with self.lock:
            for summary in summaries:
                self._count += 1
                summary["resourceVersion"] = str(self._count)
                self.objects[summary["uid"]] = summary
            self.publish("objects", {"reset": False, "changed": list(summaries), "removed": []})

    def remove(self, uid: str) -> None:
        """Delete an object."""
        with self.lock:
            if self.objects.pop(uid, None) is not None:
                removed = [{"uid": uid, "at": stamp(time.time())}]
                self.publish("objects", {"reset": False, "changed": [], "removed": removed})

    def interrupt(self) -> None:
        """End all streams, as a server that is restarted does."""
        with self.lock:
            for stream in self.streams:
                stream.put(None)

    def follow(self) -> queue.Queue[tuple[str, Json] | None]:
        """Return the events of a new stream: everything, then the changes."""
        stream: queue.Queue[tuple[str, Json] | None] = queue.Queue()
        with self.lock:
            now = time.time()
            history = {"from": stamp(self.started - HISTORY), "to": stamp(now)}
            stream.put(("hello", {**self.hello, "history": history, "now": stamp(now)}))
            objects = list(self.objects.values())
            parts = [objects[start : start + PART] for start in range(0, len(objects), PART)] or [[]]
            for number, part in enumerate(parts):
                more = number < len(parts) - 1
                stream.put(("objects", {"reset": number == 0, "changed": part, "removed": [], "more": more}))
            stream.put(("reconciles", {"reset": True, "added": self.reconciles, "dropped": 0}))
            stream.put(("operators", {"operators": self.operators}))
            stream.put(("problems", {"problems": self.problems}))
            self.streams.append(stream)
        return stream

    def churn(self, changes: int) -> None:
        """Change that many objects, as a tenth of a second does to a busy cluster."""
        pool = list(self.objects.values())
        changed: list[Json] = []
        for old in self.random.sample(pool, min(changes, len(pool))):
            state = self.random.choice(["ready", "ready", "ready", "progressing", "waiting", "failed"])
            changed.append({**old, "state": state, "stateText": state.capitalize()})
        self.change(*changed)
        shells = [each for each in changed if each["kind"] == "Shell"]
        for shell in shells or [pool[0]]:
            self.add_reconcile(shell)
        now = time.time()
        self.publish("history", {"from": stamp(self.started - HISTORY), "to": stamp(now)})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, state: GeneratedState, *arguments: Any) -> None:
        self.state = state
        super().__init__(*arguments)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/api/stream":
            self._stream()
        elif url.path.startswith("/api/"):
            self._send_json(*self._response(url.path, query))
        else:
            name = "index.html" if url.path == "/" else url.path.removeprefix("/static/")
            file = STATIC / name
            if "/" in name or not file.is_file():
                self._send(404, "text/plain", b"not found")
            else:
                self._send(200, TYPES[file.suffix], file.read_bytes())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._send_json(*self.state.act(json.loads(body)))

    def _response(self, path: str, query: dict[str, str]) -> tuple[int, Json]:
        state = self.state
        if path == "/api/snapshot":
            at = datetime.fromisoformat(query["at"]).timestamp()
            try:
                return 200, {"at": query["at"], "objects": state.snapshots(at)}
            except LookupError:
                return 404, {"message": "this moment is older than the kept history"}
        if path == "/api/object":
            at = datetime.fromisoformat(query["at"]).timestamp() if "at" in query else None
            details = state.details(query["uid"], at)
            return (200, details) if details else (404, {"message": "the object is not kept"})
        if path == "/api/reconcile":
            record = state.records.get(query["id"])
            if record is None:
                return 404, {"message": "the reconcile is not kept any more"}
            return 200, {"operator": query["operator"], "reconcile": record}
        if path == "/api/samples":
            return 200, {"samples": state.samples}
        return 404, {"message": "no such address"}

    def _stream(self) -> None:
        if self.state.stream_status != 200:
            self._send(self.state.stream_status, "text/plain", b"not now")
            return
        self.send_response(200)
        self._headers("text/event-stream", None)
        stream = self.state.follow()
        try:
            for event, data in iter(stream.get, None):
                self.wfile.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())
                self.wfile.flush()
        except OSError:
            pass
        finally:
            self.close_connection = True
            with self.state.lock:
                self.state.streams.remove(stream)

    def _send_json(self, status: int, body: Json) -> None:
        self._send(status, "application/json", json.dumps(body).encode())

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(HTTPStatus(status))
        self._headers(content_type, len(body))
        self.wfile.write(body)

    def _headers(self, content_type: str, length: int | None) -> None:
        self.send_header("Content-Type", content_type)
        if length is None:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(length))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


class FakeFeed:
    """The server in a thread of its own; a context manager."""

    def __init__(self, state: GeneratedState, port: int = 0) -> None:
        self.state = state
        self.server = ThreadingHTTPServer(("127.0.0.1", port), partial(_Handler, state))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})]

    def churn(self, changes_per_second: int) -> None:
        """Change objects ten times a second until the server stops."""

        def run() -> None:
            while not self._stop.wait(0.1):
                self.state.churn(changes_per_second // 10)

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()

    def __enter__(self) -> "FakeFeed":
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self.state.interrupt()
        self.server.shutdown()
        for thread in self._threads:
            thread.join()
        self.server.server_close()


def with_operator(state: GeneratedState) -> GeneratedState:
    """Add an operator with a queue, a lease, retries and throttled requests."""
    controller = {"name": "shell", "kind": "Shell", "group": "example.com", "queueDepth": 3}
    controller.update(queueDelayed=2, workers=4, busy=2)
    retry = {
        "kind": "Shell",
        "group": "example.com",
        "namespace": "demo",
        "name": "shell-0001",
        "failures": 3,
    }
    state.operators = [
        {
            "name": "shells",
            "source": "run --ui",
            "leading": True,
            "lease": {"name": "shells", "holder": "host-a_4711"},
            "controllers": [controller],
            "retries": [{**retry, "at": stamp(time.time() + 3600)}],
            "throttled": {"waiting": 1, "seconds": 2.5},
            "problems": [],
            "dropped": 0,
        }
    ]
    return state


def main() -> None:
    """Serve generated data until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=40)
    parser.add_argument("--changes", type=int, default=0, help="changed objects per second")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    state = with_operator(GeneratedState(shells=max(1, options.objects // 6)))
    shells = [each for each in state.objects.values() if each["kind"] == "Shell"]
    for number in range(200):
        error = "the image registry does not respond" if number % 17 == 3 else ""
        state.add_reconcile(shells[number % len(shells)], at=state.started - 300 + number * 1.5, error=error)
    with FakeFeed(state, options.port) as feed:
        print(feed.url, flush=True)
        if options.changes:
            feed.churn(options.changes)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
