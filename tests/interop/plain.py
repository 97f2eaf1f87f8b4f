"""Messages as plain values: dicts to requests of a version, answers to dicts that can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from barnabas.protocol import ErrorCode, Struct
from barnabas.records.batch import compute_crc
from barnabas.records.batch import headers as batch_headers
from barnabas.records.record import read_records

S = TypeVar("S", bound=Struct)


def fill(cls: type[S], values: Mapping[str, Any], version: int) -> S:
    """A struct with these values; those that the version does not know are left out."""
    fields = {field.name: field for field in cls.schema.fields}
    unknown = set(values) - set(fields)
    if unknown:
        raise KeyError(f"{cls.schema.name} has no {sorted(unknown)}, only {sorted(fields)}")
    filled = {}
    for name, value in values.items():
        field = fields[name]
        if version not in field.versions:
            continue
        if field.struct is not None and value is not None:
            if field.is_array:
                value = [fill(field.struct, each, version) for each in value]
            else:
                value = fill(field.struct, value, version)
        filled[name] = value
    return cls(**filled)


def plain(struct: Struct, version: int) -> dict[str, Any]:
    """A struct as a dict of the fields that the version has."""
    answer: dict[str, Any] = {}
    for field in struct.schema.fields:
        if version not in field.versions:
            continue
        value = getattr(struct, field.name)
        if field.struct is not None and value is not None:
            value = [plain(each, version) for each in value] if field.is_array else plain(value, version)
        elif field.type == "Records":
            value = batches(bytes(value)) if value is not None else None
        elif field.name == "error_code":
            value = ErrorCode(value).name
        answer[field.name] = value
    if struct.unknown_tagged_fields:
        answer["unknown_tagged_fields"] = [
            [number, data.hex()] for number, data in struct.unknown_tagged_fields
        ]
    return answer


def batches(data: bytes) -> list[dict[str, Any]]:
    """What a consumer sees in fetched bytes: whole batches; it does not notice one cut at the end."""
    found: list[dict[str, Any]] = []
    for position, header in batch_headers(data):
        if position + header.size > len(data):
            break
        batch = data[position : position + header.size]
        one: dict[str, Any] = {
            "base_offset": header.base_offset,
            "last_offset_delta": header.last_offset_delta,
            "partition_leader_epoch": header.partition_leader_epoch,
            "attributes": header.attributes,
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
            "base_timestamp": header.base_timestamp,
            "max_timestamp": header.max_timestamp,
            "crc_is_right": compute_crc(batch, 0, header.size) == header.crc,
            "records": [record(each) for each in read_records(batch)],
        }
        if not header.compression:
            one["size"] = header.size
        found.append(one)
    return found


def record(each: Any) -> dict[str, Any]:
    shown = {
        "offset": each.offset,
        "timestamp": each.timestamp,
        "key": text(each.key),
        "value": text(each.value),
    }
    if each.headers:
        shown["headers"] = [[name, text(value)] for name, value in each.headers]
    return shown


def text(data: bytes | None) -> str | None:
    """Short bytes as text, long ones by length."""
    if data is None:
        return None
    return data.decode("latin-1") if len(data) <= 40 else f"{len(data)} bytes"
