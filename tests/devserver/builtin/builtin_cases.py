"""Run the cases against a server, in the same way for the recorder and for the tests."""

import asyncio
import http.client
import json
import queue
import re
import ssl
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from kubewright.devserver import Server
from kubewright.devserver.wire import load_types

HERE = Path(__file__).parent
DATA = HERE / "data"
NAMESPACES = {"accepted": "default", "refused": "refused"}
# Admission has its own tests; here these plugins would hide what the kinds do.
DISABLED = (
    "ServiceAccount",
    "Priority",
    "DefaultTolerationSeconds",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
)
# A controller of the real server fills these columns a moment after the object was created.
FILLED_LATER = {
    ("FlowSchema", "MissingPL"),
    ("APIService", "Available"),
    ("CustomResourceDefinition", "Established"),
}
_PLACES = {
    (version.group, version.version, resource.kind): (resource.name, resource.namespaced)
    for version in load_types().discovery()
    for resource in version.resources
}
_OTHER_VERSIONS = {
    "autoscaling/v1": "autoscaling/v2",
    "autoscaling/v2": "autoscaling/v1",
    "events.k8s.io/v1": "v1",
}
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass
class Answer:
    """The response of a server."""

    code: int
    body: Any
    warnings: list[str]


@dataclass
class Client:
    """A client that only sends JSON."""

    url: str
    token: str
    ca: bytes

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        """Send one request."""
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": content,
            "Accept": accept,
            "User-Agent": "recorder/1",
        }
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = self._exchange(method, path, data, headers)
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLError):
            # Servers close connections that were idle for long.
            self._connection.close()
            answer = self._exchange(method, path, data, headers)
        return Answer(answer.status, json.load(answer), answer.headers.get_all("Warning") or [])

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        self._connection.request(method, path, data, headers)
        return self._connection.getresponse()

    @cached_property
    def _connection(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cadata=self.ca.decode())
        return http.client.HTTPSConnection(urlsplit(self.url).netloc, context=context)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


def cases(name: str) -> list[Any]:
    """Read the cases of a file."""
    return [case for case in yaml.safe_load_all((HERE / "cases" / f"{name}.yaml").read_text()) if case]


def place(obj: Any, namespace: str, api_version: str = "") -> str:
    """Return the path of the collection of an object's kind."""
    version = api_version or obj["apiVersion"]
    group, _, number = version.rpartition("/")
    plural, namespaced = _PLACES[group, number, obj["kind"]]
    root = f"/apis/{version}" if group else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespaced else f"{root}/{plural}"


def play_accepted(client: Client, sent: Any) -> Any:
    """Create an object, set its status, and read it as a Table and in the other version of its kind."""
    created = client.send("POST", place(sent, "default"), sent)
    played: dict[str, Any] = {"code": created.code, "warnings": created.warnings}
    body = dict(created.body)
    if created.code == 201:
        body["metadata"] = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    played["created"] = body
    if created.code != 201:
        return played
    path = f"{place(sent, 'default')}/{sent['metadata']['name']}"
    merge = "application/merge-patch+json"
    if "status" in sent:
        played["status"] = client.send(
            "PATCH", f"{path}/status", {"status": sent["status"]}, content=merge
        ).body
    table = client.send("GET", path, accept=_TABLE).body
    columns = [
        [item[key] for key in ("name", "type", "format", "priority")] for item in table["columnDefinitions"]
    ]
    played["table"] = {"columns": columns, "cells": table["rows"][0]["cells"]}
    if other := _OTHER_VERSIONS.get(sent["apiVersion"]):
        found = client.send("GET", f"{place(sent, 'default', other)}/{sent['metadata']['name']}").body
        found["metadata"].pop("managedFields", None)
        played["other"] = found
    return played


def play_refused(client: Client, case: Any) -> Any:
    """Create an invalid object, or make a valid one invalid."""
    if "create" not in case:
        answer = client.send("POST", place(case, "refused"), case)
        return {"code": answer.code, "body": answer.body}
    sent = case["create"]
    path = place(sent, "refused")
    created = client.send("POST", path, sent)
    if created.code != 201:
        return {"code": created.code, "body": created.body, "premature": True}
    subresource = f"/{case['subresource']}" if "subresource" in case else ""
    target = f"{path}/{sent['metadata']['name']}{subresource}"
    answer = client.send("PATCH", target, case["change"], content="application/merge-patch+json")
    return {"code": answer.code, "body": answer.body}


