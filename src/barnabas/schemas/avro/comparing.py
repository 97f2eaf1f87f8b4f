"""Whether a reader's Avro schema reads data of a writer's, by the rules of Avro's Java library.

In: two types. Out: the reasons why not, with path, kind and the text that registries print.
Does not know: which of the two is newer, levels of compatibility.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from barnabas.schemas.avro.types import (
    Absent,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Type,
    Union,
)
from barnabas.schemas.model import READER, WRITER, Incompatibility

PAIRS_MAX = 300_000  # types compared with types: unions of unions multiply
REASONS_MAX = 1_000

# A reader of the key reads data of these types too.
PROMOTIONS = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}

DESCRIPTIONS = {
    "FIXED_SIZE_MISMATCH": "The size of FIXED type field at path '{path}' in the {reader} schema"
    " does not match with the {writer} schema",
    "TYPE_MISMATCH": "The type (path '{path}') of a field in the {reader} schema"
    " does not match with the {writer} schema",
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "MISSING_ENUM_SYMBOLS": "The {reader} schema is missing enum symbols '{info}'"
    " at path '{path}' in the {writer} schema",
    "MISSING_UNION_BRANCH": "The {reader} schema is missing a type inside a union field"
    " at path '{path}' in the {writer} schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{info}' at path '{path}' in the {reader} schema"
    " has no default value and is missing in the {writer} schema",
    "READER_FIELD_AMBIGUOUS": "The field at path '{path}' in the {reader} schema matches several fields"
    " in the {writer} schema, by its name and its aliases: {info}",
    "COMPARISON_TOO_LARGE": "The {reader} and the {writer} schema have too many types to be compared",
}

Place = tuple[str, ...]
Reasons = tuple[Incompatibility, ...]
# A comparison asks for those of inner types and gets their reasons; so none needs Python's stack.
Step = Generator[tuple[Type, Type, Place], Reasons, Reasons]


class _TooLarge(Exception):
    pass


def compare(reader: Type, writer: Type) -> list[Incompatibility]:
    """Reasons why data of the writer cannot be read, in the order of the reader's fields."""
    try:
        return list(_Comparison().run(reader, writer))
    except _TooLarge:
        return [_reason("COMPARISON_TOO_LARGE", (), f"more than {PAIRS_MAX} pairs of types")]


