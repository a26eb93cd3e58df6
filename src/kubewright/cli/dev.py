"""`kubewright dev`: an embedded cluster in the foreground."""

import asyncio
import gc
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import TypedDict, get_args

import click

from kubewright.api import ConfigError
from kubewright.cli.kubeconfigs import write_kubeconfig
from kubewright.cli.logs import set_up
from kubewright.cli.loops import run_program, until_signalled
from kubewright.cli.options import FILE, kubernetes_option, page_port, ui_options
from kubewright.client import load_config
from kubewright.devcluster import MAX_NODES, DevCluster, extended_programs
from kubewright.devserver import (
    ADMISSION_PLUGINS,
    AuthorizationMode,
    FeatureGateError,
    KubernetesRelease,
    Server,
    ServerCredentials,
    TokenFileError,
    parse_feature_gates,
)
from kubewright.envtest.settings import image_commands
from kubewright.processpods import ProcessPods

DEFAULT_KUBECONFIG = Path("~/.kube/kubewright-dev")
# Loaded only with --ui.
PAGE = "kubewright.cli.ui"
PROCESSES = "Warning: Pods run as processes on this machine, as your user: anyone with the kubeconfig can run commands as you"


@click.command()
@click.option(
    "--kubeconfig",
    type=FILE,
    default=None,
    help=f"File to write the kubeconfig to.  [default: {DEFAULT_KUBECONFIG}]",
)
@click.option(
    "--data", type=FILE, default=None, help="File in which to persist the cluster's state across restarts."
)
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the API server; 0 selects a free port.",
)
@click.option(
    "--pods",
    type=click.Choice(["simulated", "process"]),
    default="simulated",
    show_default=True,
    help="simulated: simulate containers. process: run them as processes on this machine, as your user.",
)
@click.option(
    "--run",
    "images",
    metavar="IMAGE=COMMAND",
    multiple=True,
    help="With --pods=process, the command to run for an image; repeatable.",
)
@click.option(
    "--simulate",
    "programs",
    metavar="NAME=SCRIPT",
    multiple=True,
    help="Script that a simulated container runs for a program or image, such as migrate='sleep 3; exit 1'; repeatable.",
)
@click.option(
    "--nodes",
    metavar="NUMBER",
    type=click.IntRange(1, MAX_NODES),
    default=1,
    show_default=True,
    help="Number of nodes.",
)
@kubernetes_option
@click.option("--no-controllers", is_flag=True, help="Run only the API server, as envtest does.")
@click.option(
    "--token-file",
    type=FILE,
    default=None,
    help='File with static bearer tokens, one per line: token,user,uid,"group1,group2".',
)
@click.option(
    "--authorization-mode",
    "modes",
    metavar="MODE[,MODE...]",
    default="RBAC",
    show_default=True,
    help="Authorization modes of the API server: RBAC, AlwaysAllow or AlwaysDeny.",
)
@click.option(
    "--admission-plugins",
    "plugins",
    metavar="[-]NAME[,...]",
    default="",
    help="Admission plugins to enable, or with a minus to disable, such as AlwaysPullImages,-PodSecurity.",
)
@click.option(
    "--feature-gates",
    "gates",
    metavar="NAME=true|false[,...]",
    default="",
    help="Feature gates of the API server to enable or disable, such as ShardedListAndWatch=true.",
)
@ui_options
@click.option("-v", "--verbose", is_flag=True, help="Log the cluster's own controllers.")
def command(
    kubeconfig: Path | None,
    data: Path | None,
    port: int,
    pods: str,
    images: tuple[str, ...],
    programs: tuple[str, ...],
    nodes: int,
    kubernetes: str,
    no_controllers: bool,
    token_file: Path | None,
    modes: str,
    plugins: str,
    gates: str,
    ui: bool,
    ui_port: int,
    verbose: bool,
) -> None:
    """Run an embedded cluster: API server, workload controllers, one or more nodes.

    The cluster needs only Python, listens on loopback, and stops on Ctrl-C or SIGTERM.
    """
    if images and pods != "process":
        raise click.UsageError("--run requires --pods=process")
    if no_controllers and pods == "process":
        raise click.UsageError("--pods=process requires controllers")
    live_port = page_port(ui, ui_port)
    commands = _commands(images) if pods == "process" else None
    table = _programs(programs)
    options = _server_options(kubernetes, token_file, modes, plugins, gates)
    # The cluster's own controllers log only with --verbose.
    set_up("text", level=logging.INFO if verbose else logging.ERROR)
    path = kubeconfig or DEFAULT_KUBECONFIG.expanduser()

    def serving() -> DevCluster | Server:
        if no_controllers:
            return Server(data=data, port=port, **options)
        runner = ProcessPods(commands) if commands is not None else None
        return DevCluster(data=data, port=port, pod_runner=runner, nodes=nodes, programs=table, **options)

    if commands is not None:
        click.echo(PROCESSES)
    run_program(lambda: until_signalled(_serve(serving, path, port, live_port)))


