"""A user's mistake is one line and no traceback, also where it is found inside running tasks."""

import asyncio
import socket
import sys
from pathlib import Path

import pytest
import yaml

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.cli.app import main
from kubewright.testing import Cluster

SHELL = '''
import kubewright as kw

class Spec(kw.Model):
    size: int = 0

class Status(kw.Model):
    ready: int = 0

class Shell(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A shell."""

@kw.controller(Shell)
async def shells(shell: Shell, ctx: kw.Context) -> None:
    pass
'''


KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
users: [{name: a, user: {token: x}}]
"""


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1
    return lines[0]


@pytest.fixture
def shell(tmp_path: Path) -> str:
    path = tmp_path / "a_shell_with_mistakes.py"
    path.write_text(SHELL)
    return str(path)


def test_a_kubeconfig_that_is_not_yaml_is_one_error_line(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad"
    path.write_text("garbage: [")
    assert "is not valid YAML" in printed(capsys, "run", shell, "--kubeconfig", str(path))


def test_a_missing_context_is_one_error_line(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    line = printed(capsys, "run", shell, "--kubeconfig", str(path), "--context", "other")
    assert "'other' is not in" in line


def test_an_unreachable_server_is_one_error_line(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config"
    path.write_text(f"{KUBECONFIG}current-context: a\n")
    for command in (["install", shell], ["get", "pods"], ["undeploy", shell]):
        line = printed(capsys, *command, "--kubeconfig", str(path))
        assert "https://127.0.0.1:1 cannot be reached: Connection refused" in line
        assert line.endswith("(run `kubewright doctor` to check the cluster and the kubeconfig)")


def test_an_unwritable_kubeconfig_is_one_error_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert "cannot write the kubeconfig" in printed(
        capsys, "dev", "--kubeconfig", str(tmp_path / "file" / "x")
    )


def test_an_unwritable_recording_file_is_an_error_before_the_run(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config"
    path.write_text(f"{KUBECONFIG}current-context: a\n")
    record = str(tmp_path / "no" / "where")
    line = printed(capsys, "run", shell, "--kubeconfig", str(path), "--record-access", record)
    assert line.endswith(
        f"cannot write {record}: No such file or directory; choose another with --record-access"
    )


def test_a_port_in_use_is_one_error_line(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        no_probes = ("--health-probe-bind-address", "0")
        line = printed(capsys, "run", shell, "--dev", *no_probes, "--metrics-bind-address", address)
    assert f"cannot listen on {address}" in line
    assert line.endswith("choose another with --metrics-bind-address, 0 is off")


def test_two_controllers_with_one_name_are_one_error_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "twins.py"
    twin = SHELL.replace("class Shell", "class Bash").replace("shells", "bashes").replace(": Shell", ": Bash")
    twin = twin.replace("@kw.controller(Shell)", '@kw.controller(Bash, name="shell")')
    path.write_text(f"{SHELL}\n{twin}")
    line = printed(capsys, "manifests", str(path))
    assert "two controllers are named 'shell' (Shell and Bash)" in line


def test_a_syntax_error_in_the_target_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "half_written.py"
    path.write_text("import kubewright as kw\n\nclass Spec(kw.Model:\n")
    for command in ("run", "install", "plan", "deploy"):
        arguments = {"plan": ["-f", "x"], "deploy": ["--image", "x"]}.get(command, [])
        line = printed(capsys, command, str(path), *arguments)
        assert f"{path}:3: SyntaxError: " in line


@pytest.fixture
async def unprivileged(cluster: Cluster, tmp_path: Path) -> str:
    """Return the kubeconfig of a user without permissions."""
    await cluster.create(core_v1.ServiceAccount(Meta("unprivileged")))
    token = await cluster.client.token_request("unprivileged", cluster.namespace)
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document["users"] = [{**document["users"][0], "user": {"token": token.token}}]
    kubeconfig = tmp_path / "unprivileged"
    kubeconfig.write_text(yaml.safe_dump(document))
    return str(kubeconfig)


async def test_forbidden_requests_are_one_error_line(
    shell: str, unprivileged: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (
        ("install", shell),
        ("uninstall", shell),
        ("deploy", shell, "--image", "x"),
        ("get", "pods"),
        ("delete", "pod", "x"),
    ):
        line = await asyncio.to_thread(printed, capsys, *command, "--kubeconfig", unprivileged)
        assert "missing rule: {apiGroups: " in line, command


async def test_a_dry_run_names_the_missing_rule_of_every_object(
    shell: str, unprivileged: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["deploy", shell, "--image", "x", "--dry-run=server", "--kubeconfig", unprivileged]
    with pytest.raises(SystemExit) as ended:
        await asyncio.to_thread(main, command)
    assert ended.value.code == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Error: ")]
    assert len(lines) > 5
    assert [line for line in lines if "missing rule: {apiGroups: " not in line] == []


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["rn"], "unknown command 'rn': did you mean 'run'? (kubewright --help)"),
        (["nosuch"], "unknown command 'nosuch' (kubewright --help)"),
        (
            ["run"],
            "Missing argument 'TARGET': it may be left out only inside a project (kubewright run --help)",
        ),
        (["deploy", "x.py"], "Missing option '--image' (kubewright deploy --help)"),
        (
            ["dev", "--port", "x"],
            "Invalid value for '--port': 'x' is not a valid integer range (kubewright dev --help)",
        ),
        (["dev", "--nodes", "0"], "Invalid value for '--nodes': 0 is not in the range 1<=x<=250"),
        (
            ["dev", "--simulate", "migrate"],
            "--simulate migrate: expected NAME=SCRIPT (kubewright dev --help)",
        ),
        (
            ["dev", "--simulate", "migrate=./run"],
            "--simulate: simulated program 'migrate': './run' is not understood; expected a script of `sleep SECONDS`",
        ),
        (
            ["dev", "--authorization-mode", "RBAC,Magic"],
            "--authorization-mode Magic: expected RBAC, AlwaysAllow, AlwaysDeny (kubewright dev --help)",
        ),
        (
            ["dev", "--kubernetes", "1.29"],
            "--kubernetes: unknown Kubernetes version '1.29': known versions are 1.31, 1.32, 1.33, 1.34, 1.35, 1.36, 1.37",
        ),
        (
            ["envtest", "path", "--kubernetes", "1.99"],
            "--kubernetes: unknown Kubernetes version '1.99': known",
        ),
        (["dev", "--admission-plugins", "-Magic"], "--admission-plugins -Magic: unknown plugin; there are "),
        (
            ["dev", "--feature-gates", "Magic=true"],
            "--feature-gates Magic=true: the feature gate Magic cannot be switched: expected ShardedListAndWatch or WatchList",
        ),
        (
            ["dev", "--feature-gates", "WatchList=maybe"],
            "--feature-gates WatchList=maybe: expected NAME=true or NAME=false",
        ),
        (
            ["dev", "--kubernetes", "1.33", "--feature-gates", "ShardedListAndWatch=true"],
            "--feature-gates ShardedListAndWatch=true: unrecognized feature gate: ShardedListAndWatch: it exists since Kubernetes 1.36",
        ),
        (["dev", "--no-controllers", "--pods=process"], "--pods=process requires controllers"),
        (["get", "pods", "-o", "xml"], "Invalid value for '-o' / '--output': 'xml' is not one of 'table'"),
        (
            ["init", "My Shop"],
            "'My Shop' is not a valid project name: use at most 63 lowercase letters, digits",
        ),
        (
            ["init", "shop", "--domain", "nodot"],
            "'nodot' is not a valid domain: it has no dot, expected for example example.com",
        ),
        (
            ["manifests", "x.py", "--only", "crds,roles"],
            "Invalid value for '--only': 'roles' is not a part: choose from",
        ),
        *(
            ([*command, "-n", "shop,Bad_Name"], "Invalid value for '-n' / '--namespace': 'Bad_Name': ")
            for command in (
                ["deploy", "x.py", "--image", "x"],
                ["doctor"],
                ["manifests", "x.py"],
                ["plan", "x.py"],
                ["run", "x.py"],
            )
        ),
        (["rbac"], ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_line_that_names_the_help(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    if line:
        assert printed.startswith(f"Error: {line}")
        assert printed.count("\n") == 1
    else:
        assert printed.startswith("Usage: ")


def test_a_cluster_port_in_use_is_one_error_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = printed(capsys, "dev", "--port", str(port), "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert line == f"Error: cannot listen on port {port}: address already in use; choose another with --port"


def test_a_token_file_of_the_dev_cluster_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, kubeconfig = tmp_path / "tokens.csv", str(tmp_path / "kubeconfig")
    line = printed(capsys, "dev", "--token-file", str(file), "--kubeconfig", kubeconfig)
    assert line == f"Error: cannot read {file}: no such file or directory"
    file.write_text("secret,ann\n")
    line = printed(capsys, "dev", "--token-file", str(file), "--kubeconfig", kubeconfig)
    assert line == f"Error: {file}:1: expected token, user name, user uid, found 2 columns"


async def test_a_kind_that_is_not_installed_is_one_error_line(shell: str, cluster: Cluster) -> None:
    source = await asyncio.to_thread(Path(shell).read_text)
    await asyncio.to_thread(
        Path(shell).write_text, source.replace("example.com", f"{cluster.namespace}.example.com")
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from kubewright.cli import main; main()", "run", shell),
        *("--metrics-bind-address=0", "--health-probe-bind-address=0", f"--kubeconfig={cluster.kubeconfig}"),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    line = (await process.stderr.readline()).decode()
    process.terminate()
    _, rest = await process.communicate()
    assert process.returncode == 0, rest
    assert f"Waiting for the CRD of shells.{cluster.namespace}.example.com" in line
    assert "`kubewright install`" in line
    assert "`kubewright run --install`" in line


@pytest.mark.parametrize("arguments", [["dev"], ["run", "x.py"]])
def test_a_port_for_a_page_that_is_not_shown_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--ui-port", "8123"])
    assert ended.value.code == 2
    assert "--ui-port requires --ui" in capsys.readouterr().err


DECLARED = '''
import kubewright as kw
from kubewright.disruption import Budget, Window
from kubewright.namespaces import NamespaceSelector
from kubewright.rates import Rate

class Shell(kw.Object, group="example.com", version="v1"):
    """A shell."""

async def reconcile(shell: Shell, ctx: kw.Context) -> None:
    pass

def declared(**more): return kw.Controller(Shell, reconcile, **more)

operator = {operator}
'''


@pytest.mark.parametrize(
    ("operator", "problem"),
    [
        (
            'kw.Operator(declared(options=kw.Options(window=Window("Sat 25:00-08:00", zone="UTC"))))',
            "25:00 is not a time of the day: use 00:00 to 24:00",
        ),
        (
            'kw.Operator(declared(options=kw.Options(rate=Rate(at_most=0, every="1s"))))',
            "Rate(at_most=0, every='1s'): at_most must be a whole number of at least 1",
        ),
        (
            'kw.Operator(declared(options=kw.Options(rate=Rate(at_most=1, every="0s"))))',
            'every must be a positive time, such as "1s"',
        ),
        (
            'kw.Operator(declared(options=kw.Options(budget=Budget(at_most=0, every="10m"))))',
            "at_most must be a whole number of at least 1",
        ),
        ('kw.Operator(declared(selector=kw.Selector(labels="a in (")))', "Selector(labels='a in ('): "),
        ('kw.Operator(declared(), namespaces=NamespaceSelector("=a"))', "NamespaceSelector('=a'): "),
        (
            'kw.Operator(declared(), namespaces=["team-a"])',
            "NamespaceSelector(labels); choose namespaces by name with `kubewright run -n`",
        ),
        (
            'kw.Operator(declared(), shards=4, namespaces=NamespaceSelector("team=a"))',
            "objects can only be divided by namespace",
        ),
    ],
)
def test_an_invalid_declaration_is_one_error_line_with_its_place(
    operator: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "declared_shells.py"
    path.write_text(DECLARED.format(operator=operator))
    line = printed(capsys, "run", str(path))
    assert line.startswith(f"Error: {path}:15: ")
    assert problem in line


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--selector", "track in ("], "'track in (' is not a label selector such as team=a: "),
        (["--namespace-selector", "=a"], "'=a' is not a label selector such as team=a: "),
        (
            ["-n", "a", "--namespace-selector", "team=a"],
            "--namespace cannot be combined with --namespace-selector",
        ),
    ],
)
def test_an_invalid_selector_is_a_usage_error(
    shell: str, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", shell, *arguments])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line
