"""A customer's contact gets a second version: the naive one is refused, the careful one reads old data."""

from __future__ import annotations

import io
import json

import fastavro

from barnabas.schemas.avro.parsing import parse
from barnabas.schemas.model import CompatibilityPolicy

FIRST = """{
  "type": "record", "name": "CustomerContact", "namespace": "course.crm",
  "fields": [
    {"name": "customer_id", "type": "long"},
    {"name": "mail", "type": "string"},
    {"name": "phone", "type": ["null", "string"], "default": null},
    {"name": "channel", "type": {"type": "enum", "name": "Channel", "symbols": ["MAIL", "PHONE", "FAX"]}}
  ]
}"""

NAIVE = """{
  "type": "record", "name": "CustomerContact", "namespace": "course.crm",
  "fields": [
    {"name": "customer_id", "type": "int"},
    {"name": "email_address", "type": "string"},
    {"name": "consent", "type": "boolean"},
    {"name": "channel", "type": {"type": "enum", "name": "Channel", "symbols": ["MAIL", "PHONE", "CHAT"]}}
  ]
}"""

CAREFUL = """{
  "type": "record", "name": "Contact", "namespace": "course.crm", "aliases": ["CustomerContact"],
  "fields": [
    {"name": "customer_id", "type": "long"},
    {"name": "email_address", "type": "string", "aliases": ["mail"]},
    {"name": "consent", "type": "boolean", "default": false},
    {"name": "channel", "type": {"type": "enum", "name": "Channel",
                                 "symbols": ["MAIL", "PHONE", "CHAT", "OTHER"], "default": "OTHER"}}
  ]
}"""


def test_the_naive_second_version_is_refused_with_every_reason() -> None:
    reasons = parse(NAIVE, strict=True).incompatibilities(parse(FIRST), CompatibilityPolicy.STRICT)

    assert [(one.kind, one.path) for one in reasons] == [
        ("TYPE_MISMATCH", "/fields/0/type"),
        ("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1"),
        ("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/2"),
        ("MISSING_ENUM_SYMBOLS", "/fields/3/type/symbols"),
    ]
    assert "The field 'email_address' at path '/fields/1' in the new schema has no default value" in (
        reasons[1].printed()
    )
    assert "missing enum symbols '[FAX]'" in reasons[3].printed()


def test_the_second_version_with_aliases_and_defaults_reads_old_data() -> None:
    first, careful = parse(FIRST, strict=True), parse(CAREFUL, strict=True)
    assert careful.incompatibilities(first, CompatibilityPolicy.STRICT) == []
    written = io.BytesIO()
    old = {"customer_id": 7, "mail": "a@example.org", "phone": None, "channel": "FAX"}
    fastavro.schemaless_writer(written, json.loads(first.canonical), old)
    written.seek(0)

    found = fastavro.schemaless_reader(written, json.loads(first.canonical), json.loads(careful.canonical))

    assert found == {"customer_id": 7, "email_address": "a@example.org", "consent": False, "channel": "OTHER"}


def test_the_first_version_cannot_read_data_of_the_second() -> None:
    reasons = parse(FIRST).incompatibilities(parse(CAREFUL), CompatibilityPolicy.STRICT)

    assert [one.kind for one in reasons] == [
        "NAME_MISMATCH",
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "MISSING_ENUM_SYMBOLS",
    ]
    assert "in the old schema has no default value and is missing in the new schema" in (
        reasons[1].printed(new_reads_old=False)
    )
