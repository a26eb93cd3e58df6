"""`kubewright why`: from a running operator, from a record file, and from the cluster alone."""

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.cli.app import main
from kubewright.cli.why.cluster import RelatedObjects
from kubewright.cli.why.explanation import explain
from kubewright.cli.why.sources import ObjectJournal, journal_file
from kubewright.client import ApiRequest, Client, ClusterConfig
from kubewright.journal import ReconcileRecord
from kubewright.manager import ManagerOptions
from kubewright.testing import Cluster

CANARY = "canary-0815-secret"


class KettleSpec(kw.Model):
    litres: int = 1
    pin: Annotated[str, kw.Field(sensitive=True)] = ""


class KettleStatus(kw.Model):
    hot: bool = False


class Kettle(kw.Resource[KettleSpec, KettleStatus], group="why.kubewright.dev", version="v1"):
    """A kettle."""


async def boil(kettle: Kettle, ctx: kw.Context) -> None:
    if kettle.spec.litres > 9:
        raise ValueError(f"too much water, {kettle.spec.pin}")
    await ctx.apply(
        core_v1.ConfigMap(kw.Meta(kettle.metadata.name), data={"litres": str(kettle.spec.litres)})
    )
    await ctx.patch_status(kettle, KettleStatus(hot=True))
    ctx.event("Boiled", f"{kettle.spec.litres} litres")


def kettles() -> kw.Operator:
    return kw.Operator(kw.Controller(Kettle, boil, owns=[core_v1.ConfigMap], name="kettles"), name="kettles")


@pytest.fixture(autouse=True)
def own_runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask no operator that another test, or the user, runs."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))


async def why(*arguments: str, expected: int = 0) -> None:
    def run() -> None:
        with pytest.raises(SystemExit) as ended:
            main(["why", *arguments])
        assert ended.value.code == expected

    # A command has an event loop of its own, so it needs a thread of its own.
    await asyncio.to_thread(run)


def at(cluster: Cluster) -> tuple[str, ...]:
    return ("--kubeconfig", str(cluster.kubeconfig), "-n", cluster.namespace)


def options(record: Path | None = None) -> ManagerOptions:
    return ManagerOptions(
        metrics_bind_address="0",
        health_probe_bind_address="0",
        journal_file=journal_file("kettles"),
        record=record,
    )


async def boiled(cluster: Cluster) -> Kettle:
    await cluster.create(Kettle(kw.Meta("one"), spec=KettleSpec(litres=2, pin=CANARY)))
    found = await cluster.eventually(Kettle, "one", lambda kettle: kettle.status.hot)
    await cluster.client.patch(found, {"spec": {"litres": 3}}, type="merge")
    await cluster.eventually(core_v1.ConfigMap, "one", lambda found: found.data["litres"] == "3")
    return found


