"""`Message` and `Struct`: classes whose bodies are the specification of a Kafka message.

In: annotated fields, with `since` and `tag` where they are not the same in all versions. Out: slotted
classes with keyword construction, equality, a readable `repr`, `encode` and `decode`. The constructor is
built when a class is first called, and codecs when a version is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

from barnabas.protocol.schema import ZERO, Schema

if TYPE_CHECKING:
    from typing import Self

S = TypeVar("S", bound="Struct")
UNSET: Any = object()


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """Turns annotations into slots and stores them as the schema of the class."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        key: int | None = None,
        versions: str = "none",
        flexible: str = "none",
    ) -> StructType:
        annotations: dict[str, str] = namespace.get("__annotations__", {})
        fields = {n: text for n, text in annotations.items() if not text.startswith("ClassVar")}
        declared = {n: (text, namespace.pop(n, ZERO)) for n, text in fields.items()}
        namespace["__slots__"] = tuple(fields)
        cls: Any = super().__new__(mcls, name, bases, namespace)
        cls.schema = Schema(cls, declared, key, versions, flexible)
        return cls  # type: ignore[no-any-return]


class Struct(metaclass=StructType):
    """A group of fields inside a message, with the versions and encoding of the message."""

    schema: ClassVar[Schema]
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None

    def __init__(self, **values: Any) -> None:
        cls = self.schema.cls
        constructor: Any = build_constructor(cls)
        cls.__init__ = constructor  # type: ignore[method-assign]
        constructor(self, **values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or self.schema is not other.schema:
            return NotImplemented
        return (self.unknown_tagged_fields or None) == (other.unknown_tagged_fields or None) and all(
            getattr(self, field.name) == getattr(other, field.name) for field in self.schema.fields
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [
            f"{field.name}=<{len(value)} bytes>" if field.type == "Records" else f"{field.name}={value!r}"
            for field in self.schema.fields
            if (value := getattr(self, field.name)) != default_of(field)
        ]
        if self.unknown_tagged_fields:
            shown.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{self.schema.name}({', '.join(shown)})"


class Message(Struct):
    """A request, response, header or record: the unit of encoding and decoding."""

    def encode(self, version: int) -> bytes:
        """The bytes of this message, without any header."""
        parts = self.encode_parts(version)
        try:
            return b"".join(parts)
        except TypeError as error:
            explain_unjoinable(self, version, error)
            raise

    def encode_parts(self, version: int) -> list[Any]:
        """The bytes of this message in pieces. `records` are passed as the objects that the message holds."""
        parts: list[Any] = []
        codecs = self.schema.codecs
        (codecs.get(version) or compiled(type(self), version)).encode(self, parts.append)
        return parts

    @classmethod
    def decode(cls, buffer: bytes | bytearray | memoryview, version: int) -> Self:
        """Decode a message from the start of `buffer`. Bytes after it are ignored."""
        codecs = cls.schema.codecs
        message, _ = (codecs.get(version) or compiled(cls, version)).decode(buffer, 0)
        return message  # type: ignore[no-any-return]


def compiled(cls: type[Message], version: int) -> Any:
    from barnabas.protocol.codec import codec

    return codec(cls, version)


def explain_unjoinable(message: Message, version: int, error: Exception) -> None:
    from barnabas.protocol.writing import explain_encoding

    explain_encoding(message, version, error)


def build_constructor(cls: type[Struct]) -> Any:
    """`__init__` with a keyword for each field, as a dataclass would have."""
    names: dict[str, Any] = {"UNSET": UNSET}
    parameters = ["unknown_tagged_fields=None"]
    body = ["    self.unknown_tagged_fields = unknown_tagged_fields"]
    for field in cls.schema.fields:
        name = field.name
        if not field.has_fresh_default:
            names[f"default_{name}"] = field.default
            parameters.append(f"{name}=default_{name}")
            body.append(f"    self.{name} = {name}")
            continue
        if field.is_array:
            fresh = "[]"
        elif field.struct is not None and field.struct.schema.is_plain:
            fresh = f"default_{name}"
            names[fresh] = shared_default(field.struct)
        else:
            fresh = f"default_{name}()"
            names[f"default_{name}"] = field.struct
        parameters.append(f"{name}=UNSET")
        body.append(f"    self.{name} = {fresh} if {name} is UNSET else {name}")
    source = "\n".join([f"def __init__(self, *, {', '.join(parameters)}):", *body])
    exec(compile(source, f"<constructor of {cls.__qualname__}>", "exec"), names)
    constructor = names["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    constructor.__module__ = cls.__module__
    return constructor


def default_of(field: Any) -> Any:
    """The default of a field, for comparing."""
    if not field.has_fresh_default:
        return field.default
    return [] if field.is_array else default_struct(field.struct)


SHARED_DEFAULTS: dict[type[Struct], Struct] = {}


def default_struct(cls: type[S]) -> S:
    """A struct of defaults, which must not be changed: a shared instance if possible."""
    return shared_default(cls) if cls.schema.is_plain else cls()


def shared_default(cls: type[S]) -> S:
    """A read-only struct of defaults, shared by all messages that do not set the field."""
    found = SHARED_DEFAULTS.get(cls)
    if found is None:
        changes = {"__slots__": (), "__setattr__": refuse_change, "__reduce__": lambda self: (cls, ())}
        read_only = type.__new__(StructType, cls.__name__, (cls,), changes)
        found = SHARED_DEFAULTS[cls] = cls()
        object.__setattr__(found, "__class__", read_only)
    return found  # type: ignore[return-value]


def refuse_change(self: Struct, name: str, value: object) -> None:
    raise AttributeError(
        f"this {self.schema.name} is a shared default: assign a new one instead of changing {name}"
    )
