"""What the command of a simulated container does: how long it runs, and with which exit code it ends (pure functions).

`simulate` reads a command line as a container runtime and a shell would, but runs nothing: it adds up the times of
`sleep`, follows `;`, `&&`, `||`, `if`, `for` and `while`, and ends at `exit`. Every other program is looked up in a
table, `PROGRAMS`, which maps the first words of a command line to a script in the same language; users add their own
entries. A command line with a program that is not in the table, or with syntax that is not understood here, has no
result: the caller then applies its default.

Invariant: a result is never a guess. Whatever could change it (an unknown program, an unknown variable, a command
substitution) makes the whole command line unknown, unless it cannot be reached.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache

FOREVER = math.inf
_LONGEST = timedelta(days=3650).total_seconds()
"""Longer runs count as endless."""
_MAX_DEPTH = 20
_MAX_STEPS = 10_000

PROGRAMS: Mapping[str, str] = {
    "true": "exit 0",
    ":": "exit 0",
    "false": "exit 1",
    "echo": "exit 0",
    "printf": "exit 0",
    "date": "exit 0",
    "hostname": "exit 0",
    "id": "exit 0",
    "pwd": "exit 0",
    "uname": "exit 0",
    "pause": "sleep infinity",
    "yes": "sleep infinity",
    "tail -f": "sleep infinity",
    "tail -F": "sleep infinity",
}
"""What programs do in a simulated container: the first words of a command line, and a script of `sleep` and `exit`."""

_SHELLS = frozenset({"sh", "bash", "ash", "dash", "ksh", "zsh"})
_TRANSPARENT = frozenset({"exec", "nohup", "tini", "dumb-init", "busybox"})
"""Programs that run the program in their arguments."""
_IGNORED = frozenset({"export", "readonly", "umask", "cd", "unset"})
"""Commands of a shell that end at once and change nothing that is simulated."""
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?|\.\d+)([smhd]?)")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*)|(\?))")
_DEPENDENT = re.compile(r"\$\$|\$\(([\w.-]+)\)")
_KEYWORDS = frozenset({"then", "else", "elif", "fi", "do", "done"})
_REDIRECTIONS = frozenset({">", ">>", "<", ">&", "&>", ">|"})
_OPERATORS = re.compile(r"&&|\|\||&>|>>|>&|>\||;;|<<|[;&|<>()\n]")
_BLANKS = re.compile(r"[ \t]+|\\\n")
_WORD = re.compile(r"""(?:[^\s;&|<>()'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""", re.DOTALL)
_PART = re.compile(r"""\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)"|([^'"\\]+)""", re.DOTALL)
_QUOTED, _DOLLAR = "\0", "\1"
"""Marks at the beginning of a word with quotes, which is no keyword, and in place of a quoted dollar sign."""


class _UnknownCommand(Exception):
    """What a command line does cannot be computed."""


class _Exit(Exception):
    """The script has ended."""

    def __init__(self, code: int) -> None:
        self.code = code


class _Break(Exception):
    """The innermost loop has ended."""


class _Endless(Exception):
    """The script never ends."""


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """How a command line runs: for how long, None if it does not end by itself, and its exit code."""

    run_time: timedelta | None
    exit_code: int = 0


def simulate(
    words: Sequence[str], variables: Mapping[str, str], programs: Mapping[str, str] = PROGRAMS
) -> SimulatedRun | None:
    """Return how a command line runs with these environment variables, or None if that is unknown."""
    return _simulate(tuple(words), tuple(sorted(variables.items())), tuple(programs.items()))


def extended_programs(added: Mapping[str, str]) -> Mapping[str, str]:
    """Return the table with further entries; raise ValueError if one of them is not understood."""
    programs = {**PROGRAMS, **added}
    for key, script in added.items():
        if not key.split() or simulate(["sh", "-c", script], {}, programs) is None:
            raise ValueError(
                f"simulated program {key!r}: {script!r} is not understood; "
                "expected a script of `sleep SECONDS`, `exit CODE` and programs of the table"
            )
    return programs


@lru_cache(maxsize=1024)
def _simulate(
    words: tuple[str, ...], variables: tuple[tuple[str, str], ...], programs: tuple[tuple[str, str], ...]
) -> SimulatedRun | None:
    shell = _Shell(dict(variables), dict(programs))
    try:
        code = shell.run_program([_expand_dependent(word, shell.variables) for word in words])
    except _Exit as end:
        code = end.code
    except _Endless:
        return SimulatedRun(None)
    except (_UnknownCommand, RecursionError):
        return None
    return SimulatedRun(timedelta(seconds=shell.elapsed), code % 256)


def _expand_dependent(word: str, variables: Mapping[str, str]) -> str:
    """Expand `$(NAME)`, which Kubernetes does in commands and arguments; unknown names stay as they are."""
    return _DEPENDENT.sub(lambda found: "$" if found[0] == "$$" else variables.get(found[1], found[0]), word)


@dataclass(slots=True)
class _Shell:
    """The state of one simulated container: time, variables, and the table of programs."""

    variables: dict[str, str]
    programs: Mapping[str, str]
    elapsed: float = 0.0
    last_code: int = 0
    exits_on_error: bool = False
    """`set -e`: a command that fails ends the script."""
    pipe_fails: bool = False
    """`set -o pipefail`: a pipe fails if one of its commands does."""
    conditions: int = 0
    """How many conditions, or left sides of `&&` and `||`, surround the command: no failure in them ends the script."""
    background_until: float = 0.0
    depth: int = 0
    steps: int = 0
    expanding: set[str] = field(default_factory=set[str])

    def run_program(self, words: Sequence[str]) -> int:
        """Run a program with its arguments; return its exit code."""
        if not words:
            raise _UnknownCommand
        name, arguments = words[0].rpartition("/")[2], list(words[1:])
        if (entry := self._entry(name, words)) is not None:
            return self._run_entry(*entry)
        if name == "sleep":
            self._sleep(arguments)
            return 0
        if name in _SHELLS:
            return self._run_shell(arguments)
        if name in _TRANSPARENT and arguments:
            while arguments and arguments[0].startswith("-"):
                arguments.pop(0)
            return self.run_program(arguments)
        if name == "env":
            while arguments and (found := _ASSIGNMENT.fullmatch(arguments[0])):
                self.variables[found[1]] = found[2]
                arguments.pop(0)
            return self.run_program(arguments) if arguments else 0
        raise _UnknownCommand

    def _entry(self, name: str, words: Sequence[str]) -> tuple[str, str] | None:
        """Return the entry of the table whose words begin this command line; the longest one wins."""
        best: tuple[int, str, str] | None = None
        for key, script in self.programs.items():
            first, *others = key.split()
            named = first in (name, words[0]) and list(words[1 : len(others) + 1]) == others
            if named and (best is None or len(others) >= best[0]):
                best = len(others), key, script
        return None if best is None else best[1:]

    def _run_entry(self, key: str, script: str) -> int:
        if key in self.expanding:
            raise _UnknownCommand
        self.expanding.add(key)
        try:
            return self._subshell(script)
        finally:
            self.expanding.discard(key)

    def _sleep(self, arguments: Sequence[str]) -> None:
        seconds = 0.0
        for text in arguments:
            found = _DURATION.fullmatch(text)
            if text in ("infinity", "inf"):
                seconds = FOREVER
            elif found is not None:
                seconds += float(found[1]) * _UNITS[found[2]]
            else:
                raise _UnknownCommand
        if not arguments:
            raise _UnknownCommand
        self.elapsed += seconds
        if self.elapsed > _LONGEST:
            raise _Endless

    def _run_shell(self, arguments: Sequence[str]) -> int:
        """Run `sh -c SCRIPT`, with options such as -e before or within `-c`."""
        options = list[str]()
        remaining = list(arguments)
        while remaining and remaining[0].startswith(("-", "+")):
            word = remaining.pop(0)
            options.append(word)
            if word.startswith("--"):
                continue
            if "o" in word and remaining:
                options.append(remaining.pop(0))
            if "c" in word and remaining:
                return self._subshell(remaining[0], options)
        raise _UnknownCommand

    def _subshell(self, script: str, options: Sequence[str] = ()) -> int:
        """Run a script in a shell of its own: its `exit` ends only itself, and its variables are lost."""
        if self.depth >= _MAX_DEPTH:
            raise _UnknownCommand
        inner = replace(
            self,
            variables=dict(self.variables),
            last_code=0,
            exits_on_error=False,
            pipe_fails=False,
            conditions=0,
            background_until=0.0,
            depth=self.depth + 1,
        )
        inner.set_options(options)
        try:
            inner.run_list(_Tokens(script), frozenset())
        except _Exit as end:
            inner.last_code = end.code
        except _Break:
            raise _UnknownCommand from None
        self.elapsed, self.steps = inner.elapsed, inner.steps
        return inner.last_code

    def run_list(self, tokens: "_Tokens", ends: frozenset[str], *, reached: bool = True) -> str:
        """Run commands up to one of the keywords `ends` or the end; return the keyword.

        Commands that are not `reached` are only parsed.
        """
        runs, operator = reached, ";"
        while True:
            tokens.skip_separators()
            word = tokens.peek()
            if word is None:
                if ends:
                    raise _UnknownCommand
                return ""
            if word in ends:
                tokens.take()
                return word
            if word in _KEYWORDS:
                raise _UnknownCommand
            if operator == "&&":
                runs = reached and self.last_code == 0
            elif operator == "||":
                runs = reached and self.last_code != 0
            else:
                runs = reached
            start = tokens.position
            compound = self._run_one(tokens, reached=False)
            operator = tokens.take_operator()
            if not runs:
                continue
            after, tokens.position = tokens.position, start
            conditional = operator in ("&&", "||")
            self.conditions += conditional
            try:
                self._run_one(tokens, reached=True)
            finally:
                self.conditions -= conditional
            tokens.position = after
            ends_script = self.exits_on_error and not self.conditions and not conditional and not compound
            if self.last_code and ends_script:
                raise _Exit(self.last_code)

    def _run_one(self, tokens: "_Tokens", *, reached: bool) -> bool:
        """Run one command; return True if its exit code never ends the script."""
        match tokens.peek():
            case "if":
                self._run_if(tokens, reached=reached)
                return True
            case "while" | "until":
                self._run_while(tokens, reached=reached)
                return True
            case "for":
                self._run_for(tokens, reached=reached)
                return True
            case _:
                self._run_pipeline(tokens, reached=reached)
                return False

    def _condition(self, tokens: "_Tokens", end: str, *, reached: bool) -> bool:
        """Run the condition of an `if` or a loop, in which no failure ends the script."""
        self.conditions += 1
        try:
            self.run_list(tokens, frozenset({end}), reached=reached)
        finally:
            self.conditions -= 1
        return self.last_code == 0

    def _run_if(self, tokens: "_Tokens", *, reached: bool) -> None:
        done, keyword = not reached, tokens.take()
        while keyword in ("if", "elif"):
            holds = self._condition(tokens, "then", reached=not done) and not done
            keyword = self.run_list(tokens, frozenset({"elif", "else", "fi"}), reached=holds)
            done = done or holds
        if keyword == "else":
            self.run_list(tokens, frozenset({"fi"}), reached=not done)
        elif not done:
            self.last_code = 0

    def _run_while(self, tokens: "_Tokens", *, reached: bool) -> None:
        """Run a loop: without other state, one iteration that does not end the loop is repeated forever."""
        expected = tokens.take() == "while"
        enters = self._condition(tokens, "do", reached=reached) == expected and reached
        start, variables = tokens.position, dict(self.variables)
        try:
            self.run_list(tokens, frozenset({"done"}), reached=enters)
        except _Break:
            tokens.position = start
            self.run_list(tokens, frozenset({"done"}), reached=False)
        else:
            if enters:
                raise _Endless if self.variables == variables else _UnknownCommand
        self.last_code = 0 if reached else self.last_code

    def _run_for(self, tokens: "_Tokens", *, reached: bool) -> None:
        tokens.take()
        name = tokens.take()
        if tokens.take() != "in":
            raise _UnknownCommand
        values: list[str] = []
        while isinstance(tokens.peek(), str) and not isinstance(tokens.peek(), _Operator):
            values.append(self._expand(tokens.take()) if reached else tokens.take())
        tokens.skip_separators()
        if tokens.take() != "do":
            raise _UnknownCommand
        start = tokens.position
        for value in values if reached else ():
            self.variables[name] = value
            tokens.position = start
            try:
                self.run_list(tokens, frozenset({"done"}))
            except _Break:
                break
        tokens.position = start
        self.run_list(tokens, frozenset({"done"}), reached=False)

    def _run_pipeline(self, tokens: "_Tokens", *, reached: bool) -> None:
        """Run commands joined by `|`, which run at the same time; the last one gives the exit code."""
        if inverted := tokens.peek() == "!":
            tokens.take()
        commands = [tokens.take_words()]
        while tokens.peek() == "|":
            tokens.take()
            commands.append(tokens.take_words())
        if not reached:
            return
        began = self.elapsed
        if tokens.peek() == "&":
            # A background command takes no time; `wait` waits for it.
            try:
                self._run_together(commands, alone=False)
            except _Endless:
                self.background_until = FOREVER
            self.background_until = max(self.background_until, self.elapsed)
            self.elapsed, self.last_code = began, 0
            return
        self._run_together(commands, alone=len(commands) == 1)
        if inverted:
            self.last_code = int(self.last_code == 0)

    def _run_together(self, commands: Sequence[list[str]], *, alone: bool) -> None:
        began, ended = self.elapsed, self.elapsed
        failure = 0
        for words in commands:
            self.elapsed = began
            self._run_simple(words, alone=alone)
            failure = self.last_code or failure
            ended = max(ended, self.elapsed)
        self.elapsed = ended
        if self.pipe_fails:
            self.last_code = failure

    def _run_simple(self, words: list[str], *, alone: bool) -> None:
        """Run one command; `alone` means that it is not in a pipe or in the background, where `exit` ends only itself."""
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise _UnknownCommand
        found: list[str] = []
        for word in words:
            assignment = _ASSIGNMENT.fullmatch(word) if not found else None
            if assignment is not None:
                self.variables[assignment[1]] = self._expand(assignment[2])
            else:
                found.append(self._expand(word))
        if not found:
            self.last_code = 0
            return
        name, arguments = found[0], found[1:]
        if name == "exit":
            code = self._exit_code(arguments)
            if alone:
                raise _Exit(code)
            self.last_code = code
        elif name == "break":
            raise _Break
        elif name == "set":
            self.set_options(arguments)
            self.last_code = 0
        elif name == "trap":
            if {"EXIT", "0", "ERR"} & set(arguments):
                raise _UnknownCommand
            self.last_code = 0
        elif name == "wait":
            self.elapsed, self.last_code = max(self.elapsed, self.background_until), 0
            if self.elapsed == FOREVER:
                raise _Endless
        elif name in _IGNORED:
            for word in arguments:
                if assignment := _ASSIGNMENT.fullmatch(word):
                    self.variables[assignment[1]] = assignment[2]
            self.last_code = 0
        else:
            self.last_code = self.run_program(found)
            if name == "exec" and alone:
                raise _Exit(self.last_code)

    def _exit_code(self, arguments: Sequence[str]) -> int:
        if not arguments:
            return self.last_code
        if not arguments[0].isdecimal():
            raise _UnknownCommand
        return int(arguments[0]) % 256

    def set_options(self, words: Sequence[str]) -> None:
        """Set options as `set` does; others than -e and -o pipefail change nothing here."""
        for word in words:
            if word == "pipefail":
                self.pipe_fails = True
            elif "e" in word and word[0] in "-+" and not word.startswith("--"):
                self.exits_on_error = word[0] == "-"

    def _expand(self, word: str) -> str:
        """Expand variables; command substitutions and unknown variables are unknown."""

        def value(found: re.Match[str]) -> str:
            if found[3]:
                return str(self.last_code)
            known = self.variables.get(found[1] or found[2])
            if known is None:
                raise _UnknownCommand
            return known

        expanded = _VARIABLE.sub(value, word.removeprefix(_QUOTED))
        if "$" in _VARIABLE.sub("", word) or "`" in word:
            raise _UnknownCommand
        return expanded.replace(_DOLLAR, "$")


class _Operator(str):
    """An operator of the shell, as opposed to a word of the same characters in quotes."""

    __slots__ = ()


class _Tokens:
    """The words and operators of a script."""

    def __init__(self, script: str) -> None:
        self._tokens = list(_tokens(script))
        self.position = 0

    def peek(self) -> str | None:
        """Return the next token, or None at the end."""
        return self._tokens[self.position] if self.position < len(self._tokens) else None

    def take(self) -> str:
        """Return the next token and move on."""
        token = self.peek()
        if token is None:
            raise _UnknownCommand
        self.position += 1
        return token

    def take_operator(self) -> str:
        """Take the operator after a command; the end of the script counts as one."""
        token = self.peek()
        if token is None:
            return ";"
        if not isinstance(token, _Operator) or token not in ("&&", "||", ";", "\n", "&"):
            raise _UnknownCommand
        return self.take()

    def skip_separators(self) -> None:
        """Skip empty commands."""
        while isinstance(token := self.peek(), _Operator) and token in (";", "\n"):
            self.position += 1

    def take_words(self) -> list[str]:
        """Take the words of one command, without redirections."""
        words: list[str] = []
        while (token := self.peek()) is not None:
            if not isinstance(token, _Operator):
                words.append(self.take())
            elif token in _REDIRECTIONS:
                self.take()
                if words and words[-1].isdecimal():
                    words.pop()
                if isinstance(self.take(), _Operator):
                    raise _UnknownCommand
            else:
                break
        if not words:
            raise _UnknownCommand
        return words


def _tokens(script: str) -> Iterator[str]:
    position = 0
    while position < len(script):
        if blank := _BLANKS.match(script, position):
            position = blank.end()
        elif script[position] == "#":
            end = script.find("\n", position)
            position = len(script) if end < 0 else end
        elif operator := _OPERATORS.match(script, position):
            position = operator.end()
            yield _Operator(operator[0])
        elif word := _WORD.match(script, position):
            position = word.end()
            yield _unquoted(word[0])
        else:
            raise _UnknownCommand


def _unquoted(word: str) -> str:
    """Remove the quotes of a word, and mark what they protect."""
    text = ""
    for escaped, single, double, plain in _PART.findall(word):
        inner = re.sub(r"\\([$`\"\\])", lambda found: found[1].replace("$", _DOLLAR), double)
        text += escaped.replace("$", _DOLLAR) + single.replace("$", _DOLLAR) + inner + plain
    return text if text == word else _QUOTED + text
