"""`kubewright why`: from a running operator, from a record file, and from the cluster alone."""

import asyncio
import dataclasses
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from msgspec.structs import replace

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.cli.app import main
from kubewright.cli.why.shown import explanation_lines
from kubewright.client import ApiRequest, Client, ClusterConfig
from kubewright.journal import CauseRecord, ReconcileLine, ReconcileRecord, StartLine
from kubewright.manager import ManagerOptions
from kubewright.namespaces import NamespaceSelector
from kubewright.shards import Shards
from kubewright.testing import Cluster
from kubewright.why import FollowedLabels, ObjectJournal, RelatedObjects, ShardHolders, explain, journal_file

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
    assert "not known: no operator that reconciles it was found" in shown
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
    assert "ConfigMap one  exists" in shown
    assert "Not read: Events of others, and field managers that the operator's cache does not keep" in shown
    await why("kettle/two", "--record", str(path), "-n", cluster.namespace, expected=1)
    assert "has no reconcile of kettle/two" in capsys.readouterr().err
    assert CANARY not in path.read_text()


async def test_a_record_is_read_without_its_damaged_lines(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "record.jsonl"
    async with cluster.running(kettles(), options=options(path)):
        await boiled(cluster)
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[1].startswith(b'{"type":"object"')
    lines[1] = lines[1].replace(b'"metadata"', b'"metadata')
    arguments = ("--record", str(path), "-n", cluster.namespace)
    path.write_bytes(b"".join(lines))
    await why("kettle/one", *arguments)
    assert f"from the record {path} without 1 truncated or damaged line)" in capsys.readouterr().out
    path.write_bytes(b"".join([*lines, b"{\n"]))
    await why("kettle/one", *arguments)
    assert f"from the record {path} without 2 truncated or damaged lines)" in capsys.readouterr().out
    path.write_bytes(lines[0] + lines[1])
    await why("kettle/one", *arguments, expected=1)
    assert "it has no reconciles, and 1 truncated or damaged line\n" in capsys.readouterr().err


async def test_a_record_lists_each_reconcile_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "record.jsonl"
    lines = [
        StartLine(format=1, operator="kettles", at=NOW),
        *(ReconcileLine(reconcile=record(id=f"id-{number}", repeated=number)) for number in range(3)),
    ]
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    await why("kettle/one", "--record", str(path))
    shown = capsys.readouterr().out
    assert [f"id id-{number}" in shown for number in range(3)] == [True] * 3
    assert "changed nothing" not in shown


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


def test_the_replica_that_holds_the_shard_of_an_object_is_named() -> None:
    uid = "6f1c2e0a"
    number = Shards(4).number_of(uid)
    document = {"metadata": {"name": "one", "namespace": "kitchen", "uid": uid}}
    holders = ["here", "here", "there", "there"]
    holders[number] = "there"
    shards = ShardHolders(by="uid", count=4, replica="here", held=[], holders=holders)
    assert waits(document, shards=shards) == [
        f"the replica there, which holds its shard {number} of 4: the operator does not"
    ]
    assert waits(document, shards=replace(shards, held=[number])) == []
    free = replace(shards, holders=[""] * 4)
    assert waits(document, shards=free) == [f"a replica that takes its shard {number} of 4: it is free"]
    assert waits(document, shards=replace(shards, held=[number], waiting="most others have 8")) == [
        "the operator: most others have 8"
    ]


def test_a_paused_object_waits_to_be_resumed() -> None:
    paused: dict[str, Any] = {"metadata": {"name": "one", "annotations": {"kubewright.dev/paused": "true"}}}
    assert waits(paused) == [
        "kubewright resume: it is paused by the annotation kubewright.dev/paused",
    ]
    fields = {"f:metadata": {"f:annotations": {"f:kubewright.dev/paused": {}}}}
    paused["metadata"]["managedFields"] = [{"time": "2026-01-02T02:00:00Z", "fieldsV1": fields}]
    assert waits(paused)[0].startswith("kubewright resume: it is paused since 2026-01-02T02:00:00Z by")
    condition = {"type": "Paused", "status": "True", "lastTransitionTime": "2026-01-02T02:00:01Z"}
    assert "since 2026-01-02T02:00:01Z" in waits(paused | {"status": {"conditions": [condition]}})[0]
    paused["metadata"]["annotations"]["kubewright.dev/paused"] = "yes"
    assert waits(paused) == []


def shown(*journals: ObjectJournal) -> str:
    document = {"kind": "Kettle", "metadata": {"name": "one"}}
    found = explain(document, RelatedObjects(), journals, now=NOW, limit=5)
    return "\n".join(explanation_lines(found, now=NOW, verbose=False))


def failure(number: int, **fields: Any) -> ReconcileRecord:
    given = {"id": f"id-{number}", "outcome": "error", "error": "ValueError: no", **fields}
    return record(started_at=NOW - timedelta(seconds=60 - number), **given)


def test_retries_that_fail_in_the_same_way_are_one_entry() -> None:
    created = [CauseRecord(type="create", kind="Kettle", name="one")]
    retries = [failure(1, causes=created), *(failure(number) for number in range(2, 50))]
    other = failure(50, error="ValueError: another")
    text = shown(ObjectJournal(source="here", reconciles=[*retries, other]))
    once = shown(ObjectJournal(source="here", reconciles=retries[:2]))
    assert "again    once in the same way, last at 03:03:07.000, id id-2" in once
    assert text.count("ValueError: no") == 1
    assert text.count("because  Kettle one was created") == 1
    assert "again    48 times in the same way, last at 03:03:54.000, id id-49" in text
    assert "ValueError: another" in text
    assert "earlier ones not shown" not in text


def test_failures_with_a_cause_or_another_generation_are_entries_of_their_own() -> None:
    changed = [CauseRecord(type="update", kind="Kettle", name="one")]
    records = [failure(1), failure(2, causes=changed), failure(3, generation=7), record()]
    text = shown(ObjectJournal(source="here", reconciles=records))
    assert text.count("error    ValueError: no") == 3
    assert "again" not in text


def test_entries_name_their_operator_if_there_are_several() -> None:
    one = ObjectJournal(source="the operator a (process 1)", reconciles=[record(id="first")])
    two = ObjectJournal(source="the operator b (process 2)", reconciles=[record(id="second")])
    assert "by       the operator a (process 1)" in shown(one, two)
    assert "by       the operator b (process 2)" in shown(one, two)
    assert "by       the operator" not in shown(one)


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


async def test_a_journal_that_cannot_be_read_is_reported_and_a_child_refers_to_its_owner(
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
    assert f"reconciled by its owner Kettle seen: kubewright why kettle/seen -n {cluster.namespace}" in other


def test_an_object_that_no_operator_selects_is_shown_with_the_labels_that_are_missing() -> None:
    metadata: dict[str, Any] = {"namespace": "team-b", "name": "one", "labels": {"track": "x"}}
    found = FollowedLabels(selector="team=a", followed=["team-a"], refused={"team-a": "pods is forbidden"})
    follows = ObjectJournal(source="the operator kettles", namespaces=found)
    stable = ObjectJournal(source="the stable operator", selector="track=stable")
    canary = ObjectJournal(source="the canary", selector="track=canary")

    def waits(namespace: str, *journals: ObjectJournal) -> list[str]:
        document = {"kind": "Kettle", "metadata": {**metadata, "namespace": namespace}}
        return explain(document, RelatedObjects(), journals, now=datetime.now(UTC), limit=5).waiting_for

    assert waits("team-b", follows) == [
        "a label of namespace team-b that matches team=a: the operator kettles reconciles nothing in other namespaces"
    ]
    assert waits("team-a", follows) == [
        "access to namespace team-a: the operator kettles cannot read it: pods is forbidden"
    ]
    assert waits("team-a", stable, canary) == [
        "a label that matches track=stable: the stable operator reconciles no other objects",
        "a label that matches track=canary: the canary reconciles no other objects",
    ]
    metadata["labels"] = {"track": "canary"}
    assert waits("team-a", stable, canary) == []


async def test_a_running_operator_says_that_it_does_not_select_an_object(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await cluster.install(Kettle)
    await cluster.create(Kettle(kw.Meta("one")))
    selecting = dataclasses.replace(
        options(), selector="track=canary", namespace_selector=NamespaceSelector(f"why={cluster.namespace}")
    )
    async with cluster.running(kettles(), options=selecting, as_admin=True):
        await why("kettle/one", *at(cluster))
        shown = capsys.readouterr().out
        assert f"a label that matches track=canary: the operator kettles (process {os.getpid()})" in shown
        patch = {"metadata": {"labels": {"track": "canary"}}}
        await cluster.client.patch(Kettle, patch, name="one", namespace=cluster.namespace, type="merge")
        await why("kettle/one", *at(cluster))
        assert f"a label of namespace {cluster.namespace} that matches why=" in capsys.readouterr().out
