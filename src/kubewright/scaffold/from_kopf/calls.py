"""What the calls of a function do, as far as its syntax tree shows: block, write to the cluster, or have effects.

A value is followed through assignments to the library it comes from. What is not known counts as an effect, so that a
handler is never repeated unnoticed.
"""

import ast
import builtins
import re
from collections.abc import Iterator, Sequence

from kubewright.scaffold.from_kopf.kinds import KindClass, builtin_by_kind
from kubewright.scaffold.from_kopf.reading import Function, KopfFile, parameters

# Libraries whose functions block, and whose objects do so in their methods.
_BLOCKING = frozenset({
    "kubernetes", "pykube", "lightkube", "requests", "urllib", "urllib3", "subprocess", "socket", "boto3",
    "psycopg2", "pymysql", "redis", "hvac", "smtplib", "paramiko", "ldap3", "docker", "git", "time.sleep",
})  # fmt: skip
_CLIENTS = frozenset(["kubernetes", "kubernetes_asyncio", "pykube", "lightkube", "kr8s"])
_LIBRARIES = _BLOCKING | _CLIENTS
# Modules whose functions can be called again with the same result.
_REPEATABLE = frozenset({
    "json", "yaml", "copy", "re", "base64", "hashlib", "textwrap", "string", "math", "itertools",
    "functools", "collections", "logging", "typing", "dataclasses", "enum", "operator", "os.path",
    "jinja2", "types", "contextlib", "datetime.timedelta", "ipaddress",
})  # fmt: skip
_DATA_METHODS = frozenset({"format", "get", "items", "keys", "values"})
_READS = re.compile(
    r"get|head|json|raise_for_status|(read|list)_\w+|get_(namespaced|cluster)_custom_object\w*"
    r"|load_(kube_config|incluster_config|config)"
)
"""Methods of the libraries above that only read."""
CLIENT_METHOD = re.compile(
    r"(?P<verb>create|read|list|patch|replace|delete_collection|delete)_(?:namespaced_)?(?P<kind>[a-z_]+?)"
    r"(?:_for_all_namespaces)?(?P<subresource>_status|_scale|_log|_eviction)?"
)