class ServerOptions(TypedDict):
    """What the API server is started with, alone or with controllers."""

    kubernetes: str
    credentials: ServerCredentials
    authorization_modes: Sequence[AuthorizationMode]
    enable_admission_plugins: Sequence[str]
    disable_admission_plugins: Sequence[str]
    feature_gates: dict[str, bool]


def _server_options(
    kubernetes: str, token_file: Path | None, modes: str, plugins: str, gates: str
) -> ServerOptions:
    known: tuple[AuthorizationMode, ...] = get_args(AuthorizationMode)
    wanted = [name.strip() for name in modes.split(",")]
    if unknown := [name for name in wanted if name not in known]:
        raise click.UsageError(f"--authorization-mode {unknown[0]}: expected {', '.join(known)}")
    names = [name.strip() for name in plugins.split(",") if name.strip()]
    if unknown := [name for name in names if name.removeprefix("-") not in ADMISSION_PLUGINS]:
        raise click.UsageError(
            f"--admission-plugins {unknown[0]}: unknown plugin; there are {', '.join(ADMISSION_PLUGINS)}"
        )
    return {
        "kubernetes": kubernetes,
        "credentials": ServerCredentials(token_file=token_file),
        "authorization_modes": [mode for mode in known if mode in wanted],
        "enable_admission_plugins": [name for name in names if not name.startswith("-")],
        "disable_admission_plugins": [name[1:] for name in names if name.startswith("-")],
        "feature_gates": _feature_gates(gates, kubernetes),
    }


def _feature_gates(text: str, kubernetes: str) -> dict[str, bool]:
    try:
        return parse_feature_gates(text, KubernetesRelease.find(kubernetes))
    except FeatureGateError as error:
        raise click.UsageError(f"--feature-gates {text}: {error}") from None


def _commands(images: tuple[str, ...]) -> dict[str, list[str]]:
    try:
        return image_commands(images)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _programs(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, script = text.partition("=")
        if not equals or not name.strip() or not script.strip():
            raise click.UsageError(f"--simulate {text}: expected NAME=SCRIPT")
        found[name] = script
    try:
        extended_programs(found)
    except ValueError as error:
        raise click.UsageError(f"--simulate: {error}") from None
    return found


async def _serve(
    serving: Callable[[], DevCluster | Server],
    path: Path,
    port: int,
    page_port: int | None,
) -> None:
    async with AsyncExitStack() as stack:
        try:
            cluster = await stack.enter_async_context(serving())
        except OSError as error:
            why = os.strerror(error.errno).lower() if error.errno else str(error)
            if error.filename is not None:
                raise ConfigError(f"cannot read {error.filename}: {why}") from None
            raise ConfigError(f"cannot listen on port {port}: {why}; choose another with --port") from None
        except TokenFileError as error:
            raise ConfigError(str(error)) from None
        await asyncio.to_thread(write_kubeconfig, path, cluster.kubeconfig())
        # Objects that exist now live as long as the process: exempt them from garbage collection.
        gc.freeze()
        link = None
        if page_port is not None:
            page = await asyncio.to_thread(import_module, PAGE)
            config = await asyncio.to_thread(load_config, path)
            link = await stack.enter_async_context(
                page.live_page(config, title="dev cluster", port=page_port)
            )
        click.echo(f"kubewright dev is ready at {cluster.url}: export KUBECONFIG={path}")
        if link is not None:
            click.echo(f"live page: {link}")
        await asyncio.get_running_loop().create_future()
