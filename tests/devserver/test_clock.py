"""The server's time is the event loop's: what is dated or ends does so when that has come."""

import asyncio
from datetime import datetime
from typing import Any

from devserver_http import MERGE, Http

from kubewright.devserver import Server
from kubewright.testing.virtual_time import virtual_time

LATER = 600.0
POD = {
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}

VOLUME = {
    "metadata": {"name": "v"},
    "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}},
}


async def moment(http: Http) -> datetime:
    """Ask the server for a new object's time."""
    made = await http.request(
        "POST", "/api/v1/namespaces/default/configmaps?dryRun=All", {"metadata": {"name": "now"}}
    )
    return datetime.fromisoformat(made.json()["metadata"]["creationTimestamp"])


def since(start: datetime, text: str) -> float:
    """Return the seconds from a moment to a time that the server wrote."""
    return (datetime.fromisoformat(text) - start).total_seconds()


async def token(http: Http) -> Any:
    path = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    return (await http.request("POST", path, {"spec": {"expirationSeconds": 600}})).json()


@virtual_time
async def test_a_token_expires_by_the_clock_of_the_server() -> None:
    async with Server() as server, Http(server) as http:
        await http.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
        issued = await token(http)

        async def is_good() -> bool:
            review = {"spec": {"token": issued["status"]["token"]}}
            answer = await http.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
            return answer.json()["status"].get("authenticated", False)

        assert await is_good()
        await asyncio.sleep(300)
        assert await is_good()
        await asyncio.sleep(400)
        assert not await is_good()


@virtual_time
async def test_timestamps_follow_the_clock_of_the_server() -> None:
    async with Server(disable_admission_plugins=["ServiceAccount"]) as server, Http(server) as http:
        await http.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
        await http.create("/api/v1/persistentvolumes", VOLUME)
        await http.create("/api/v1/namespaces/default/pods", POD)
        before = await moment(http)
        await asyncio.sleep(LATER)
        issued = await token(http)
        status = "/api/v1/persistentvolumes/v/status"
        volume = (await http.request("PATCH", status, {"status": {"phase": "Bound"}}, MERGE)).json()
        target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        await http.create("/api/v1/namespaces/default/pods/p/binding", target)
        (bound,) = (await http.get("/api/v1/namespaces/default/pods/p"))["status"]["conditions"]
        myself = await http.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        dated = {
            "token": issued["metadata"]["creationTimestamp"],
            "volume": volume["status"]["lastPhaseTransitionTime"],
            "binding": bound["lastTransitionTime"],
            "review": myself["metadata"]["creationTimestamp"],
        }
        early = {name: text for name, text in dated.items() if since(before, text) < LATER - 1}
        assert not early
        assert since(before, issued["status"]["expirationTimestamp"]) >= LATER + 599


@virtual_time
async def test_a_manager_without_a_time_comes_before_those_that_have_one() -> None:
    async with Server() as server, Http(server) as http:
        path = "/apis/apps/v1/namespaces/default/deployments"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        await http.create(path, {"metadata": {"name": "web"}, "spec": spec})
        await asyncio.sleep(LATER)
        await http.request("PATCH", f"{path}/web/scale", {"spec": {"replicas": 2}}, MERGE)
        made = (await http.request("GET", f"{path}/web")).json()
        entries = made["metadata"]["managedFields"]
        assert [(entry.get("subresource"), "time" in entry) for entry in entries] == [
            ("scale", False),
            (None, True),
        ]


@virtual_time
async def test_events_expire_an_hour_after_their_last_write() -> None:
    path = "/api/v1/namespaces/default/events"
    event = {"involvedObject": {"namespace": "default", "kind": "Pod", "name": "p"}, "reason": "Ran"}

    async def left() -> list[str]:
        return [item["metadata"]["name"] for item in (await http.get(path))["items"]]

    async with Server() as server, Http(server) as http:
        for name in ("old", "counted"):
            await http.create(path, {**event, "metadata": {"name": name}})
        await asyncio.sleep(1800)
        await http.request("PATCH", f"{path}/counted", {"count": 2}, MERGE)
        await asyncio.sleep(1810)
        assert await left() == ["counted"]
        await asyncio.sleep(1800)
        assert await left() == []
