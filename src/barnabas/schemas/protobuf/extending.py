"""Custom options: set on descriptors by the extensions that declare them, and read back from there.

In: descriptors, a descriptor pool with the extensions. Out: options in the descriptors' bytes, or as values.
Does not know: text. An option whose extension nobody declares stays uninterpreted, as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import UninterpretedOption
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from barnabas.schemas.model import InvalidSchema
from barnabas.schemas.protobuf.defaults import real_text
from barnabas.schemas.protobuf.option_reading import OptionReader
from barnabas.schemas.protobuf.options import Pending, plain_field, real, set_option, whole
from barnabas.schemas.protobuf.printing import print_value
from barnabas.schemas.protobuf.syntax import Braces, Many, NamePart, Number, Option, Text, Value, Word

Resolve = Callable[[str, str], str | None]  # name and scope to the full name of an extension

# The order in which registries print options that come from a descriptor; others follow by number.
_FIRST = (
    "ctype",
    "packed",
    "jstype",
    "java_package",
    "java_outer_classname",
    "java_multiple_files",
    "java_generate_equals_and_hash",
    "java_string_check_utf8",
    "optimize_for",
    "go_package",
    "cc_generic_services",
    "java_generic_services",
    "py_generic_services",
    "php_generic_services",
    "no_standard_descriptor_accessor",
    "allow_alias",
    "deprecated",
    "map_entry",
    "cc_enable_arenas",
    "objc_class_prefix",
    "csharp_namespace",
    "swift_prefix",
    "php_class_prefix",
    "php_namespace",
    "php_metadata_namespace",
    "ruby_package",
    "idempotency_level",
)
_RANKS = {name: rank for rank, name in enumerate(_FIRST)}


def set_extensions(
    pending: Iterable[Pending], pool: DescriptorPool, resolve: Resolve, *, strict: bool
) -> None:
    """Sets the options that wait for their extensions.

    Strict: a value that does not fit is refused. Else it stays uninterpreted: stored schemas may have it.
    """
    for owner, options, scope in pending:
        message = _of_pool(owner.options, pool)
        if message is None:
            for option in options:
                _leave(owner.options, option)
            continue

        def find(inside: Message, part: NamePart, scope: str = scope) -> FieldDescriptor | None:
            if not part.is_extension:
                return plain_field(inside, part)
            full_name = resolve(part.text, scope)
            return _extension(pool, full_name, inside) if full_name is not None else None

        left: list[Option] = []
        for option in options:
            if find(message, option.name[0]) is None:
                left.append(option)
                continue
            try:
                if not strict:
                    set_option(type(message)(), option, find)  # alone first: no half of it may stay
                set_option(message, option, find)
            except InvalidSchema:
                if strict:
                    raise
                left.append(option)
        owner.options.ParseFromString(message.SerializeToString(deterministic=True))
        for option in left:
            _leave(owner.options, option)


def _of_pool(options: Message, pool: DescriptorPool) -> Message | None:
    """The same options as a message of the pool, which knows its extensions."""
    try:
        descriptor = pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
    except KeyError:
        return None
    message: Message = GetMessageClass(descriptor)()
    try:
        message.ParseFromString(options.SerializeToString())
    except DecodeError:
        return None
    return message


def _extension(pool: DescriptorPool, full_name: str, inside: Message) -> FieldDescriptor | None:
    try:
        found = pool.FindExtensionByName(full_name)
    except KeyError:
        return None
    return found if found.containing_type == inside.DESCRIPTOR else None


def _leave(options: Any, option: Option) -> None:
    out: UninterpretedOption = options.uninterpreted_option.add()
    for part in option.name:
        out.name.add(name_part=part.text, is_extension=part.is_extension)
    value = option.value
    if isinstance(value, Text):
        out.string_value = value.value
    elif isinstance(value, Word):
        out.identifier_value = value.text
    elif isinstance(value, Number):
        integer = value.text.removeprefix("-").isdigit()
        if not integer:
            out.double_value = real(value)
        elif value.text.startswith("-"):
            out.negative_int_value = max(whole(value), -(1 << 63))
        else:
            out.positive_int_value = min(whole(value), (1 << 64) - 1)
    elif isinstance(value, Braces):
        out.aggregate_value = print_value(value)[1:-1]
    else:
        out.aggregate_value = print_value(value)


def read_options(options: Any, pool: DescriptorPool) -> Iterator[Option]:
    """The options of a descriptor, in the order of registries."""
    message = _of_pool(options, pool) or options
    listed = [(field, value) for field, value in message.ListFields() if field.name != "uninterpreted_option"]
    for field, value in sorted(listed, key=lambda one: _rank(one[0])):
        if field.is_extension:
            name = NamePart(field.full_name, is_extension=True)
            is_meta = field.message_type is not None and field.message_type.full_name == "confluent.Meta"
            for one in value if field.is_repeated else [value]:
                read = _meta(one) if is_meta else _value(field, one)
                if not is_meta or read != Braces(()):
                    yield Option((name,), read)
        elif field.message_type is not None and not field.is_repeated:
            for inner, inner_value in value.ListFields():  # features: one option each
                if not inner.is_extension and inner.message_type is None:
                    yield Option((NamePart(field.name), NamePart(inner.name)), _values(inner, inner_value))
        elif field.is_repeated:
            for one in value:
                yield Option((NamePart(field.name),), _value(field, one))
        else:
            yield Option((NamePart(field.name),), _value(field, value))
    for left in options.uninterpreted_option:
        yield _left(left)


def _rank(field: FieldDescriptor) -> tuple[int, int]:
    if not field.is_extension:
        return _RANKS.get(field.name, len(_RANKS)), field.number
    return len(_RANKS) + (1 if field.full_name.startswith("confluent.") else 2), field.number


def _left(left: UninterpretedOption) -> Option:
    name = tuple(NamePart(part.name_part, part.is_extension) for part in left.name)
    if left.HasField("identifier_value"):
        return Option(name, Word(left.identifier_value))
    if left.HasField("positive_int_value"):
        return Option(name, Number(str(left.positive_int_value)))
    if left.HasField("negative_int_value"):
        return Option(name, Number(str(left.negative_int_value)))
    if left.HasField("double_value"):
        return Option(name, Number(real_text(left.double_value, single=False)))
    if left.HasField("aggregate_value"):
        text = left.aggregate_value
        return Option(name, OptionReader(text if text.startswith("[") else "{" + text + "}").any_value())
    return Option(name, Text(left.string_value))


def _values(field: FieldDescriptor, value: Any) -> Value:
    if not field.is_repeated:
        return _value(field, value)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        fields = field.message_type.fields_by_name
        entries = sorted(value.items(), key=lambda one: repr(one[0]))
        return Many(
            tuple(
                Braces((("key", _value(fields["key"], key)), ("value", _value(fields["value"], one))))
                for key, one in entries
            )
        )
    return Many(tuple(_value(field, one) for one in value))


def _value(field: FieldDescriptor, value: Any) -> Value:
    if field.message_type is not None:
        return Braces(
            tuple(
                (f"[{inner.full_name}]" if inner.is_extension else inner.name, _values(inner, one))
                for inner, one in value.ListFields()
            )
        )
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return Word(named.name) if named is not None else Number(str(value))
    if isinstance(value, bool):
        return Word("true" if value else "false")
    if isinstance(value, float):
        text = real_text(value, single=field.type == FieldDescriptor.TYPE_FLOAT)
        return Word(text) if text.lstrip("-") in ("inf", "nan") else Number(text)
    if isinstance(value, int):
        return Number(str(value))
    return Text(value if isinstance(value, bytes) else value.encode())


def _meta(meta: Any) -> Value:
    """Confluent's metadata: entries in a fixed order, and empty ones left out."""
    entries: list[tuple[str, Value]] = []
    if meta.doc:
        entries.append(("doc", Text(meta.doc.encode())))
    if meta.params:
        params: list[Value] = []
        for key, value in sorted(meta.params.items()):
            pair = (("key", Text(key.encode())), ("value", Text(value.encode())))
            # Decimals have always been printed with the value first.
            params.append(Braces(pair[::-1] if key in ("precision", "scale") else pair))
        entries.append(("params", Many(tuple(params))))
    if meta.tags:
        entries.append(("tags", Many(tuple(Text(tag.encode()) for tag in meta.tags))))
    if meta.rules:
        rules = meta.DESCRIPTOR.fields_by_name["rules"]
        entries.append(("rules", _values(rules, meta.rules)))
    return Braces(tuple(entries))
