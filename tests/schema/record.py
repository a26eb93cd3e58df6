"""Record the answers of a real API server to the cases: `python tests/schema/record.py` (needs its binaries)."""

import asyncio
import json
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import schema_definitions
import schema_kinds as kinds
import schema_ratchets as ratchets
import schema_rule_values
import schema_rules
import schema_values
from schema_documents import definition

from kubewright.testing.controlplane import KUBERNETES, ControlPlane

OBSERVED = Path(__file__).parent / "observed"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/ex.io/v1/namespaces/default/things"
JSON = "application/json"


class Server:
    def __init__(self, url: str, tls: ssl.SSLContext) -> None:
        self._url = url
        self._tls = tls
        self.warnings: list[str] = []

    def send(self, method: str, path: str, body: Any = None, kind: str = JSON) -> tuple[int, Any]:
        self.warnings = []
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": kind}, method=method)
        try:
            with urllib.request.urlopen(request, context=self._tls) as answer:
                status, text = answer.status, answer.read().decode()
                self.warnings = answer.headers.get_all("Warning") or []
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        return status, json.loads(text) if text.startswith("{") else {"message": text}

    def serve(self, schema: Any, marker: str) -> None:
        """Install the CRD with this schema and wait until requests are validated against it."""
        document = definition(schema)
        status, answer = self.send("POST", CRDS, document)
        if status == 409:
            _, current = self.send("GET", f"{CRDS}/things.ex.io")
            document["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
            status, answer = self.send("PUT", f"{CRDS}/things.ex.io", document)
        assert status in (200, 201), answer
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            status, answer = self.send("GET", "/openapi/v3/apis/ex.io/v1")
            if status == 200 and marker in json.dumps(answer) and self.send("GET", THINGS)[0] == 200:
                time.sleep(2)
                return
            time.sleep(0.1)
        raise TimeoutError("the kind is not served")

    def remove(self) -> None:
        self.send("DELETE", f"{CRDS}/things.ex.io")
        while self.send("GET", f"{CRDS}/things.ex.io")[0] != 404:
            time.sleep(0.1)


def outcome(status: int, answer: Any) -> dict[str, Any]:
    if status < 300:
        return {"accepted": True}
    causes = answer.get("details", {}).get("causes", [])
    # The server reports the fields of an object in random order.
    return {"accepted": False, "causes": sorted(causes, key=lambda cause: (cause["field"], cause["message"]))}


def definitions(server: Server, documents: dict[str, Any]) -> dict[str, Any]:
    return {
        name: outcome(*server.send("POST", f"{CRDS}?dryRun=All", document))
        for name, document in documents.items()
    }


def accepted(server: Server, documents: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, document in documents.items():
        status, answer = server.send("POST", f"{CRDS}?dryRun=All", document)
        # The server walks the properties of a schema in no fixed order.
        found[name] = {**outcome(status, answer), "warnings": sorted(server.warnings)}
    return found


def thing(spec: Any, name: str = "a") -> Any:
    return {"apiVersion": "ex.io/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


def values(server: Server, schema: Any, specs: dict[str, Any], marker: str) -> dict[str, Any]:
    server.serve(schema, marker)
    observed: dict[str, Any] = {}
    for name, spec in specs.items():
        status, answer = server.send("POST", f"{THINGS}?dryRun=All&fieldValidation=Ignore", thing(spec))
        observed[name] = outcome(status, answer)
        if status < 300:
            observed[name]["spec"] = answer["spec"]
        status, answer = server.send("POST", f"{THINGS}?dryRun=All&fieldValidation=Strict", thing(spec))
        if status == 400:
            observed[name]["strict"] = answer["message"]
    server.remove()
    return observed


def updates(
    server: Server, old: Any, new: Any, before: Any, specs: dict[str, Any], markers: tuple[str, str]
) -> Any:
    server.serve(old, markers[0])
    status, answer = server.send("POST", THINGS, thing(before))
    assert status == 201, answer
    server.serve(new, markers[1])
    _, current = server.send("GET", f"{THINGS}/a")
    observed = {
        name: outcome(*server.send("PUT", f"{THINGS}/a?dryRun=All", {**current, "spec": spec}))
        for name, spec in specs.items()
    }
    server.send("DELETE", f"{THINGS}/a")
    server.remove()
    return observed


def record(server: Server) -> None:
    found: dict[str, Any] = {
        "definitions": definitions(server, schema_definitions.DEFINITIONS),
        "kinds": accepted(server, {**kinds.CRDS, "odd": kinds.ODD}),
        "values": values(server, schema_values.WIDE, schema_values.VALUES, "enumNull"),
        "ratchets": updates(
            server,
            ratchets.OLD,
            ratchets.NEW,
            ratchets.BEFORE,
            ratchets.UPDATES,
            ("byname", "maxLength"),
        ),
        "rule definitions": definitions(server, schema_rules.DEFINITIONS),
        "rule values": {
            name: values(server, group["schema"], group["specs"], group["marker"])
            for name, group in schema_rule_values.VALUES.items()
        },
        "rule updates": {
            name: updates(
                server, group["old"], group["new"], group["before"], group["specs"], group["markers"]
            )
            for name, group in schema_rule_values.UPDATES.items()
        },
    }
    OBSERVED.mkdir(exist_ok=True)
    for name, content in found.items():
        text = json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True)
        # The server numbers the type of `self`, with a different number each time.
        text = re.sub(r"selfType\d+", "selfType", text)
        file = OBSERVED / f"{name.replace(' ', '_')}.json"
        file.write_text(f'{{"kubernetes": "{KUBERNETES}", "answers": {text}}}\n')


async def main() -> None:
    async with ControlPlane(controllers=False) as plane:
        tls = ssl.create_default_context(cadata=plane.ca.decode())
        folder = plane.directory
        tls.load_cert_chain(folder / "kubernetes-admin.crt", folder / "kubernetes-admin.key")
        await asyncio.to_thread(record, Server(plane.url, tls))


if __name__ == "__main__":
    asyncio.run(main())
