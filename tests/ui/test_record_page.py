"""The live page of a record file: whole, cut, of another version, and larger than what is kept."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from page_client import browser

import kubewright as kw
from kubewright.api import KubewrightError
from kubewright.api.builtin import core_v1
from kubewright.cli.app import main
from kubewright.journal.recording import MAX_LINE
from kubewright.manager import ManagerOptions
from kubewright.testing import Cluster, eventually
from kubewright.ui import PageOptions, record_page

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def moment(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def start(**fields: Any) -> dict[str, Any]:
    return {"type": "start", "format": 1, "operator": "shop", "at": moment(0), **fields}


def version(name: str, number: int, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(number)}
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}
    return {"type": "object", "uid": f"uid-{name}", "resourceVersion": str(number), "object": document}


def reconcile(identity: str, name: str, seconds: float, **fields: Any) -> dict[str, Any]:
    record = {
        "id": identity,
        "number": int(seconds),
        "controller": "shops",
        "kind": "ConfigMap",
        "resource": "configmaps",
        "namespace": "default",
        "name": name,
        "uid": f"uid-{name}",
        "startedAt": moment(seconds),
        "duration": 0.1,
        "outcome": "success",
        **fields,
    }
    return {"type": "reconcile", "reconcile": record}


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


async def test_a_record_is_a_history_to_go_through(tmp_path: Path) -> None:
    path = write(
        tmp_path / "run.jsonl",
        start(),
        version("a", 5, data={"n": "1"}),
        reconcile("r1", "a", 10),
        version("a", 7, data={"n": "2"}),
        version("b", 8),
        reconcile(
            "r2",
            "a",
            20,
            writes=[
                {
                    "at": moment(21),
                    "verb": "update",
                    "resource": "configmaps",
                    "name": "a",
                    "resourceVersion": "7",
                }
            ],
        ),
        reconcile("r3", "b", 30, uid="", causes=[{"kind": "ConfigMap", "name": "b", "type": "delete"}]),
    )
    async with record_page(path) as link, browser(link) as page, page.following() as view:
        await eventually(lambda: len(view.reconciles) == 3 and not view.problems)
        assert view.hello["live"] is False
        assert view.hello["writable"] is False
        assert view.hello["source"]["type"] == "record"
        assert set(view.objects) == {"uid-a"}
        assert {each["operator"] for each in view.reconciles.values()} == {"shop"}

        async def shown(seconds: float) -> dict[str, str]:
            found = await page.get(f"/api/snapshot?at={quote(moment(seconds))}")
            return {each["name"]: each["resourceVersion"] for each in found["objects"]}

        assert await shown(5) == {}
        assert await shown(15) == {"a": "5"}
        assert await shown(20.5) == {"a": "5", "b": "8"}
        assert await shown(25) == {"a": "7", "b": "8"}
        assert await shown(30) == {"a": "7"}
        then = await page.get(f"/api/object?uid=uid-a&at={quote(moment(15))}")
        assert then["object"]["data"] == {"n": "1"}
        assert [each["id"] for each in then["reconciles"]] == ["r1"]
        assert (await page.get("/api/reconcile?operator=shop&id=r2"))["reconcile"]["id"] == "r2"
        assert "read-only" in await page.act(403, action="delete", uid="uid-a")


async def test_an_earlier_version_is_not_taken_for_the_latest_one(tmp_path: Path) -> None:
    path = write(tmp_path / "r", start(), version("a", 10), version("a", 9), reconcile("r1", "a", 1))
    async with record_page(path) as link, browser(link) as page, page.following() as view:
        await eventually(lambda: not view.problems and view.objects)
        assert view.objects["uid-a"]["resourceVersion"] == "10"


async def test_a_cut_file_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    path = write(tmp_path / "r", start(), version("a", 1), reconcile("r1", "a", 1))
    with path.open("a") as file:
        file.write('{"type":"dropped","reconciles":3,"reason":"slow"}\nnot json\n{"type":"reconcile","recon')
    async with record_page(path) as link, browser(link) as page, page.following() as view:
        await eventually(lambda: len(view.problems) == 2)
        assert view.problems[0] == "2 lines of r are truncated or damaged and not shown"
        assert view.problems[1] == "3 reconciles are missing in r: the recorder dropped them"
        assert list(view.reconciles) == [("shop", "r1")]


async def test_a_file_without_reconciles_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "r", start())
    async with record_page(path) as link, browser(link) as page, page.following() as view:
        await eventually(lambda: view.problems == ["r has no reconciles"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("garbage\n", "is not a record of `kubewright run --record`"),
        (json.dumps(start(format=99)) + "\n", "has format 99, and this kubewright reads format 1"),
        (json.dumps(reconcile("r", "a", 1)) + "\n", "does not begin with the start of a record"),
    ],
)
async def test_a_file_that_is_not_a_record_is_an_error_at_the_start(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "r"
    path.write_text(content)
    with pytest.raises(KubewrightError, match=message):
        async with record_page(path):
            pass


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["ui", "--record", str(tmp_path / "missing")])
    assert ended.value.code == 1
    assert (
        capsys.readouterr().err == f"Error: cannot read {tmp_path / 'missing'}: No such file or directory\n"
    )


async def test_a_line_without_end_is_not_held_in_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "r", start())
    with path.open("ab") as file:
        file.truncate(path.stat().st_size + 3 * MAX_LINE)  # a sparse file of zeros
        file.seek(0, 2)
        file.write(b"\n" + json.dumps(reconcile("r1", "a", 1)).encode() + b"\n")
    async with record_page(path) as link, browser(link) as page, page.following() as view:
        await eventually(lambda: len(view.reconciles) == 1 and len(view.problems) == 1)
        assert view.problems == ["1 line of r is truncated or damaged and not shown"]


async def test_a_record_larger_than_the_history_keeps_the_latest_part(tmp_path: Path) -> None:
    path = tmp_path / "r"
    with path.open("w") as file:
        file.write(json.dumps(start()) + "\n")
        for number in range(1, 2001):
            content = {"text": "".join(chr(33 + (number * 31 + place * place) % 90) for place in range(2000))}
            file.write(json.dumps(version("a", number, data=content)) + "\n")
            file.write(json.dumps(reconcile(f"r{number}", "a", number)) + "\n")
    options = PageOptions(history=1024 * 1024)
    async with record_page(path, options) as link, browser(link) as page, page.following() as view:
        await eventually(lambda: view.objects and view.objects["uid-a"]["resourceVersion"] == "2000")
        versions = (await page.get("/api/object?uid=uid-a"))["versions"]
        assert 10 < len(versions) < 1500
        first = versions[0]
        assert (await page.get(f"/api/snapshot?at={quote(first['at'])}"))["objects"]
        message = (await page.get(f"/api/snapshot?at={quote(moment(1))}", 404))["message"]
        assert "the history begins at" in message


class CupSpec(kw.Model):
    size: int = 1


class CupStatus(kw.Model):
    full: bool = False


class Cup(kw.Resource[CupSpec, CupStatus], group="record.kubewright.dev", version="v1"):
    """A cup."""


async def fill(cup: Cup, ctx: kw.Context) -> None:
    await ctx.apply(core_v1.ConfigMap(kw.Meta(cup.metadata.name), data={"size": str(cup.spec.size)}))
    await ctx.patch_status(cup, CupStatus(full=True))


async def test_the_record_of_a_run_is_shown(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    operator = kw.Operator(kw.Controller(Cup, fill, owns=[core_v1.ConfigMap], name="cups"), name="cups")
    options = ManagerOptions(metrics_bind_address="0", health_probe_bind_address="0", record=path)
    async with cluster.running(operator, options=options):
        await cluster.create(Cup(kw.Meta("c")))
        await cluster.eventually(Cup, "c", lambda cup: cup.status.full)
    async with record_page(path) as link, browser(link) as page, page.following() as view:
        cup = await view.has("Cup", "c", lambda it: not view.problems)
        child = await view.has("ConfigMap", "c")
        assert child["owners"][0]["uid"] == cup["uid"]
        found = await page.get(f"/api/object?uid={cup['uid']}")
        assert found["object"]["status"] == {"full": True}
        assert len(found["versions"]) > 1
