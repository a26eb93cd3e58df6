"""pause, resume and reconcile, on whichever server the tests run."""

import asyncio
from datetime import datetime

import pytest

from kubewright.api import PAUSED, RECONCILE_AT, Meta, utc_now
from kubewright.api.builtin import core_v1
from kubewright.cli.app import main
from kubewright.testing import Cluster


async def command(cluster: Cluster, *arguments: str) -> int:
    def run() -> int:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--kubeconfig", str(cluster.kubeconfig), "-n", cluster.namespace])
        return int(ended.value.code or 0)

    # A command has an event loop of its own, so it needs a thread of its own.
    return await asyncio.to_thread(run)


async def create(cluster: Cluster, name: str, **labels: str) -> None:
    await cluster.create(core_v1.ConfigMap(Meta(name, labels=labels), data={"a": "b"}))


async def annotation(cluster: Cluster, name: str, which: str = PAUSED) -> str | None:
    return (await cluster.get(core_v1.ConfigMap, name)).metadata.annotations.get(which)


async def test_objects_are_paused_and_resumed_by_name(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await create(cluster, "one")
    await create(cluster, "two")
    assert await command(cluster, "pause", "cm/one", "configmap/two") == 0
    assert capsys.readouterr().out == "configmap/one paused\nconfigmap/two paused\n"
    assert [await annotation(cluster, name) for name in ("one", "two")] == ["true", "true"]
    assert await command(cluster, "resume", "configmaps", "one", "two") == 0
    assert capsys.readouterr().out == "configmap/one resumed\nconfigmap/two resumed\n"
    assert [await annotation(cluster, name) for name in ("one", "two")] == [None, None]


async def test_a_reconcile_is_requested_now_and_a_pause_is_pointed_out(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await create(cluster, "one")
    before = utc_now()
    assert await command(cluster, "reconcile", "cm/one") == 0
    assert capsys.readouterr() == ("configmap/one reconcile requested\n", "")
    first = await annotation(cluster, "one", RECONCILE_AT)
    assert first is not None
    assert before <= datetime.fromisoformat(first) <= utc_now()
    await command(cluster, "pause", "cm/one")
    capsys.readouterr()
    assert await command(cluster, "reconcile", "cm/one") == 0
    printed = capsys.readouterr()
    assert printed.err == "Warning: configmap/one is paused: it is reconciled when it is resumed\n"
    assert await annotation(cluster, "one", RECONCILE_AT) != first


async def test_objects_are_chosen_by_labels_or_all_of_a_namespace(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await create(cluster, "one", app="web")
    await create(cluster, "two", app="web")
    await create(cluster, "three")
    assert await command(cluster, "pause", "configmaps", "-l", "app=web") == 0
    assert sorted(capsys.readouterr().out.splitlines()) == ["configmap/one paused", "configmap/two paused"]
    assert await annotation(cluster, "three") is None
    assert await command(cluster, "pause", "configmaps", "--all") == 0
    assert "configmap/three paused\n" in capsys.readouterr().out
    assert await command(cluster, "pause", "configmaps", "-l", "app=none") == 0
    assert capsys.readouterr() == ("", f"No resources found in namespace {cluster.namespace}\n")


async def test_dry_runs_change_nothing(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    await create(cluster, "one")
    assert await command(cluster, "pause", "cm/one", "--dry-run") == 0
    assert capsys.readouterr().out == "configmap/one paused (dry run)\n"
    assert await command(cluster, "pause", "cm/one", "--dry-run=server") == 0
    assert capsys.readouterr().out == "configmap/one paused (server dry run)\n"
    assert await annotation(cluster, "one") is None


async def test_one_missing_object_does_not_stop_the_others(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await create(cluster, "one")
    assert await command(cluster, "pause", "cm/missing", "cm/one") == 1
    printed = capsys.readouterr()
    assert printed.out == "configmap/one paused\n"
    assert 'configmaps "missing" not found' in printed.err
    assert len(printed.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("pause", "nonsense/one"), 1, 'the server doesn\'t have a resource type "nonsense"'),
        (("pause", "cm"), 2, "specify objects as KIND NAME... or KIND/NAME..., or use --selector or --all"),
        (("resume", "cm/one", "--all"), 2, "names cannot be combined with --selector, --all"),
        (("reconcile", "cm", "-l", "a in"), 2, "--selector 'a in': unable to parse requirement"),
        (("reconcile",), 2, "Missing argument"),
    ],
)
async def test_mistakes_are_one_line(
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    assert await command(cluster, *arguments) == code
    printed = capsys.readouterr()
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
