"""Functions of the user: Python functions with types, by decorator.

    @scalar("(STRING, INT) -> STRING")
    def repeated(text, times): ...

    @table_function("(STRING) -> STRING")
    def words(text): return text.split()

    @aggregate_function("(DOUBLE) -> DOUBLE")
    class GeometricMean: initial, add, merge, (undo), (result)

Without a text, types come from the annotations (int is BIGINT). Functions are known by their upper-case
names; several signatures overload. A module of functions is loaded from a folder (each `*.py` of
`ksql.extension.dir`) or from entry points of the group `barnabas.sql.functions`. A plan keeps a function by
its module and name, so that executors load the same one. Does not know: Spark.
"""

from __future__ import annotations

import datetime as dt
import decimal
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin, get_type_hints

from barnabas.sql.errors import SqlError

ENTRY_POINTS = "barnabas.sql.functions"
FILE_PREFIX = "barnabas_sql_functions_"


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function of the user, by where it is. `kind` is scalar, table or aggregate; `signature` is as in the
    table of built-in functions: `(STRING, INT) -> STRING`."""

    name: str
    kind: str
    signature: str
    module: str
    attribute: str
    file: str | None = None
    takes_null: bool = False
    what: str = ""

    def found(self) -> Any:
        """The Python object; its module is loaded where it is not yet."""
        live = LIVE.get((self.module, self.attribute))
        if live is not None:
            return live
        module = sys.modules.get(self.module)
        if module is None:
            module = load_file(Path(self.file)) if self.file else importlib.import_module(self.module)
        found: Any = module
        for part in self.attribute.split("."):
            found = found.__dict__[part] if isinstance(found, type) else getattr(found, part)
        return found

    def code(self) -> Callable[..., Any]:
        """A function of values. Null arguments give null unless the function takes them."""
        target = self.found()
        if self.takes_null:
            return target  # type: ignore[no-any-return]

        def called(*arguments: Any) -> Any:
            return None if any(each is None for each in arguments) else target(*arguments)

        return called


class Functions:
    """All functions of the user in this process."""

    def __init__(self) -> None:
        self.by_name: dict[str, list[UserFunction]] = {}

    def add(self, function: UserFunction) -> None:
        known = self.by_name.setdefault(function.name, [])
        known[:] = [each for each in known if each.signature != function.signature] + [function]

    def named(self, name: str) -> list[UserFunction]:
        return self.by_name.get(name, [])


USER_FUNCTIONS = Functions()
LIVE: dict[tuple[str, str], Any] = {}  # what this process has defined, functions inside of functions too
_TYPES = {
    str: "STRING",
    int: "BIGINT",
    float: "DOUBLE",
    bool: "BOOLEAN",
    bytes: "BYTES",
    decimal.Decimal: "DECIMAL(38, 10)",
    dt.datetime: "TIMESTAMP",
    dt.date: "DATE",
    dt.time: "TIME",
}


def type_text(annotation: Any) -> str:
    if annotation in _TYPES:
        return _TYPES[annotation]
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is list and parts:
        return f"ARRAY<{type_text(parts[0])}>"
    if origin is dict and len(parts) == 2:
        return f"MAP<{type_text(parts[0])}, {type_text(parts[1])}>"
    options = [each for each in parts if each is not type(None)]
    if len(options) == 1 and len(parts) == 2:
        return type_text(options[0])
    raise SqlError(f"{annotation!r} has no type of SQL: give the signature as a text")


def signature_of(code: Callable[..., Any]) -> str:
    hints = get_type_hints(code)
    names = list(inspect.signature(code).parameters)
    if "return" not in hints or any(name not in hints for name in names):
        raise SqlError(f"{code.__name__} needs annotations of all parameters and of its result, or a text")
    return f"({', '.join(type_text(hints[name]) for name in names)}) -> {type_text(hints['return'])}"


def _decorator(kind: str) -> Callable[..., Any]:
    def decorate(
        signature: Any = None, *, name: str | None = None, takes_null: bool = False
    ) -> Callable[[Any], Any]:
        def register(code: Any) -> Any:
            text = signature if isinstance(signature, str) else signature_of(code)
            module = sys.modules.get(code.__module__)
            file = getattr(module, "__file__", None) if code.__module__.startswith(FILE_PREFIX) else None
            LIVE[code.__module__, code.__qualname__] = code
            USER_FUNCTIONS.add(
                UserFunction(
                    (name or code.__name__).upper(),
                    kind,
                    text,
                    code.__module__,
                    code.__qualname__,
                    file,
                    takes_null,
                    (inspect.getdoc(code) or "").split("\n")[0],
                )
            )
            return code

        if callable(signature):
            code, signature = signature, None
            return register(code)  # type: ignore[no-any-return]
        return register

    return decorate


scalar = _decorator("scalar")
table_function = _decorator("table")
aggregate_function = _decorator("aggregate")


def load_file(path: Path) -> ModuleType:
    """Import a file of functions, once."""
    name = FILE_PREFIX + path.stem
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(path):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SqlError(f"{path} is no file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_folder(folder: Path) -> list[str]:
    """Import all files of a folder, by name; gives what could not be imported."""
    problems = []
    for path in sorted(folder.glob("*.py")):
        try:
            load_file(path)
        except Exception as error:
            problems.append(f"{path.name}: {type(error).__name__}: {error}")
    return problems


def load_entry_points() -> list[str]:
    """Import all modules that packages announce."""
    problems = []
    for point in metadata.entry_points(group=ENTRY_POINTS):
        try:
            point.load()
        except Exception as error:
            problems.append(f"{point.name}: {type(error).__name__}: {error}")
    return problems
