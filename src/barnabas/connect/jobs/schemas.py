"""One schema for the records of a topic in a batch, although their schemas differ.

In: schemas of packets, in the order of their records. Out: a schema that holds them all: fields of both,
optional where one has none, wider numbers; or where a range must end, because a schema does not fit those
before it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.data import Field, Schema, Type

WIDTHS = (
    (Type.INT8, Type.INT16, Type.INT32, Type.INT64),
    (Type.FLOAT32, Type.FLOAT64),
)
PRECISION = "connect.decimal.precision"
DIGITS = 38

Shape = tuple[Schema | None, Schema | None]  # of keys and values


def united(one: Schema | None, other: Schema | None) -> Schema | None:
    """A schema for values of both; None of a side means nulls only. DoesNotFit if there is none."""
    if one is None or other is None:
        found = one or other
        return None if found is None else found.as_optional()
    if one == other:
        return one
    optional = one.optional or other.optional
    if one.type is Type.STRUCT and other.type is Type.STRUCT:
        return replace(other, fields=united_fields(one, other), optional=optional, default=None)
    if one.logical != other.logical:
        raise DoesNotFit(one, other)
    if one.logical is not None and one.type is Type.BYTES:
        if one.scale != other.scale:
            raise DoesNotFit(one, other)
        digits = max(int(each.parameters.get(PRECISION, DIGITS)) for each in (one, other))
        return replace(other, optional=optional, parameters={**other.parameters, PRECISION: str(digits)})
    if one.type is other.type:
        return replace(
            other,
            optional=optional,
            key=united(one.key, other.key) if one.type is Type.MAP else None,
            value=united(one.value, other.value) if one.type in (Type.MAP, Type.ARRAY) else None,
        )
    for widths in WIDTHS:
        if one.type in widths and other.type in widths and one.logical is None:
            wider = max(one, other, key=lambda each: widths.index(each.type))
            return replace(wider, optional=optional)
    raise DoesNotFit(one, other)


def united_fields(one: Schema, other: Schema) -> tuple[Field, ...]:
    found = []
    for name in dict.fromkeys([*one.field_names, *other.field_names]):
        schema = united(one.field(name), other.field(name))
        assert schema is not None
        found.append(Field(name, schema))
    return tuple(found)


class DoesNotFit(Exception):
    def __init__(self, one: Schema, other: Schema) -> None:
        super().__init__(f"{shown(one)} and {shown(other)}")


def shown(schema: Schema) -> str:
    return schema.logical.rpartition(".")[2] if schema.logical else str(schema.type)


@dataclass(frozen=True, slots=True)
class Packet:
    """Some rows of a topic, as executors report them."""

    source: TopicPartition
    first: int
    topic: str
    count: int
    key: Schema | None
    value: Schema | None


@dataclass(slots=True)
class Shapes:
    """The schemas of each topic, and where ranges end that do not fit."""

    by_topic: dict[str, Shape] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    cuts: dict[TopicPartition, int] = field(default_factory=dict)


def shapes_of(packets: Iterable[Packet]) -> Shapes:
    """Unite schemas partition by partition, in the order of offsets. A partition whose next packet does not
    fit is cut before it; that packet begins the next batch."""
    found = Shapes()
    for each in sorted(packets, key=lambda packet: (packet.source, packet.first)):
        if each.source in found.cuts:
            continue
        known = found.by_topic.get(each.topic)
        try:
            shape = (
                (each.key, each.value)
                if known is None
                else (united(known[0], each.key), united(known[1], each.value))
            )
        except DoesNotFit:
            found.cuts[each.source] = each.first
            continue
        found.by_topic[each.topic] = shape
        found.counts[each.topic] = found.counts.get(each.topic, 0) + each.count
    return found


def cut_ranges(
    ranges: Mapping[TopicPartition, tuple[int, int]], cuts: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[int, int]]:
    return {where: (first, cuts.get(where, end)) for where, (first, end) in ranges.items()}