class Calls:
    """Analyzes the calls in the functions of one file; functions of the other files are followed."""

    def __init__(self, file: KopfFile, others: Sequence[KopfFile]) -> None:
        self.file = file
        self._local = {name: node for each in (file, *others) for name, node in each.functions.items()}
        self._files = {id(node): each for each in (file, *others) for node in each.functions.values()}
        self._globals = self._follow(file.tree.body, {})

    def tainted(self, node: Function) -> dict[str, str]:
        """Return the names of variables with an object of a library that blocks or is a client, with the library."""
        return self._follow(node.body, self._globals)

    def is_client_call(self, call: ast.Call, tainted: dict[str, str]) -> bool:
        """Return True if a call goes to a client library of Kubernetes."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        return self.root(call.func, tainted) in _CLIENTS or name.endswith("_custom_object")

    def _follow(self, statements: list[ast.stmt], known: dict[str, str]) -> dict[str, str]:
        """Return the names of variables with an object of a library that blocks or is a client, with the library."""
        found = dict(known)
        for _ in range(2):
            for statement in statements:
                for node in ast.walk(statement):
                    if isinstance(node, ast.Assign):
                        targets, value = node.targets, node.value
                    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                        targets, value = [node.optional_vars], node.context_expr
                    else:
                        continue
                    value = value.value if isinstance(value, ast.Await) else value
                    root = self.root(value.func, found) if isinstance(value, ast.Call) else ""
                    if root:
                        names = (each for target in targets for each in ast.walk(target))
                        found |= {each.id: root for each in names if isinstance(each, ast.Name)}
        return found

    def root(self, node: ast.expr, tainted: dict[str, str]) -> str:
        """Return the library that a reference leads to, if it blocks or is a client, or an empty string."""
        name = self.file.dotted(node)
        if name == "time.sleep":
            return name
        root = name.partition(".")[0]
        if root in _LIBRARIES:
            return root
        while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
            node = node.func if isinstance(node, ast.Call) else node.value
            inner = self.file.dotted(node).partition(".")[0]
            if inner in _LIBRARIES:
                return inner
        return tainted.get(node.id, "") if isinstance(node, ast.Name) else ""

    def is_blocking(self, call: ast.Call, tainted: dict[str, str], seen: set[str]) -> bool:
        """Return True if a call, or a function that it calls, may block the event loop."""
        last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if self.root(call.func, tainted) in _BLOCKING and not last[:1].isupper():
            return True
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        function = self._local.get(name)
        if not isinstance(function, ast.FunctionDef) or name in seen:
            return False
        inner = self.tainted(function)
        return any(
            self.is_blocking(each, inner, {*seen, name})
            for each in ast.walk(function)
            if isinstance(each, ast.Call)
        )

    def effects(self, node: Function, hidden: set[int], seen: set[str]) -> Iterator[str]:
        """Yield the calls that may have another effect when they are repeated.

        Unknown calls count too: a method of an object that is not plain data, or a function of a library.
        """
        scope = _Scope(self._files.get(id(node), self.file), node, self._local)
        tainted = self.tainted(node)
        for call in ast.walk(node):
            if not isinstance(call, ast.Call) or id(call) in hidden:
                continue
            name, last = scope.file.dotted(call.func), ast.unparse(call.func).rpartition(".")[2]
            if isinstance(call.func, ast.Name) and call.func.id in self._local:
                yield from self._local_effects(call.func.id, seen)
            elif (
                name.startswith("kopf.")
                or (last[:1].isupper() and name != "subprocess.Popen")
                or _is_repeatable(name)
                or (self.root(call.func, tainted) and _READS.fullmatch(last))
                or (name and name.split(".")[-2].isupper() and last in _DATA_METHODS)
                or (not name and isinstance(call.func, ast.Attribute) and scope.is_plain(call.func.value))
                or (not name and isinstance(call.func, ast.Name) and _is_harmless_builtin(call.func.id))
            ):
                continue
            else:
                yield f"`{ast.unparse(call.func)}` ({scope.file.path}:{call.lineno})"

    def _local_effects(self, name: str, seen: set[str]) -> Iterator[str]:
        if name not in seen:
            yield from self.effects(self._local[name], set(), {*seen, name})

    def created_kind(self, call: ast.Call) -> KindClass | None:
        """Return the built-in kind that a call creates, or None."""
        if not isinstance(call.func, ast.Attribute):
            return None
        method = CLIENT_METHOD.fullmatch(call.func.attr)
        if method and method["verb"] == "create" and not method["subresource"]:
            return builtin_by_kind(camel(method["kind"]))
        if call.func.attr == "create" and isinstance(call.func.value, ast.Call):
            name = self.file.dotted(call.func.value.func)
            if name.startswith("pykube."):
                return builtin_by_kind(name.rpartition(".")[2])
        return None


class _Scope:
    """What the names of a function stand for, as far as their values are plain data."""

    def __init__(self, file: KopfFile, node: Function, local: dict[str, Function]) -> None:
        self.file = file
        self._local = local
        self._given = set(parameters(node))
        self._values: dict[str, list[ast.expr]] = {}
        for each in (*file.tree.body, *ast.walk(node)):
            match each:
                case ast.Assign(targets=targets, value=value):
                    pass
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    targets = [target]
                case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                    targets = [target]
                case _:
                    continue
            for target in targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        self._values.setdefault(name.id, []).append(value)

    def is_plain(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """Return True if a value consists of data, or is a logger: calling its methods again does no harm."""
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Dict() | ast.List() | ast.Tuple() | ast.Set():
                return True
            case ast.ListComp() | ast.DictComp() | ast.SetComp() | ast.GeneratorExp() | ast.Compare():
                return True
            case ast.BinOp(left=left, right=right):
                return self.is_plain(left, seen) and self.is_plain(right, seen)
            case ast.BoolOp(values=values):
                return all(self.is_plain(each, seen) for each in values)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_plain(body, seen) and self.is_plain(orelse, seen)
            case ast.Subscript(value=value) | ast.Attribute(value=value):
                return self.is_plain(value, seen)
            case ast.Name(id=name):
                values = self._values.get(name, [])
                if name in seen or not values:
                    return name in seen or name in self._given
                return all(self.is_plain(each, seen | {name}) for each in values)
            case ast.Call(func=func):
                name = self.file.dotted(func)
                if isinstance(func, ast.Name) and (func.id in self._local or _is_harmless_builtin(func.id)):
                    return True
                if _is_repeatable(name):
                    return True
                return not name and isinstance(func, ast.Attribute) and self.is_plain(func.value, seen)
            case _:
                return False


def _is_repeatable(name: str) -> bool:
    return name.partition(".")[0] in _REPEATABLE or ".".join(name.split(".")[:2]) in _REPEATABLE


def _is_harmless_builtin(name: str) -> bool:
    return hasattr(builtins, name) and name not in ("open", "input", "exec", "eval", "setattr", "delattr")


def camel(snake: str) -> str:
    """Return the kind that a method of the client names: `config_map` is ConfigMap."""
    return "".join(word.capitalize() for word in snake.split("_"))
