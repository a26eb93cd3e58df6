"""Record what a real API server answers to sequences of writes, as test data for field ownership.

    .venv/bin/python tests/devserver/merge/record_corpus.py

Needs the binaries of `scripts/control-plane build`. The corpus lets the tests compare with the real server
without one: each scenario is a list of writes to one object, each write with the answer it got.
"""

import asyncio
import json
import ssl
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from objects import CRDS
from scenarios import SCENARIOS
from stable_answers import stable

from kubewright.testing.controlplane import KUBERNETES, ControlPlane

DATA = Path(__file__).parent / "data"
CONTENT_TYPES = {
    "create": ("POST", "application/json"),
    "replace": ("PUT", "application/json"),
    "merge": ("PATCH", "application/merge-patch+json"),
    "apply": ("PATCH", "application/apply-patch+yaml"),
}


class Recorder:
    """Send writes and keep the answers."""

    def __init__(self, plane: ControlPlane) -> None:
        self._url = plane.url
        self._token = plane.tokens["recorder"]
        self._tls = ssl.create_default_context(cadata=plane.ca.decode())

    def send(
        self, method: str, path: str, body: Any, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        request = urllib.request.Request(
            self._url + path,
            data=json.dumps(body).encode(),
            method=method,
            headers={
                "Authorization": f"Bearer {self._token}",
                "Content-Type": content_type,
                "User-Agent": "rec/1",
            },
        )
        try:
            with urllib.request.urlopen(request, context=self._tls) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def prepare(self) -> None:
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "t"}})
        for crd in CRDS:
            self.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        for crd in CRDS:
            spec = crd["spec"]
            path = (
                f"/apis/{spec['group']}/{spec['versions'][0]['name']}/namespaces/t/{spec['names']['plural']}"
            )
            deadline = time.monotonic() + 30
            while self.send("GET", path, None)[0] != 200 and time.monotonic() < deadline:
                time.sleep(0.1)

    def record(self, scenario: dict[str, Any]) -> dict[str, Any]:
        answers: list[Any] = []
        _next_second()
        for step in scenario["steps"]:
            method, content_type = CONTENT_TYPES[step["verb"]]
            path = scenario["path"] if step["verb"] == "create" else f"{scenario['path']}/{scenario['name']}"
            query = f"?fieldManager={step['manager']}" + ("&force=true" if step.get("force") else "")
            if step.get("subresource"):
                path += f"/{step['subresource']}"
            body, before = (
                step["body"],
                self._changed_since(f"{scenario['path']}/{scenario['name']}", answers),
            )
            if step["verb"] == "replace":
                body = self._replacement(f"{scenario['path']}/{scenario['name']}", body)
            status, answer = self.send(method, path + query, body, content_type)
            if status == 422:
                # The server reports the fields of an object in random order.
                del answer["message"]
                answer["details"]["causes"].sort(key=lambda cause: (cause["field"], cause["message"]))
            answers.append({"status": status, "sent": body, "body": answer, **before})
            if step.get("pause", True):
                _next_second()
        return {**scenario, "answers": answers}

    def _changed_since(self, path: str, answers: list[Any]) -> dict[str, Any]:
        """Return the object if the server itself has written to it since our last write."""
        status, live = self.send("GET", path, None)
        versions = [
            answer["body"]["metadata"].get("resourceVersion") for answer in answers if answer["status"] < 300
        ]
        unchanged = status != 200 or not versions or live["metadata"]["resourceVersion"] == versions[-1]
        return {} if unchanged else {"before": live}

    def _replacement(self, path: str, changes: dict[str, Any]) -> Any:
        """Make a whole object for PUT from the present one: a key path to a value each, None removes."""
        _, live = self.send("GET", path, None)
        for place, value in changes.items():
            *parents, last = place.split("/")
            target = live
            for parent in parents:
                target = target[int(parent)] if isinstance(target, list) else target.setdefault(parent, {})
            if value is None:
                target.pop(last, None)
            else:
                target[last] = value
        return live


def _next_second() -> None:
    """Wait for the beginning of a second: managers are put in order by whole seconds."""
    time.sleep(1.05 - time.time() % 1)


async def main() -> None:
    flags = ["--disable-admission-plugins=ServiceAccount"]
    users = {"recorder": ["system:masters"]}
    began = datetime.now(UTC)
    async with ControlPlane(controllers=False, users=users, api_server_flags=flags) as plane:
        recorder = Recorder(plane)
        await asyncio.to_thread(recorder.prepare)
        recorded = await asyncio.gather(*(asyncio.to_thread(recorder.record, one) for one in SCENARIOS))
    lines = ",\n".join(
        stable(json.dumps(scenario, separators=(",", ":")), began, ordered=True) for scenario in recorded
    )
    (DATA / "ownership.json").write_text(
        f'{{"kubernetes":"{KUBERNETES}","crds":{json.dumps(CRDS)},\n"scenarios":[\n{lines}\n]}}\n'
    )
    print(f"{len(recorded)} scenarios, {sum(len(scenario['steps']) for scenario in recorded)} writes")


if __name__ == "__main__":
    asyncio.run(main())