def play_behavior(client: Client, case: Any) -> Any:
    """Send unconditional updates, updates of missing objects, unknown selectors and deletions of a kind."""
    collection, name = place(case, "default"), case["metadata"]["name"]
    found = client.send("GET", f"{collection}/{name}").body
    found["metadata"].pop("resourceVersion", None)
    found["metadata"].pop("managedFields", None)
    labels = {**found["metadata"].get("labels", {}), "changed": "yes"}
    found["metadata"]["labels"] = labels
    unconditional = client.send("PUT", f"{collection}/{name}", found)
    absent = {**case, "metadata": {"name": f"{name}x"}}
    upsert = client.send("PUT", f"{collection}/{name}x", absent)
    strange = client.send("GET", f"{collection}?fieldSelector=spec.nope%3D1")
    named = client.send("GET", f"{collection}?fieldSelector=metadata.name%3D{name}")
    deleted = client.send("DELETE", f"{collection}/{name}")
    return {
        "unconditional": _outcome(unconditional),
        "upsert": _outcome(upsert),
        "strange": _outcome(strange),
        "named": [named.code, len(named.body.get("items") or [])],
        "deleted": _outcome(deleted),
    }


def _outcome(answer: Answer) -> Any:
    body = answer.body
    shown = {key: body[key] for key in ("kind", "message", "reason") if key in body}
    metadata = body.get("metadata") or {}
    kept = ("generation", "finalizers", "deletionGracePeriodSeconds")
    shown |= {key: metadata[key] for key in kept if key in metadata}
    return {"code": answer.code, **shown, "marked": "deletionTimestamp" in metadata}


def first_of_each_kind() -> list[Any]:
    """Choose one accepted object of each kind."""
    chosen: dict[tuple[str, str], Any] = {}
    for case in cases("accepted"):
        chosen.setdefault((case["apiVersion"], case["kind"]), case)
    return list(chosen.values())


def comparable(name: str, case: Any, played: Any) -> Any:
    """Replace what differs from run to run in what a server answered to a case."""
    kept = plain(played)
    if name == "accepted" and "table" in kept:
        cells = [_ageless(cell) for cell in kept["table"]["cells"]]
        for position, (column, *_) in enumerate(kept["table"]["columns"]):
            if (case["kind"], column) in FILLED_LATER:
                cells[position] = "LATER"
        kept["table"]["cells"] = cells
    return kept


def _ageless(cell: Any) -> Any:
    """Replace ages in seconds, and ages in years, which grow by a day every day."""
    return re.sub(r"^\d+s$|\b\d+y\d+d\b", "AGE", cell) if isinstance(cell, str) else cell


def plain(value: Any) -> Any:
    """Replace UIDs, times, versions and allocated addresses."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", json.dumps(value))
    text = re.sub(r"20(2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\dZ", "CHANGING", text)
    # The second network is that of a ServiceCIDR among the cases.
    text = re.sub(r'"10\.(0|9)\.\d+\.\d+"', '"ADDRESS"', text)
    return _plain(json.loads(text))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: _plain(item) for key, item in value.items()}
    if "resourceVersion" in made:
        made["resourceVersion"] = "CHANGING"
    # The recorded user came from a token file, which gives users a uid.
    if made.get("uid") == made.get("username") == "recorder":
        del made["uid"]
    if made.get("type") == "PodScheduled":
        made["lastTransitionTime"] = "CHANGING"
    return made


def recording(name: str) -> list[Any]:
    """Return the recorded responses of the real server."""
    return json.loads((DATA / f"{name}.json").read_text())["cases"]


def without_structs(message: str) -> str:
    """Remove Go structs of the real server from a message."""
    message = re.sub(r"\n@@.*?\n\n?(?=$|,|\])", "", message, flags=re.DOTALL)
    return re.sub(
        r'Invalid value: \{"(labels|metadata)".*?\}: field is immutable',
        "Invalid value: STRUCT: field is immutable",
        message,
    )


def wait_until_ready(client: Client) -> None:
    """Create the namespace of the refused objects."""
    client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "refused"}})


@dataclass
class Embedded:
    """An embedded server in its own thread, and its responses to all cases."""

    client: Client
    answers: dict[str, list[Any]]


async def serve(started: queue.Queue[Client], stop: threading.Event) -> None:
    """Run an embedded server until the event is set."""
    async with Server(disable_admission_plugins=DISABLED) as server:
        token = server.add_user("recorder", ["system:masters"])
        started.put(Client(server.url, token, server.ca_pem))
        await asyncio.to_thread(stop.wait)
