"""TARGET: load an operator from a file, a package directory, a module or `module:object`."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from kubewright.api import DeclarationError, KubewrightError
from kubewright.cli.exits import WrongUsage
from kubewright.controller import Controller, Operator
from kubewright.tracebacks import place_of
from kubewright.webhook import Admission, Authentication, Conversion, Webhook

DEFAULT_OBJECT = "operator"


class TargetError(KubewrightError):
    """TARGET cannot be loaded or does not define an operator."""


class NoSuchTarget(TargetError, WrongUsage):
    """TARGET is not an existing file, module or object."""


class NoOperator(TargetError):
    """TARGET can be loaded but declares no operator, controllers or webhooks."""


def load_operator(target: str) -> Operator:
    """Load the operator of TARGET: an Operator, a factory of one, or the declarations of a module."""
    place, _, name = _split(target)
    module = _load(place)
    if name:
        return _operator_from(_attribute(module, name, target), target, module)
    found = getattr(module, DEFAULT_OBJECT, None)
    if found is not None and not isinstance(found, ModuleType):
        return _operator_from(found, f"{target}:{DEFAULT_OBJECT}", module)
    if operators := _operators_in(module):
        if len(operators) > 1:
            named = " and ".join(operators)
            raise TargetError(
                f"{target} defines several operators ({named}): choose one, for example {target}:{next(iter(operators))}"
            )
        return next(iter(operators.values()))
    controllers, webhooks = _controllers_in(module), _webhooks_in(module)
    if not controllers and not webhooks:
        raise NoOperator(
            f"{target} defines no `{DEFAULT_OBJECT}`, controllers or webhooks at module level: "
            "declare one with @kw.controller(...), or pass the object as module:object"
        )
    name = module.__name__.rpartition(".")[2].replace("_", "-").lower()
    return Operator(*controllers, name=name, webhooks=webhooks)


def _split(target: str) -> tuple[str, str, str]:
    # A colon after a drive letter belongs to the path.
    if Path(target).exists():
        return target, "", ""
    place, colon, name = target.rpartition(":")
    return (place, colon, name) if colon else (target, "", "")


def _load(place: str) -> ModuleType:
    if not place:
        raise NoSuchTarget("TARGET is empty: pass a file, a package directory or a module")
    path = Path(place)
    if path.is_file():
        if path.suffix != ".py":
            raise TargetError(f"{place} is not a Python file: its name does not end in .py")
        return _import(path.stem, path.parent, place)
    if path.is_dir():
        if not (path / "__init__.py").is_file():
            raise TargetError(f"{place} is not a package: it has no __init__.py")
        return _import(path.resolve().name, path.resolve().parent, place)
    if place.endswith(".py") or "/" in place:
        raise NoSuchTarget(f"{place}: no such file")
    return _import(place, Path.cwd(), place)


def _import(name: str, folder: Path, place: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise TargetError(f"{place}: {name!r} is not a valid module name: rename the file or directory")
    if sys.path[:1] != [str(folder.resolve())]:
        sys.path.insert(0, str(folder.resolve()))
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name.partition(".")[0]:
            raise NoSuchTarget(f"{place}: no such file or module") from None
        raise TargetError(_user_line(error, place)) from error
    except SyntaxError as error:
        where = f"{error.filename}:{error.lineno}" if error.filename else place
        raise TargetError(f"{where}: {type(error).__name__}: {error.msg}") from None
    except SystemExit as error:
        raise TargetError(
            f"{place_of(error) or place}: importing it exits the program (SystemExit: {error.code}): "
            'move the code that runs it under `if __name__ == "__main__":`'
        ) from None
    except Exception as error:
        raise TargetError(_user_line(error, place)) from error
    _refuse_another(module, folder, name, place)
    return module


def _refuse_another(module: ModuleType, folder: Path, name: str, place: str) -> None:
    """Raise TargetError if another module of the same name was loaded instead of the user's file."""
    origin = module.__file__
    if origin is None or Path(place).suffix != ".py":
        return
    if Path(origin).resolve() != (folder / f"{name}.py").resolve():
        raise TargetError(f"{place}: another module is called {name!r} ({origin}): rename the file")


def _attribute(module: ModuleType, name: str, target: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise NoSuchTarget(f"{target}: {module.__name__} has no {name!r}")
        found = getattr(found, part)
    return found


def _operator_from(found: Any, target: str, module: ModuleType) -> Operator:
    if callable(found) and not isinstance(found, Controller):
        try:
            found = found()
        except DeclarationError:
            raise
        except Exception as error:
            raise TargetError(_user_line(error, target)) from error
    if isinstance(found, Operator):
        return found
    if isinstance(found, Controller):
        return Operator(cast("Controller[Any]", found))
    raise TargetError(
        f"{target} in {module.__name__} is of type {type(found).__name__}: expected an Operator, "
        "a Controller or a function that returns one"
    )


def _operators_in(module: ModuleType) -> dict[str, Operator]:
    """Find each operator once, by the first of its names."""
    found: dict[int, tuple[str, Operator]] = {}
    for name, value in vars(module).items():
        if isinstance(value, Operator):
            found.setdefault(id(value), (name, value))
    return dict(found.values())


def _controllers_in(module: ModuleType) -> list[Controller[Any]]:
    values: list[Any] = [value for value in vars(module).values() if isinstance(value, Controller)]
    return list(dict.fromkeys(values))


def _webhooks_in(module: ModuleType) -> list[Webhook]:
    values: list[Any] = [
        value for value in vars(module).values() if isinstance(value, Admission | Authentication | Conversion)
    ]
    return list(dict.fromkeys(values))


def _user_line(error: BaseException, place: str) -> str:
    """Format an error with the line of the user's code that raised it."""
    text = str(error) if isinstance(error, KubewrightError) else f"{type(error).__name__}: {error}"
    return f"{place_of(error) or place}: {text}"