async def test_a_running_operator_has_cause_and_writes(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    async with cluster.running(kettles(), options=options()):
        await boiled(cluster)
        await why("kettle/one", *at(cluster))
        shown = capsys.readouterr().out
        await why("kettles", "one", "-o", "json", *at(cluster))
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert shown.splitlines()[0] == f"Kettle {cluster.namespace}/one"
    assert f"because  Kettle {cluster.namespace}/one changed: spec.litres: 2 -> 3" in shown
    assert 'apply    configmaps/one: data.litres: "2" -> "3"' in shown
    assert "event    Normal Boiled: 3 litres" in shown
    assert "ConfigMap one  exists" in shown
    assert "kettles (Apply of status): status.hot" in shown
    assert CANARY not in shown
    assert CANARY not in json.dumps(found["reconciles"])
    assert found["source"] == f"the operator kettles (process {os.getpid()})"
    assert not journal_file("kettles").exists(), "the address is removed when the operator stops"


async def test_a_failing_reconcile_is_shown_with_its_next_try(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    async with cluster.running(kettles(), options=options()):
        await cluster.create(Kettle(kw.Meta("full"), spec=KettleSpec(litres=10, pin=CANARY)))
        async with asyncio.timeout(100):
            while "controller kettles, which reconciles it again in" not in (
                shown := capsys.readouterr().out
            ):
                await why("kettle/full", *at(cluster))
    assert "error    ValueError: too much water" in shown
    assert CANARY not in shown


async def test_the_cluster_alone_shows_children_managers_and_events(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    async with cluster.running(kettles()):
        await boiled(cluster)
        await why("kettle/one", *at(cluster))
    shown = capsys.readouterr().out
    assert "not known: no operator of this user runs on this machine" in shown
    assert "ConfigMap one  exists" in shown
    assert "kettles (Apply of status): status.hot" in shown


async def test_a_record_is_read_without_a_cluster(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "record.jsonl"
    async with cluster.running(kettles(), options=options(path)):
        await boiled(cluster)
    await why("kettle/one", "--record", str(path), "-n", cluster.namespace)
    shown = capsys.readouterr().out
    assert f"from the record {path}" in shown
    assert "spec.litres: 2 -> 3" in shown
    await why("kettle/two", "--record", str(path), "-n", cluster.namespace, expected=1)
    assert "has no reconcile of kettle/two" in capsys.readouterr().err
    assert CANARY not in path.read_text()


async def test_mistakes_are_one_line(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await cluster.install(kettles())
    await why("kettle/absent", *at(cluster), expected=1)
    assert 'kettles.why.kubewright.dev "absent" not found' in capsys.readouterr().err
    await why("kettle", expected=2)
    assert "name one object, as KIND/NAME" in capsys.readouterr().err
    await why("kettle/one", "--record", str(tmp_path / "missing"), expected=1)
    assert (
        capsys.readouterr().err == f"Error: cannot read {tmp_path / 'missing'}: No such file or directory\n"
    )
    (tmp_path / "text").write_text("hello\n")
    await why("kettle/one", "--record", str(tmp_path / "text"), expected=1)
    assert "is not a record of `kubewright run --record`" in capsys.readouterr().err


async def test_the_journal_is_served_only_with_the_token(cluster: Cluster) -> None:
    async with cluster.running(kettles(), options=options()):
        path = journal_file("kettles")
        assert path.stat().st_mode & 0o077 == 0
        address = json.loads(path.read_text())
        assert address["url"].startswith("http://127.0.0.1:")
        for token in ("", "wrong"):
            with pytest.raises(kw.errors.ApiError, match="Unauthorized"):
                await asked(address["url"], token)
        with pytest.raises(kw.errors.ApiError, match="Unauthorized"):
            await asked(address["url"], address["token"], ("Origin", "http://rebound.example"))
        answer = await asked(address["url"], address["token"])
    assert answer["operator"] == "kettles"


async def asked(url: str, token: str, *headers: tuple[str, str]) -> dict[str, Any]:
    async with Client(ClusterConfig(server=url, token=token)) as client:
        request = ApiRequest(method="GET", path="/journal", verb="get", headers=headers)
        return json.loads((await client.raw(request)).body)


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def record(**fields: Any) -> ReconcileRecord:
    given = {
        "id": "one",
        "number": 1,
        "controller": "kettles",
        "kind": "Kettle",
        "name": "one",
        "started_at": NOW - timedelta(seconds=10),
        "duration": 0.1,
        "outcome": "success",
    }
    return ReconcileRecord(**{**given, **fields})


def waits(document: dict[str, Any], *records: ReconcileRecord, **journal: Any) -> list[str]:
    journals = [ObjectJournal(source="the operator", reconciles=list(records), **journal)]
    return explain(document, RelatedObjects(), journals, now=NOW, limit=5).waiting_for


def test_the_finalizers_and_retries_that_an_object_waits_for_are_named() -> None:
    deleted = {
        "metadata": {"name": "one", "deletionTimestamp": "2026-01-02T03:00:00Z", "finalizers": ["a/b"]}
    }
    assert waits(deleted)[0].startswith("the finalizer a/b")
    plain = {"metadata": {"name": "one"}}
    failed = record(outcome="error", error="ValueError: no", retry_at=NOW + timedelta(seconds=30))
    assert waits(plain, failed) == [
        "controller kettles, which reconciles it again in 30 s after ValueError: no"
    ]
    ended = record(outcome="error", error="TerminalError: no")
    assert waits(plain, ended) == ["a change: controller kettles does not retry after TerminalError: no"]
    assert waits(plain, failed, record()) == [], "only the latest reconcile counts"
    standby = waits(plain, leading=False, lease="default/kettles")
    assert standby == ["the lease default/kettles: the operator does not hold it, and reconciles nothing"]
    assert waits(plain, problems=["kettles is forbidden"]) == ["the operator: kettles is forbidden"]
    behind = {"metadata": {"name": "one", "generation": 2}, "status": {"observedGeneration": 1}}
    assert waits(behind) == ["a reconcile of generation 2: the status is about generation 1"]


@pytest.mark.parametrize("status", [None, "text", ["a"], {"conditions": "text"}, {"conditions": [1, None]}])
def test_any_shape_of_a_status_can_be_explained(status: Any) -> None:
    document = {"metadata": {"name": "one"}, "status": status}
    assert explain(document, RelatedObjects(), [], now=NOW, limit=5).conditions == []


async def test_control_characters_of_an_object_do_not_reach_the_terminal(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await cluster.install(kettles())
    async with cluster.running(kettles(), options=options()):
        await boiled(cluster)
        found = await cluster.get(Kettle, "one")
        await cluster.client.patch(
            found, {"metadata": {"annotations": {"note": "\x1b[2J<script>alert(1)</script>"}}}, type="merge"
        )
        async with asyncio.timeout(100):
            while "metadata.annotations.note" not in (shown := capsys.readouterr().out):
                await why("kettle/one", *at(cluster))
    assert "\x1b" not in shown


async def test_a_journal_that_cannot_be_read_is_reported_and_other_kinds_have_none(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    async with cluster.running(kettles(), options=options()):
        await cluster.create(Kettle(kw.Meta("seen")))
        await cluster.eventually(Kettle, "seen", lambda kettle: kettle.status.hot)
        path = journal_file("kettles")
        address = json.loads(path.read_text())
        path.write_text(json.dumps({**address, "token": "wrong"}))
        await why("kettle/seen", *at(cluster))
        refused = capsys.readouterr().out
        path.write_text(json.dumps(address))
        await why("configmap/seen", *at(cluster))
        other = capsys.readouterr().out
    assert "its journal cannot be read" in refused
    assert "not known: no operator" in other
