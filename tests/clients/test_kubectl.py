"""kubectl prints on the embedded cluster what it prints on a real one, command for command."""

import asyncio

import pytest
from clients_kubectl import STORIES, Kubectl, Recording, story


@pytest.mark.usefixtures("project_release")
@pytest.mark.parametrize("name", STORIES)
async def test_kubectl_prints_the_same_as_on_a_real_cluster(name: str, kubectl: Kubectl) -> None:
    steps, recorded = story(name), Recording(name).read()
    assert [step.command for step in steps] == [kept["command"] for kept in recorded], (
        "record the story again"
    )
    different: list[str] = []
    for step, kept in zip(steps, recorded, strict=True):
        wanted = "\n".join(kept["text"])
        printed = await step.play(kubectl, None if step.differs else wanted)
        same = printed.text == wanted or step.differs
        if printed.status != kept["status"] or not same:
            different.append(
                f"$ kubectl {step.command}\n--- real (exit {kept['status']})\n{wanted}\n"
                f"--- here (exit {printed.status})\n{printed.text}"
            )
    assert not different, f"{len(different)} of {len(steps)} differ\n" + "\n\n".join(different)


async def test_get_watch_prints_changes(kubectl: Kubectl) -> None:
    watching = await asyncio.create_subprocess_exec(
        *(kubectl.program, "get", "configmaps", "--watch", "--output=name"),
        stdout=asyncio.subprocess.PIPE,
        env=kubectl.environment(),
    )
    assert watching.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert await watching.stdout.readline() == b"configmap/kube-root-ca.crt\n"
            await kubectl("create", "configmap", "late")
            assert await watching.stdout.readline() == b"configmap/late\n"
            await kubectl("label", "configmap", "late", "a=b")
            assert await watching.stdout.readline() == b"configmap/late\n"
    finally:
        watching.terminate()
        await watching.wait()