@dataclass(slots=True)
class _Comparison:
    # Pairs of types by identity. A pair that is still compared counts as compatible: so recursion ends.
    done: dict[tuple[int, int], Reasons] = field(default_factory=dict)
    fields: dict[int, dict[str, Field]] = field(default_factory=dict)  # of writers' records, by name

    def run(self, reader: Type, writer: Type) -> Reasons:
        self.done[id(reader), id(writer)] = ()
        stack = [((id(reader), id(writer)), self._step(reader, writer, ()))]
        answer: Reasons | None = None
        while stack:
            pair, step = stack[-1]
            try:
                inner_reader, inner_writer, place = step.send(answer)  # type: ignore[arg-type]
            except StopIteration as end:
                stack.pop()
                answer = self.done[pair] = end.value
                continue
            inner = (id(inner_reader), id(inner_writer))
            if inner in self.done:
                answer = self.done[inner]
                continue
            if len(self.done) >= PAIRS_MAX:
                raise _TooLarge
            self.done[inner] = ()
            stack.append((inner, self._step(inner_reader, inner_writer, place)))
            answer = None
        assert answer is not None
        return answer

    def _step(self, reader: Type, writer: Type, place: Place) -> Step:
        match reader, writer:
            case Union(), Union():
                return (yield from self._unions(reader, writer, place))
            case _, Union():
                found: Reasons = ()
                for index, branch in enumerate(writer.branches):
                    found = _merged(found, (yield reader, branch, (*place, str(index))))
                return found
            case Union(), _:
                return (yield from self._branch_for(reader, writer, place))
            case Array(), Array():
                return (yield reader.items, writer.items, (*place, "items"))
            case Map(), Map():
                return (yield reader.values, writer.values, (*place, "values"))
            case Record(), Record():
                return (yield from self._records(reader, writer, place))
            case Enum(), Enum():
                return _merged(_names(reader, writer, place), _symbols(reader, writer, place))
            case Fixed(), Fixed():
                return _merged(_names(reader, writer, place), _sizes(reader, writer, place))
        if reader.kind == writer.kind or writer.kind in PROMOTIONS.get(reader.kind, ()):
            return ()
        info = f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
        return (_reason("TYPE_MISMATCH", place, info),)

    def _unions(self, reader: Union, writer: Union, place: Place) -> Step:
        found: Reasons = ()
        for index, branch in enumerate(writer.branches):
            if (yield reader, branch, (*place, str(index))):
                info = f"reader union lacking writer type: {branch.kind.upper()}"
                found = _merged(found, (_reason("MISSING_UNION_BRANCH", (*place, str(index)), info),))
        return found

    def _branch_for(self, reader: Union, writer: Type, place: Place) -> Step:
        for branch in reader.branches:
            if not (yield branch, writer, place):
                return ()
        info = f"reader union lacking writer type: {writer.kind.upper()}"
        return (_reason("MISSING_UNION_BRANCH", place, info),)

    def _records(self, reader: Record, writer: Record, place: Place) -> Step:
        found = _names(reader, writer, place)
        written = self.fields.get(id(writer))
        if written is None:
            written = self.fields[id(writer)] = {one.name: one for one in writer.fields}
        for index, one in enumerate(reader.fields):
            here = (*place, "fields", str(index))
            sources = [name for name in dict.fromkeys((one.name, *one.aliases)) if name in written]
            if len(sources) > 1:
                info = f"{one.name} matches {', '.join(sources)}"
                found = _merged(found, (_reason("READER_FIELD_AMBIGUOUS", here, info),))
            elif sources:
                source = written[sources[0]].type
                found = _merged(found, (yield one.type, source, (*here, "type")))
            elif isinstance(one.default, Absent):
                found = _merged(found, (_reason("READER_FIELD_MISSING_DEFAULT_VALUE", here, one.name),))
        return found


def _names(reader: Named, writer: Named, place: Place) -> Reasons:
    """Namespaces do not count. Aliases of the reader do, by their full names."""
    if reader.name.last == writer.name.last:
        return ()
    if any(alias.full == writer.name.full for alias in reader.aliases):
        return ()
    return (_reason("NAME_MISMATCH", (*place, "name"), f"expected: {writer.name.full}"),)


def _symbols(reader: Enum, writer: Enum, place: Place) -> Reasons:
    missing = set(writer.symbols) - set(reader.symbols)
    if not missing or reader.default is not None:
        return ()
    return (_reason("MISSING_ENUM_SYMBOLS", (*place, "symbols"), f"[{', '.join(sorted(missing))}]"),)


def _sizes(reader: Fixed, writer: Fixed, place: Place) -> Reasons:
    if reader.size == writer.size:
        return ()
    info = f"expected: {writer.size}, found: {reader.size}"
    return (_reason("FIXED_SIZE_MISMATCH", (*place, "size"), info),)


def _merged(one: Reasons, other: Reasons) -> Reasons:
    """Merge reasons, each once: a type that is used a thousand times has its reasons told once."""
    if not one or not other or len(one) >= REASONS_MAX:
        return one or other
    return tuple(dict.fromkeys(one + other))[:REASONS_MAX]


def _reason(kind: str, place: Place, info: str) -> Incompatibility:
    path = "/" + "/".join(place)
    said = DESCRIPTIONS[kind].format(path=path, info=info, reader=READER, writer=WRITER)
    text = f"{{errorType:'{kind}', description:'{said}', additionalInfo:'{info}'}}"
    return Incompatibility(kind, path, text)
