"""Process Pods, driven by kubectl."""

import asyncio
import contextlib
import ipaddress
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.testing import Cluster, eventually

from .shells import is_running, shell

Kubectl = Callable[..., Awaitable[str]]

# The terminal size arrives after the start, in its own message.
SHOW_SIZE = 'tty; while [ "$(stty size)" = "0 0" ]; do sleep 0.05; done; stty size; exit 4'
TRAP = "trap 'echo goodbye; exit 3' TERM; echo ready; while :; do sleep 0.05; done"


def has_begun(pod: core_v1.Pod) -> bool:
    return any(item.container_id for item in pod.status.container_statuses)


def state_of(pod: core_v1.Pod) -> core_v1.ContainerState:
    found = pod.status.container_statuses
    return found[0].state if found else core_v1.ContainerState()


async def printed(cluster: Cluster, name: str, text: str) -> str:
    """Wait until a Pod has printed a text; return the log."""
    await cluster.eventually(core_v1.Pod, name, has_begun)
    found = ""
    pieces = cluster.client.pod_logs(name, cluster.namespace, container="main", follow=True)
    async with asyncio.timeout(60), contextlib.aclosing(pieces):
        async for piece in pieces:
            found += piece.decode()
            if text in found:
                break
    return found


async def run(cluster: Cluster, kubectl_path: Path, *arguments: str, given: str = "") -> tuple[int, str]:
    """Run kubectl and return its exit code and output."""
    process = await asyncio.create_subprocess_exec(
        kubectl_path,
        f"--kubeconfig={cluster.kubeconfig}",
        f"--namespace={cluster.namespace}",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate(given.encode())
    return process.returncode or 0, output.decode()


async def test_a_pod_sees_its_environment_and_its_files(cluster: Cluster, kubectl: Kubectl) -> None:
    await cluster.create(core_v1.ConfigMap(Meta("conf"), data={"color": "blue", "list": "a\nb\n"}))
    await cluster.create(core_v1.Secret(Meta("keys"), data={"pin": b"1234"}))
    references = [
        core_v1.EnvVar(name="WHERE", value_from=_field("status.podIP")),
        core_v1.EnvVar(name="LABEL", value_from=_field("metadata.labels['team']")),
        core_v1.EnvVar(
            name="COLOR",
            value_from=core_v1.EnvVarSource(
                config_map_key_ref=core_v1.ConfigMapKeySelector(name="conf", key="color")
            ),
        ),
        core_v1.EnvVar(
            name="PIN",
            value_from=core_v1.EnvVarSource(secret_key_ref=core_v1.SecretKeySelector(name="keys", key="pin")),
        ),
        core_v1.EnvVar(name="SUM", value="$(COLOR)-$(PIN)"),
    ]
    script = (
        "echo $WHERE $LABEL $SUM $FROM_color; cat $CONTAINER_SANDBOX_MOUNT_POINT/etc/conf/list; sleep 1000"
    )
    pod = shell("seeing", script, env=references)
    pod.metadata.labels = {"team": "red"}
    container = pod.spec.containers[0]
    container.env_from = [
        core_v1.EnvFromSource(prefix="FROM_", config_map_ref=core_v1.ConfigMapEnvSource(name="conf"))
    ]
    container.volume_mounts = [core_v1.VolumeMount(name="conf", mount_path="/etc/conf")]
    pod.spec.volumes = [core_v1.Volume(name="conf", config_map=core_v1.ConfigMapVolumeSource(name="conf"))]
    await cluster.create(pod)
    found = await cluster.eventually(core_v1.Pod, "seeing", is_running)
    assert ipaddress.ip_address(found.status.pod_ip).is_loopback
    text = await printed(cluster, "seeing", "b\n")
    assert text == f"{found.status.pod_ip} red blue-1234 blue\na\nb\n"


def _field(path: str) -> core_v1.EnvVarSource:
    return core_v1.EnvVarSource(field_ref=core_v1.ObjectFieldSelector(field_path=path))


async def test_a_pod_waits_for_what_it_refers_to(cluster: Cluster) -> None:
    needed = core_v1.EnvFromSource(config_map_ref=core_v1.ConfigMapEnvSource(name="later"))
    await cluster.create(shell("waiting", "sleep 1000", env_from=[needed]))

    def waits(pod: core_v1.Pod) -> bool:
        waiting = state_of(pod).waiting
        return waiting is not None and waiting.reason == "CreateContainerConfigError"

    found = await cluster.eventually(core_v1.Pod, "waiting", waits)
    waiting = state_of(found).waiting
    assert waiting is not None
    assert waiting.message == 'configmap "later" not found'
    assert found.status.phase == "Pending"


async def test_a_pod_that_cannot_start_does_not_affect_others(cluster: Cluster) -> None:
    await cluster.create(shell("nowhere", "true", working_dir="/no\0where"))
    await cluster.eventually(
        core_v1.Pod,
        "nowhere",
        lambda pod: (waits := state_of(pod).waiting) is not None and "embedded null" in (waits.message or ""),
    )


async def test_a_pod_acts_as_its_service_account(
    cluster: Cluster, kubectl: Kubectl, kubectl_path: Path
) -> None:
    await cluster.create(core_v1.ServiceAccount(Meta("worker")))
    script = f"{kubectl_path} auth whoami -o jsonpath='{{.status.userInfo.username}}'; echo; sleep 1000"
    await cluster.create(shell("worker", script, service_account_name="worker"))
    expected = f"system:serviceaccount:{cluster.namespace}:worker\n"
    assert await printed(cluster, "worker", "\n") == expected


async def test_a_token_is_invalid_after_its_pod_is_deleted(cluster: Cluster, kubectl: Kubectl) -> None:
    where = "$CONTAINER_SANDBOX_MOUNT_POINT/var/run/secrets/kubernetes.io/serviceaccount/token"
    await cluster.create(shell("bearer", f"cat {where}; echo; exec sleep 1000"))
    token = (await printed(cluster, "bearer", "\n")).strip()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status = (await cluster.client.create(review))["status"]
    assert status["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["bearer"]
    await kubectl("delete", "pod", "bearer", "--grace-period=1")
    assert "authenticated" not in (await cluster.client.create(review))["status"]


async def test_logs_support_follow_tail_and_timestamps(
    cluster: Cluster, kubectl: Kubectl, kubectl_path: Path
) -> None:
    script = "echo one; echo two; echo three; " + TRAP
    await cluster.create(shell("talking", script))
    await printed(cluster, "talking", "ready")
    assert await kubectl("logs", "talking", "--tail=2") == "three\nready\n"
    assert await kubectl("logs", "talking", "--since=1h", "-c", "main") == "one\ntwo\nthree\nready\n"
    dated = await kubectl("logs", "talking", "--timestamps", "--tail=1")
    assert dated.endswith("Z ready\n")
    following = await asyncio.create_subprocess_exec(
        kubectl_path,
        f"--kubeconfig={cluster.kubeconfig}",
        f"--namespace={cluster.namespace}",
        *("logs", "talking", "--follow"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert following.stdout is not None
    seen = await following.stdout.readuntil(b"ready\n")
    await kubectl("delete", "pod", "talking")
    rest, _ = await following.communicate()
    assert seen + rest == b"one\ntwo\nthree\nready\ngoodbye\n"
    assert following.returncode == 0


async def test_exit_codes_reach_the_status_and_restarts_back_off(cluster: Cluster, kubectl: Kubectl) -> None:
    await cluster.create(shell("failing", "echo try; exit 7"))

    def backs_off(pod: core_v1.Pod) -> bool:
        waiting = state_of(pod).waiting
        return waiting is not None and waiting.reason == "CrashLoopBackOff"

    found = await cluster.eventually(core_v1.Pod, "failing", backs_off)
    status = found.status.container_statuses[0]
    assert status.restart_count == 1
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.exit_code == 7
    assert await kubectl("logs", "failing", "--previous") == "try\n"


async def test_pods_that_end_succeed_or_fail(cluster: Cluster) -> None:
    await cluster.create(shell("good", "exit 0", restart_policy="Never"))
    await cluster.create(
        shell(
            "bad",
            "echo why; exit 2",
            restart_policy="Never",
            termination_message_policy="FallbackToLogsOnError",
        )
    )
    await cluster.eventually(core_v1.Pod, "good", lambda pod: pod.status.phase == "Succeeded")
    bad = await cluster.eventually(core_v1.Pod, "bad", lambda pod: pod.status.phase == "Failed")
    end = state_of(bad).terminated
    assert end is not None
    assert (end.exit_code, end.reason, end.message) == (2, "Error", "why\n")


async def test_a_termination_message_is_reported(cluster: Cluster) -> None:
    script = "echo the disk is full > $CONTAINER_SANDBOX_MOUNT_POINT/tmp/why; exit 3"
    await cluster.create(shell("dying", script, restart_policy="Never", termination_message_path="/tmp/why"))
    dead = await cluster.eventually(core_v1.Pod, "dying", lambda pod: pod.status.phase == "Failed")
    end = state_of(dead).terminated
    assert end is not None
    assert (end.exit_code, end.message) == (3, "the disk is full\n")


async def test_init_containers_run_first_and_share_volumes(cluster: Cluster, kubectl: Kubectl) -> None:
    pod = shell("second", "cat $CONTAINER_SANDBOX_MOUNT_POINT/work/event; sleep 1000")
    mount = core_v1.VolumeMount(name="work", mount_path="/work")
    pod.spec.volumes = [core_v1.Volume(name="work", empty_dir=core_v1.EmptyDirVolumeSource())]
    pod.spec.containers[0].volume_mounts = [mount]
    first = "echo from the first > $CONTAINER_SANDBOX_MOUNT_POINT/work/event"
    pod.spec.init_containers = [
        core_v1.Container(name="first", image="i", command=["sh", "-c", first], volume_mounts=[mount])
    ]
    await cluster.create(pod)
    found = await cluster.eventually(core_v1.Pod, "second", is_running)
    assert found.status.init_container_statuses[0].ready
    end = found.status.init_container_statuses[0].state.terminated
    assert end is not None
    assert end.exit_code == 0
    assert await printed(cluster, "second", "first") == "from the first\n"


async def test_a_pod_that_ignores_sigterm_is_killed_after_the_grace_period(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    script = "trap '' TERM; sleep 1001 & echo $$$$ $!; wait; while :; do sleep 1; done"
    await cluster.create(shell("stubborn", script, termination_grace_period_seconds=1))
    processes = [int(word) for word in (await printed(cluster, "stubborn", "\n")).split()]
    assert all(is_alive(number) for number in processes)
    await kubectl("delete", "pod", "stubborn")
    assert not any(is_alive(number) for number in processes)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_process_that_left_its_group_ends_with_the_container(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    # The container tries to override its own mark.
    called = [core_v1.EnvVar(name="KUBEWRIGHT_CONTAINER", value="other")]
    script = "setsid sh -c 'echo $$$$; exec sleep 1002' & exec sleep 1000"
    await cluster.create(shell("leaver", script, env=called))
    number = int(await printed(cluster, "leaver", "\n"))
    assert is_alive(number)
    await kubectl("delete", "pod", "leaver", "--grace-period=1")
    assert not is_alive(number)


async def test_a_force_deleted_pod_leaves_no_process(cluster: Cluster, kubectl: Kubectl) -> None:
    await cluster.create(shell("forced", "trap '' TERM; echo $$$$; while :; do sleep 0.1; done"))
    number = int(await printed(cluster, "forced", "\n"))
    await kubectl("delete", "pod", "forced", "--force", "--grace-period=0")
    await eventually(lambda: not is_alive(number))


def is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{number}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


async def test_exec_runs_a_command_next_to_the_container(cluster: Cluster, kubectl_path: Path) -> None:
    await cluster.create(shell("host", "sleep 1000", env=[core_v1.EnvVar(name="WHO", value="me")]))
    await cluster.eventually(core_v1.Pod, "host", is_running)
    code, text = await run(cluster, kubectl_path, "exec", "host", "--", "sh", "-c", "echo $WHO; exit 5")
    assert (code, text) == (5, "me\ncommand terminated with exit code 5\n")
    large = "line\n" * 100_000
    code, text = await run(cluster, kubectl_path, "exec", "-i", "host", "--", "cat", given=large)
    assert (code, text) == (0, large)
    code, text = await run(cluster, kubectl_path, "exec", "host", "--", "no-such-program")
    assert code == 1
    assert 'exec: "no-such-program": executable file not found in $PATH' in text


async def test_a_shell_has_a_terminal_of_the_clients_size(cluster: Cluster, kubectl_path: Path) -> None:
    await cluster.create(shell("host", "sleep 1000"))
    await cluster.eventually(core_v1.Pod, "host", is_running)
    controller, terminal = os.openpty()
    try:
        os.set_blocking(controller, False)
        command = (
            f"stty rows 41 cols 101; {kubectl_path} --kubeconfig={cluster.kubeconfig} -n {cluster.namespace} "
        )
        command += f"exec -it host -- sh -c '{SHOW_SIZE}'; echo code $?"
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
        )
        text = await _read_terminal(process, controller)
    finally:
        os.close(controller)
        os.close(terminal)
    assert "/dev/" in text
    assert "41 101" in text
    assert "code 4" in text


async def _read_terminal(process: asyncio.subprocess.Process, controller: int) -> str:
    text = b""
    async with asyncio.timeout(60):
        await process.wait()
    while True:
        try:
            text += os.read(controller, 65536)
        except (BlockingIOError, OSError):
            return text.decode()


async def test_attach_connects_to_the_container(cluster: Cluster, kubectl_path: Path) -> None:
    await cluster.create(
        shell("listener", "read line; echo received $line; exit 0", stdin=True, stdin_once=True)
    )
    await cluster.eventually(core_v1.Pod, "listener", is_running)
    code, text = await run(cluster, kubectl_path, "attach", "-i", "listener", given="this\n")
    assert code == 0
    assert "received this" in text


async def test_probes_are_really_run(cluster: Cluster, kubectl: Kubectl, tmp_path: Path) -> None:
    sign = tmp_path / "ready"
    probe = core_v1.Probe(exec=core_v1.ExecAction(command=["test", "-e", str(sign)]), period_seconds=1)
    await cluster.create(shell("probed", "sleep 1000", readiness_probe=probe))
    young = await cluster.eventually(core_v1.Pod, "probed", lambda pod: pod.status.phase == "Running")
    assert not young.status.container_statuses[0].ready
    sign.touch()
    await cluster.eventually(core_v1.Pod, "probed", is_running)


async def test_a_server_is_probed_at_the_pods_address(cluster: Cluster) -> None:
    program = "import http.server, os; http.server.test(http.server.SimpleHTTPRequestHandler, port=18089, bind=os.environ['IP'])"
    pod = shell("web", "", env=[core_v1.EnvVar(name="IP", value_from=_field("status.podIP"))])
    container = pod.spec.containers[0]
    container.command = ["python3", "-c", program]
    container.ports = [core_v1.ContainerPort(name="http", container_port=18089)]
    container.readiness_probe = core_v1.Probe(
        http_get=core_v1.HTTPGetAction(path="/", port="http"), period_seconds=1
    )
    container.startup_probe = core_v1.Probe(
        tcp_socket=core_v1.TCPSocketAction(port=18089), period_seconds=1, failure_threshold=60
    )
    await cluster.create(pod)
    await cluster.eventually(core_v1.Pod, "web", is_running)


async def test_two_pods_listen_on_the_same_port(cluster: Cluster) -> None:
    program = "import socket, sys; host, port = sys.argv[1].split(':'); s = socket.create_server((host, int(port)))\nwhile True: s.accept()"
    listens = core_v1.Probe(tcp_socket=core_v1.TCPSocketAction(port=18088), period_seconds=1)
    for name in ("one", "two"):
        pod = shell(name, "", readiness_probe=listens)
        pod.spec.containers[0].command = ["python3", "-c", program, ":18088"]
        await cluster.create(pod)
    addresses = {
        (await cluster.eventually(core_v1.Pod, name, is_running)).status.pod_ip for name in ("one", "two")
    }
    assert len(addresses) == 2


async def test_a_container_that_fails_its_liveness_probe_is_restarted(cluster: Cluster) -> None:
    probe = core_v1.Probe(exec=core_v1.ExecAction(command=["false"]), period_seconds=1, failure_threshold=1)
    await cluster.create(shell("sick", "exec sleep 1000", liveness_probe=probe))
    found = await cluster.eventually(
        core_v1.Pod, "sick", lambda pod: any(item.restart_count for item in pod.status.container_statuses)
    )
    end = found.status.container_statuses[0].last_state.terminated
    assert end is not None
    assert end.exit_code == 128 + signal.SIGTERM


async def test_a_command_can_be_given_for_an_image(cluster: Cluster, kubectl: Kubectl) -> None:
    container = core_v1.Container(name="main", image="registry.example/stand-in:2", args=["my argument"])
    await cluster.create(core_v1.Pod(Meta("stand-in"), spec=core_v1.PodSpec(containers=[container])))
    assert await printed(cluster, "stand-in", "\n") == "standing in for my argument\n"


async def test_a_container_without_a_local_command_is_simulated_and_reported(
    cluster: Cluster, kubectl_path: Path
) -> None:
    container = core_v1.Container(name="main", image="nginx:1.25")
    await cluster.create(core_v1.Pod(Meta("nginx"), spec=core_v1.PodSpec(containers=[container])))
    await cluster.eventually(core_v1.Pod, "nginx", is_running)
    for arguments in (["logs", "nginx"], ["exec", "nginx", "--", "ls"]):
        code, text = await run(cluster, kubectl_path, *arguments)
        assert code == 1
        assert 'container "main" of pod "nginx" is simulated' in text


async def test_exec_needs_more_than_read_access(cluster: Cluster, kubectl_path: Path) -> None:
    await cluster.create(shell("guarded", "sleep 1000"))
    await cluster.eventually(core_v1.Pod, "guarded", is_running)
    await run(cluster, kubectl_path, "create", "role", "r", "--verb=get", "--resource=pods,pods/exec")
    await run(cluster, kubectl_path, "create", "rolebinding", "r", "--role=r", "--user=eve")
    code, text = await run(cluster, kubectl_path, "--as=eve", "exec", "guarded", "--", "true")
    assert code == 1
    assert 'User "eve" cannot create resource "pods/exec"' in text
