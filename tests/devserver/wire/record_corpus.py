"""Record how a real control plane reads request bodies, as test data for the type table.

    .venv/bin/python tests/devserver/wire/record_corpus.py

Needs the binaries of `scripts/control-plane build`. Each body is sent as a dry run; the answer is an object in the
server's own form, or the words in which it refused. Objects the server made itself are kept too.
"""

import asyncio
import json
import ssl
import sys
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bodies import BODIES
from stable_answers import stable

from kubewright.testing.controlplane import KUBERNETES, ControlPlane

DATA = Path(__file__).parent / "data"
# Of the objects the server makes itself: enough kinds, few of each.
OWN = [
    "/api/v1/namespaces",
    "/api/v1/services",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/networking.k8s.io/v1/servicecidrs",
    "/apis/networking.k8s.io/v1/ipaddresses",
]


class Recorder:
    """Send bodies and keep the answers as text, which preserves the order of fields."""

    def __init__(self, plane: ControlPlane, began: datetime) -> None:
        self._url = plane.url
        self._token = plane.tokens["recorder"]
        self._began = began
        self._tls = ssl.create_default_context(cadata=plane.ca.decode())

    def send(self, method: str, path: str, body: str | None, content_type: str = "application/json") -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        data = body.encode() if body is not None else None
        request = urllib.request.Request(self._url + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, context=self._tls) as answer:
                warnings = answer.headers.get_all("Warning") or []
                return answer.status, answer.read().decode(), warnings
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), []

    def record(self) -> dict[str, Any]:
        self.send("POST", "/api/v1/namespaces", '{"metadata":{"name":"t"}}')
        answers: list[Any] = []
        for path, content_type, body in BODIES:
            query = "?dryRun=All&fieldManager=rec&fieldValidation=Warn"
            status, text, warnings = self.send("POST", path + query, body, content_type)
            answer: dict[str, Any] = {"path": path, "type": content_type, "body": body, "status": status}
            if status == 201:
                answer |= {"answer": self._stable(text), "warnings": warnings}
            else:
                answer["message"] = json.loads(text)["message"]
            answers.append(answer)
        own = [self._stable(self.send("GET", f"{path}?limit=4", None)[1]) for path in OWN]
        return {"answers": answers, "own": own}

    def _stable(self, text: str) -> str:
        return stable(text, self._began, ordered=False)


async def main() -> None:
    flags = ["--disable-admission-plugins=ServiceAccount"]
    users = {"recorder": ["system:masters"]}
    began = datetime.now(UTC)
    async with ControlPlane(controllers=False, users=users, api_server_flags=flags) as plane:
        recorded = await asyncio.to_thread(Recorder(plane, began).record)
    DATA.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(answer) for answer in recorded["answers"])
    own = ",\n".join(json.dumps(text) for text in recorded["own"])
    (DATA / "decoding.json").write_text(
        f'{{"kubernetes":"{KUBERNETES}","answers":[\n{lines}\n],\n"own":[\n{own}\n]}}\n'
    )
    print(f"{len(recorded['answers'])} bodies, {len(recorded['own'])} lists")


if __name__ == "__main__":
    asyncio.run(main())
