"""Subject name strategies: under which subject a schema is registered.

In: a context, the name of a record or message. Out: a subject, or None if the strategy lacks something.
Does not know: registries.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.schemas.serdes.context import Context, is_key

SubjectNameStrategy = Callable[[Context, str | None], str | None]
ReferenceNameStrategy = Callable[[str], str]


def topic_name(context: Context, record_name: str | None) -> str | None:
    """`orders-key`, `orders-value`."""
    if context.topic is None:
        return None
    return f"{context.topic}-{'key' if is_key(context) else 'value'}"


def record_name(context: Context, record_name: str | None) -> str | None:
    """The full name of the record or message; the title of a JSON Schema."""
    return record_name


def topic_record_name(context: Context, record_name: str | None) -> str | None:
    """`orders-shop.Order`."""
    return None if context.topic is None or record_name is None else f"{context.topic}-{record_name}"


STRATEGIES: dict[str, SubjectNameStrategy] = {
    "topic": topic_name,
    "topicname": topic_name,
    "record": record_name,
    "recordname": record_name,
    "topicrecord": topic_record_name,
    "topicrecordname": topic_record_name,
}


def strategy_of(given: object) -> SubjectNameStrategy:
    """A strategy by its function, its word (TOPIC_RECORD), or the name of Confluent's class."""
    if callable(given):
        return given
    word = str(given).rpartition(".")[2].replace("_", "").lower().removesuffix("strategy")
    word = word.removesuffix("subject")
    if word not in STRATEGIES:
        raise ValueError(
            f"subject.name.strategy {given} is none of TOPIC, RECORD, TOPIC_RECORD, and no function"
        )
    return STRATEGIES[word]


def reference_name(import_path: str) -> str:
    """The subject of a Protobuf file that another imports: its path."""
    return import_path


def qualified_reference_name(import_path: str) -> str:
    """`shop/address.proto` becomes `shop.address`."""
    return import_path.removesuffix(".proto").replace("/", ".")
