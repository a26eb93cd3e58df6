"""Replays: a recorded reconcile does the same again, and another program shows what it would do instead."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

import kubewright as kw
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.cli.app import main
from kubewright.devserver import Match
from kubewright.journal import ReconcileLine, ReconcileRecord, read_lines
from kubewright.manager import ManagerOptions
from kubewright.replay import ReplayError, extract, find_reconcile, replay
from kubewright.testing import Cluster, eventually


class ShopSpec(kw.Model):
    size: int = 1
    key: str = ""


class ShopStatus(kw.Model):
    conditions: list[kw.Condition] = []
    ready: int = 0


class Shop(kw.Resource[ShopSpec, ShopStatus], group="replay.kubewright.dev", version="v1"):
    """A shop."""


def deployment(shop: Shop, replicas: int) -> apps_v1.Deployment:
    labels = {"app": shop.metadata.name}
    container = core_v1.Container(name="web", image="web")
    return apps_v1.Deployment(
        kw.Meta(shop.metadata.name),
        spec=apps_v1.DeploymentSpec(
            replicas=replicas,
            selector=meta_v1.LabelSelector(match_labels=labels),
            template=core_v1.PodTemplateSpec(
                metadata=kw.Meta(labels=labels), spec=core_v1.PodSpec(containers=[container])
            ),
        ),
    )


async def open_shop(shop: Shop, ctx: kw.Context, *, factor: int = 1) -> None:
    live = await ctx.apply(deployment(shop, shop.spec.size * factor))
    secret = await ctx.find(core_v1.Secret, "key")
    if secret is not None:
        await ctx.apply(
            core_v1.ConfigMap(kw.Meta(f"{shop.metadata.name}-keys"), data={"count": str(len(secret.data))})
        )
    await ctx.apply(
        core_v1.Secret(kw.Meta(f"{shop.metadata.name}-secret"), string_data={"k": "constant-value"})
    )
    everything = await ctx.list(core_v1.ConfigMap)
    ready = live.status.ready_replicas
    condition = kw.conditions.true if ready == shop.spec.size else kw.conditions.false
    await ctx.patch_status(shop, ShopStatus(ready=ready, conditions=[condition("Ready", "Counted")]))
    ctx.event("Opened", f"{shop.spec.size} counters, {len(everything)} maps")


def shops(factor: int = 1, name: str = "shops", **more: object) -> kw.Operator:
    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        await open_shop(shop, ctx, factor=factor)

    return kw.Operator(
        kw.Controller(
            Shop,
            reconcile,
            owns=[apps_v1.Deployment, core_v1.ConfigMap, core_v1.Secret],
            name=name,
        ),
        name="shops",
        **more,  # type: ignore[arg-type]
    )


async def recorded_run(cluster: Cluster, path: Path) -> list[ReconcileRecord]:
    """Record an operator that creates, changes and observes; return its reconciles."""
    options = ManagerOptions(metrics_bind_address="0", health_probe_bind_address="0", record=path)
    async with cluster.running(shops(), options=options):
        await cluster.create(core_v1.Secret(kw.Meta("key"), string_data={"password": "canary-1234"}))
        shop = await cluster.create(Shop(kw.Meta("one"), spec=ShopSpec(size=2)))
        await cluster.eventually(Shop, "one", lambda shop: shop.status.ready == 2)
        await cluster.client.patch(shop, {"spec": {"size": 3}}, type="merge")
        await cluster.eventually(Shop, "one", lambda shop: shop.status.ready == 3)
    return [line.reconcile for line in read_lines(path) if isinstance(line, ReconcileLine)]


async def test_every_reconcile_of_a_run_does_the_same_again(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "record"
    records = await recorded_run(cluster, path)
    assert sum(bool(record.writes) for record in records) >= 3
    for record in records:
        replayed = await replay(shops(), find_reconcile(path, record.id))
        assert replayed.differences == [], "\n".join(replayed.differences)


async def test_changed_code_shows_what_it_would_have_written(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "record"
    records = await recorded_run(cluster, path)
    changed = next(
        record
        for record in records
        for write in record.writes
        for change in write.changes
        if change.path == "spec.replicas" and change.before == 2
    )
    recorded = find_reconcile(path, changed.id)
    assert recorded.unknown == [
        "the values of Secrets and sensitive fields: they are replaced by placeholders, and their changes are not compared"
    ]
    replayed = await replay(shops(factor=10), recorded)
    assert "-  - 'spec.replicas: 2 -> 3'" in replayed.differences
    assert "+  - 'spec.replicas: 2 -> 30'" in replayed.differences


async def test_an_error_of_the_server_comes_again(embedded_cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "record"
    options = ManagerOptions(metrics_bind_address="0", health_probe_bind_address="0", record=path)
    cluster = embedded_cluster
    assert cluster.faults is not None
    cluster.faults.add(
        match=Match(verbs=("patch",), resource="deployments.apps"),
        fail=403,
        message="no more than two",
        times=1,
    )
    async with cluster.running(shops(), options=options):
        await cluster.create(Shop(kw.Meta("one"), spec=ShopSpec(size=2)))
        await cluster.eventually(Shop, "one", lambda shop: shop.status.ready == 2)
    failed = find_reconcile(path, "last")
    assert failed.record.outcome == "error"
    assert [write.status for write in failed.record.writes] == [403]
    replayed = await replay(shops(), failed)
    assert replayed.differences == [], "\n".join(replayed.differences)
    assert "no more than two" in replayed.record.error


async def test_the_time_is_the_one_of_the_recorded_reconcile(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "record"
    records = await recorded_run(cluster, path)
    first = next(record for record in records if record.writes)
    replayed = await replay(shops(), find_reconcile(path, first.id))
    assert abs((replayed.record.started_at - first.started_at).total_seconds()) < 60
    assert abs((replayed.record.writes[-1].at - first.writes[-1].at).total_seconds()) < 60


async def test_an_external_system_is_replaced_by_the_lifespan_for_planning(
    cluster: Cluster, tmp_path: Path
) -> None:
    path = tmp_path / "record"
    records = await recorded_run(cluster, path)
    entered: list[str] = []

    @asynccontextmanager
    async def outside() -> AsyncGenerator[None]:
        entered.append("outside")
        yield

    @asynccontextmanager
    async def planned() -> AsyncGenerator[None]:
        entered.append("planned")
        yield

    recorded = find_reconcile(path, records[0].id)
    with pytest.raises(ReplayError, match="has a lifespan, which may access an external system"):
        await replay(shops(lifespan=outside), recorded)
    assert entered == []
    await replay(shops(lifespan=outside, planning=planned), recorded)
    assert entered == ["planned"]


async def test_reconciles_that_cannot_be_replayed_are_refused_in_one_line(
    cluster: Cluster, tmp_path: Path
) -> None:
    path = tmp_path / "record"
    records = await recorded_run(cluster, path)
    with pytest.raises(ReplayError, match="has no reconcile nonsense"):
        find_reconcile(path, "nonsense")
    with pytest.raises(ReplayError, match="has no reconcile that failed"):
        find_reconcile(path, "last")
    with pytest.raises(ReplayError, match="several reconciles whose id begins with"):
        find_reconcile(path, "")
    with pytest.raises(ReplayError, match="No such file"):
        find_reconcile(tmp_path / "missing", "last")
    with pytest.raises(ReplayError, match="has no controller 'shops', which made the record: it has others"):
        await replay(shops(name="others"), find_reconcile(path, records[0].id))


PROGRAM = '''
import kubewright as kw
from kubewright.api.builtin import core_v1


class LampSpec(kw.Model):
    watts: int = 5


class LampStatus(kw.Model):
    on: bool = False


class Lamp(kw.Resource[LampSpec, LampStatus], group="replay.kubewright.dev", version="v1"):
    """A lamp."""


@kw.controller(Lamp, owns=[core_v1.ConfigMap])
async def lamps(
    lamp: Lamp, ctx: kw.Context
) -> None:
    """Light it."""
    watts = lamp.spec.watts
    await ctx.apply(core_v1.ConfigMap(kw.Meta(lamp.metadata.name), data={"watts": str(watts)}))


operator = kw.Operator(lamps, name="lamps")
'''


@pytest.fixture
async def lamp_record(cluster: Cluster, tmp_path: Path) -> AsyncGenerator[Path, None]:
    """Record an operator in a file of its own; give its folder."""
    (tmp_path / "lamps.py").write_text(PROGRAM)
    space: dict[str, object] = {"__name__": "lamps"}
    exec(compile(PROGRAM, tmp_path / "lamps.py", "exec"), space)  # noqa: S102 (an author's program)
    options = ManagerOptions(
        metrics_bind_address="0", health_probe_bind_address="0", record=tmp_path / "record"
    )
    lamp = space["Lamp"]
    async with cluster.running(space["operator"], options=options):  # type: ignore[arg-type]
        await cluster.create(lamp(kw.Meta("desk")))  # type: ignore[operator]
        await cluster.eventually(core_v1.ConfigMap, "desk", lambda found: found.data["watts"] == "5")
    yield tmp_path
    # Commands load it by this name, and the next test has another file of it.
    sys.modules.pop("lamps", None)


async def command(*arguments: str) -> int:
    def run() -> int:
        with pytest.raises(SystemExit) as ended:
            main(["replay", *arguments])
        return int(ended.value.code or 0)

    # A command has an event loop of its own, so it needs a thread of its own.
    return await asyncio.to_thread(run)


async def test_the_command_compares_and_writes_a_test_that_holds(
    lamp_record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = next(line for line in read_lines(lamp_record / "record") if isinstance(line, ReconcileLine))
    target, record = str(lamp_record / "lamps.py"), str(lamp_record / "record")
    test = lamp_record / "test_desk.py"
    code = await command(record, target, "--reconcile", found.reconcile.id[:8], "--diff", "--test", str(test))
    assert (code, capsys.readouterr().out) == (0, "the same writes, Events and outcome\n")
    assert await asyncio.to_thread(_passes, test)
    (lamp_record / "lamps.py").write_text(PROGRAM.replace("str(watts)", "str(watts * 2)"))
    assert not await asyncio.to_thread(_passes, test), "the generated test notices the change"
    assert await command(record, target, "--reconcile", found.reconcile.id, "--test", str(test)) == 1
    assert "test_desk.py exists: choose another name with --test" in capsys.readouterr().err


@pytest.mark.parametrize("line", [b"", b'{"type":"object","uid":"cut\n'])
@pytest.mark.parametrize("option", ["", "--diff", "--pdb", "--test"])
async def test_a_reconcile_without_the_content_of_its_object_is_refused(
    lamp_record: Path, capsys: pytest.CaptureFixture[str], option: str, line: bytes
) -> None:
    record, test = lamp_record / "record", lamp_record / "test_desk.py"
    chosen = next(each.reconcile for each in read_lines(record) if isinstance(each, ReconcileLine))
    replace_versions(record, {(chosen.uid, chosen.resource_version)}, line)
    # Without the object nothing else would be found out: the program is not even loaded.
    arguments = [str(record), str(lamp_record / "missing.py"), "--reconcile", chosen.id]
    options = ["--test", str(test)] if option == "--test" else [option] if option else []
    assert await command(*arguments, *options) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(
        f"Error: reconcile {chosen.id} cannot be replayed: {record} lacks the content of {chosen.object} at version "
        f"{chosen.resource_version}, the object that it reconciled"
    )
    assert not test.exists()
    with pytest.raises(ReplayError, match="cannot be replayed"):
        find_reconcile(record, chosen.id)


async def test_a_reconcile_without_an_object_that_it_read_is_not_compared(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, test = tmp_path / "record", tmp_path / "test_one.py"
    records = await recorded_run(cluster, path)
    chosen, secret = next(
        (record, found)
        for record in records
        for read in record.reads
        for found in read.found
        if read.kind == "Secret" and found.name == "key"
    )
    replace_versions(path, {(secret.uid, secret.resource_version)}, b'{"type":"object","uid":"cut\n')
    content = f"the content of Secret {cluster.namespace}/key at version {secret.resource_version}"
    recorded = find_reconcile(path, chosen.id)
    assert recorded.missing == [content]
    replayed = await replay(shops(), recorded)
    assert replayed.differences[0] == f"cannot be compared: the record lacks {content}"
    for options in (["--diff"], ["--test", str(test)], ["--test", str(test), "--expect", "replayed"]):
        assert await command(str(path), "missing.py", "--reconcile", chosen.id, *options) == 1
        shown = capsys.readouterr()
        assert shown.out == ""
        assert f"reconcile {chosen.id} cannot be compared: {path} lacks {content}" in shown.err
        assert not test.exists()


async def test_a_record_that_lost_an_object_fails_its_generated_test(
    lamp_record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, test = lamp_record / "record", lamp_record / "test_desk.py"
    chosen = next(each.reconcile for each in read_lines(record) if isinstance(each, ReconcileLine))
    program = lamp_record / "lamps.py"
    program.write_text(PROGRAM.replace("await ctx.apply", "lambda: ctx.apply"))  # as without a reconcile
    arguments = [str(record), str(program), "--reconcile", chosen.id, "--test", str(test)]
    assert await command(*arguments, "--expect", "replayed") == 0
    assert "no writes" in capsys.readouterr().out
    assert await asyncio.to_thread(_passes, test)
    replace_versions(lamp_record / "test_desk.jsonl", {(chosen.uid, chosen.resource_version)}, b"")
    assert not await asyncio.to_thread(_passes, test)


def replace_versions(path: Path, versions: set[tuple[str, str]], text: bytes) -> None:
    """Put a text in place of the lines with the content of these object versions."""
    kept = list[bytes]()
    for line in path.read_bytes().splitlines(keepends=True):
        found = msgspec.json.decode(line)
        lost = found["type"] == "object" and (found["uid"], found["resourceVersion"]) in versions
        kept.append(text if lost else line)
    path.write_bytes(b"".join(kept))


async def test_a_test_can_expect_what_a_fix_does(
    lamp_record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = next(line for line in read_lines(lamp_record / "record") if isinstance(line, ReconcileLine))
    program, record = lamp_record / "lamps.py", str(lamp_record / "record")
    test, part = lamp_record / "test_desk.py", str(lamp_record / "test_desk.jsonl")
    program.write_text(PROGRAM.replace("str(watts)", "str(watts * 2)"))
    chosen = ("--reconcile", found.reconcile.id)
    assert await command(record, str(program), *chosen, "--test", str(test), "--expect", "replayed") == 0
    capsys.readouterr()
    assert await command(part, str(program), *chosen, "--diff") == 0
    assert capsys.readouterr().out == "the same writes, Events and outcome\n"
    assert await asyncio.to_thread(_passes, test)
    program.write_text(PROGRAM)
    assert not await asyncio.to_thread(_passes, test), "the old code fails the test of the fix"


async def test_each_reconcile_can_be_expected_as_it_is_replayed(cluster: Cluster, tmp_path: Path) -> None:
    path, part = tmp_path / "record", tmp_path / "part"
    for record in await recorded_run(cluster, path):
        recorded = find_reconcile(path, record.id)
        fixed = await replay(shops(factor=2), recorded)
        await asyncio.to_thread(extract, path, recorded, part, expected=fixed.record)
        again = await replay(shops(factor=2), find_reconcile(part, record.id))
        assert again.differences == [], "\n".join(again.differences)


def _passes(test: Path) -> bool:
    pytest_command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "asyncio_mode=auto",
    ]
    ended = subprocess.run(
        [*pytest_command, str(test)], check=False, cwd=test.parent, capture_output=True, text=True
    )
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    return ended.returncode == 0


async def debugged(folder: Path, typed: bytes) -> tuple[int | None, str]:
    """Replay the first reconcile under pdb with this input; return the exit code and what was printed."""
    found = next(line for line in read_lines(folder / "record") if isinstance(line, ReconcileLine))
    program = "from kubewright.cli import main; main()"
    arguments = ["replay", "record", "lamps.py", "--reconcile", found.reconcile.id, "--pdb"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
    )
    output, _ = await process.communicate(typed)
    return process.returncode, output.decode()


async def test_the_debugger_stops_at_the_first_line_of_the_reconciler(lamp_record: Path) -> None:
    code, shown = await debugged(lamp_record, b"p lamp.spec.watts * 100\nnext\np watts\ncontinue\n")
    assert code == 0, shown
    assert "-> watts = lamp.spec.watts" in shown
    assert "500" in shown
    assert "create" in shown or "apply configmaps/desk" in shown


@pytest.mark.parametrize("typed", [b"quit\n", b"next\nq\n", b""])
async def test_the_debugger_is_left_without_a_traceback(lamp_record: Path, typed: bytes) -> None:
    code, shown = await debugged(lamp_record, typed)
    assert code == 1
    assert shown.splitlines()[-1].endswith("left the debugger before the reconcile ended")
    assert "Traceback" not in shown
    assert "BdbQuit" not in shown


async def test_reconciles_are_listed_without_a_target(
    lamp_record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = lamp_record / "record"
    records = [line.reconcile for line in read_lines(record) if isinstance(line, ReconcileLine)]
    with record.open("a") as file:
        file.write('{"type":"recon')
    assert await command(str(record)) == 0
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.out.splitlines()] == [each.id[:8] for each in records]
    first = records[0]
    assert f"  {first.object}  {first.controller}  success  1 write" in shown.out.splitlines()[0]
    number = len(record.read_text().splitlines())
    assert f"1 truncated or damaged line was skipped: line {number}\n" in shown.err
    assert await command(str(record), "--diff") == 2
    assert "--diff, --pdb and --test need --reconcile" in capsys.readouterr().err


async def test_damaged_objects_are_counted_in_a_list(
    lamp_record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = lamp_record / "record"
    lines = record.read_bytes().splitlines(keepends=True)
    damaged = [number for number, line in enumerate(lines) if line.startswith(b'{"type":"object"')][:2]
    for number in damaged:
        lines[number] = lines[number].replace(b'"metadata"', b'"metadata')
    record.write_bytes(b"".join(lines))
    assert await command(str(record)) == 0
    assert (
        f"2 truncated or damaged lines were skipped, the first is line {damaged[0] + 1}\n"
        in capsys.readouterr().err
    )


async def test_a_cut_record_without_reconciles_is_an_error(
    lamp_record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = lamp_record / "cut"
    start, first = (lamp_record / "record").read_bytes().splitlines(keepends=True)[:2]
    cut.write_bytes(start + first[:100])
    assert await command(str(cut)) == 1
    assert (
        capsys.readouterr().err
        == f"{cut} has no reconciles\n1 truncated or damaged line was skipped: line 2\n"
    )
    cut.write_bytes(start)
    assert await command(str(cut)) == 0


async def test_a_list_does_not_count_reconciles_that_it_lists(
    lamp_record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = lamp_record / "record"
    first = next(line.reconcile for line in read_lines(record) if isinstance(line, ReconcileLine))
    with record.open("ab") as file:
        file.write(msgspec.json.encode(ReconcileLine(reconcile=structs.replace(first, repeated=3))) + b"\n")
    assert await command(str(record)) == 0
    assert "changed nothing" not in capsys.readouterr().out


async def test_an_object_stands_for_its_last_failure_or_its_last_reconcile(
    cluster: Cluster, tmp_path: Path
) -> None:
    path = tmp_path / "record"
    records = await recorded_run(cluster, path)
    assert find_reconcile(path, "shop/one").record.id == records[-1].id
    assert find_reconcile(path, "shops.replay.kubewright.dev/one", namespace=cluster.namespace).record.id
    with pytest.raises(ReplayError, match="has no reconcile of shop/two; `kubewright replay"):
        find_reconcile(path, "shop/two")
    with pytest.raises(ReplayError, match="has no reconcile of shop/one in namespace elsewhere"):
        find_reconcile(path, "shop/one", namespace="elsewhere")
    failed = structs.replace(records[0], id="failed", outcome="error", error="ValueError: no")
    other = structs.replace(records[0], id="other", namespace="elsewhere")
    lines = path.read_bytes().splitlines(keepends=True)
    added = [msgspec.json.encode(ReconcileLine(reconcile=each)) + b"\n" for each in (failed, records[-1])]
    path.write_bytes(b"".join([*lines, *added]))
    assert find_reconcile(path, "shop/one").record.id == "failed"
    path.write_bytes(b"".join([*lines, msgspec.json.encode(ReconcileLine(reconcile=other)) + b"\n"]))
    with pytest.raises(ReplayError, match=r"in the namespaces elsewhere, test-.*: choose one with -n"):
        find_reconcile(path, "shop/one")


async def test_a_replay_announces_no_next_try(
    embedded_cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(shop: Shop, ctx: kw.Context) -> None:
        raise ValueError("no counters")

    operator = kw.Operator(kw.Controller(Shop, fail, name="shops"), name="shops")
    path = tmp_path / "record"
    options = ManagerOptions(metrics_bind_address="0", health_probe_bind_address="0", record=path)
    async with embedded_cluster.running(operator, options=options):
        await embedded_cluster.create(Shop(kw.Meta("one")))
        await eventually(lambda: '"type":"reconcile"' in path.read_text())
    caplog.clear()
    await replay(operator, find_reconcile(path, "last"))
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == [
        "Reconciler error: ValueError: no counters"
    ]
