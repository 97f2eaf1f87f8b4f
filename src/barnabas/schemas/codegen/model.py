"""Python classes as values: what a schema becomes before it is printed.

In: names and types of a schema's language. Out: names and annotations of Python. Does not know: schemas,
printing.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, field

# Names of methods, and names that annotations and expressions of a class use.
RESERVED = {"to_dict", "from_dict", "self", "cls", "found", "data", "datetime", "uuid", "base64"}
RESERVED |= {"int", "str", "float", "bool", "bytes", "list", "dict"}
IMPORTED = {"Any", "Decimal", "Literal", "StrEnum", "IntEnum"}


@dataclass(frozen=True, slots=True)
class PythonType:
    """An annotation, and expressions that convert a value from and to what a serializer takes.

    In an expression `{}` stands for the value; None means that the value is taken as it is.
    """

    annotation: str
    load: str | None = None
    dump: str | None = None
    imports: frozenset[str] = frozenset()

    def loaded(self, value: str) -> str:
        return value if self.load is None else self.load.replace("{}", value)

    def dumped(self, value: str) -> str:
        return value if self.dump is None else self.dump.replace("{}", value)


@dataclass(slots=True)
class Attribute:
    name: str  # in the schema
    type: PythonType
    default: str | None = None  # a Python expression; None if there is none
    doc: str | None = None
    is_left_out_if_none: bool = False
    python_name: str = ""  # given by the class that it is added to


@dataclass(slots=True)
class Class:
    name: str
    doc: str | None = None
    attributes: list[Attribute] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)

    def add(self, attribute: Attribute) -> None:
        """Add an attribute under a name that no other one has."""
        attribute.python_name = python_name(attribute.name)
        while attribute.python_name in self._used:
            attribute.python_name += "_"
        self._used.add(attribute.python_name)
        self.attributes.append(attribute)


@dataclass(slots=True)
class EnumClass:
    name: str
    members: list[tuple[str, str]]  # names with Python expressions
    doc: str | None = None
    base: str = "StrEnum"


@dataclass(slots=True)
class Module:
    """Classes in an order in which annotations may refer to later ones: they are not evaluated."""

    doc: str
    classes: list[Class | EnumClass] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)


class Names:
    """Class names, each used once."""

    def __init__(self) -> None:
        self._used = set(IMPORTED)

    def unique(self, wanted: str) -> str:
        name = base = class_name(wanted)
        number = 2
        while name in self._used:
            name, number = f"{base}{number}", number + 1
        self._used.add(name)
        return name


def class_name(text: str) -> str:
    """`order-line` becomes OrderLine; a name that is one already stays."""
    if text.isidentifier() and text[:1].isupper() and not keyword.iskeyword(text):
        return text
    words = [word for word in re.split(r"[^0-9A-Za-z]+", text) if word]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name.isidentifier() and not keyword.iskeyword(name) else f"Type{name}"


def python_name(text: str) -> str:
    """The name of an attribute; keywords and names that the class uses itself get an underscore."""
    name = re.sub(r"\W", "_", text)
    if not name or name[0].isdigit():
        name = f"field_{name}"
    if name.startswith("__"):  # Python would put the name of the class before it
        name = f"field{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in RESERVED else name


def member_name(text: str) -> str:
    """The name of an enum's member; Python keeps names between underscores, and mro, for itself."""
    name = python_name(text)
    return f"member_{name}" if name == "mro" or (name[0] == "_" and name[-1] == "_") else name


def optional(inner: PythonType) -> PythonType:
    return PythonType(
        inner.annotation if inner.annotation.endswith("None") else f"{inner.annotation} | None",
        None if inner.load is None else f"(None if {{}} is None else {inner.load})",
        None if inner.dump is None else f"(None if {{}} is None else {inner.dump})",
        inner.imports,
    )


def listed(inner: PythonType) -> PythonType:
    return PythonType(
        f"list[{inner.annotation}]",
        None if inner.load is None else f"[{inner.loaded('each')} for each in {{}}]",
        None if inner.dump is None else f"[{inner.dumped('each')} for each in {{}}]",
        inner.imports,
    )


def mapped(inner: PythonType, key: str = "str") -> PythonType:
    load_key = "key" if key == "str" else f"{key}(key)"
    needs_load = inner.load is not None or key != "str"
    return PythonType(
        f"dict[{key}, {inner.annotation}]",
        f"{{{load_key}: {inner.loaded('each')} for key, each in {{}}.items()}}" if needs_load else None,
        None if inner.dump is None else f"{{key: {inner.dumped('each')} for key, each in {{}}.items()}}",
        inner.imports,
    )
