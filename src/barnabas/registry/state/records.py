"""Records of the registry's topic: keys and values as JSON, fields in the order of other registries.

In: values of the state. Out: bytes. Kafka compacts by the bytes of keys, so their order of fields matters.
Does not know: what the records mean; `apply` does.
"""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple

from barnabas.registry.state.config import Config, Mode
from barnabas.registry.state.model import Content
from barnabas.schemas.model import Reference, SchemaType

TENANT = "default"


class Record(NamedTuple):
    key: bytes
    value: bytes | None


def compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def schema_record(
    subject: str, number: int, schema_id: int, content: Content, *, deleted: bool = False
) -> Record:
    value: dict[str, Any] = {
        "subject": subject,
        "version": number,
        "id": schema_id,
        "md5": base64.b64encode(content.md5).decode(),
    }
    if content.schema_type != SchemaType.AVRO:
        value["schemaType"] = str(content.schema_type)
    if content.references:
        value["references"] = [reference_json(each) for each in content.references]
    if content.metadata is not None:
        value["metadata"] = content.metadata.to_json()
    if content.rules is not None:
        value["ruleSet"] = content.rules.to_json()
    value["schema"] = content.text
    value["deleted"] = deleted
    return Record(schema_key(subject, number), compact(value))


def reference_json(reference: Reference) -> dict[str, Any]:
    return {"name": reference.name, "subject": reference.subject, "version": reference.version}


def schema_key(subject: str, number: int) -> bytes:
    return compact({"keytype": "SCHEMA", "subject": subject, "version": number, "magic": 1})


def schema_tombstone(subject: str, number: int) -> Record:
    return Record(schema_key(subject, number), None)


def subject_key(keytype: str, subject: str | None) -> bytes:
    return compact({"keytype": keytype, "subject": subject, "magic": 0})


def config_record(subject: str | None, config: Config | None) -> Record:
    """A subject of None is the default context. A configuration of None is a tombstone."""
    value = None if config is None else compact({**named(subject), **config.to_json()})
    return Record(subject_key("CONFIG", subject), value)


def mode_record(subject: str | None, mode: Mode | None) -> Record:
    value = None if mode is None else compact({**named(subject), "mode": mode})
    return Record(subject_key("MODE", subject), value)


def named(subject: str | None) -> dict[str, str]:
    return {} if subject is None else {"subject": subject}


def delete_subject_record(subject: str, version_max: int) -> Record:
    value = compact({"subject": subject, "version": version_max})
    return Record(subject_key("DELETE_SUBJECT", subject), value)


def clear_subject_record(subject: str | None) -> Record:
    return Record(subject_key("CLEAR_SUBJECT", subject), compact({"subject": subject}))


def context_record(context: str, *, is_gone: bool = False) -> Record:
    key = compact({"keytype": "CONTEXT", "tenant": TENANT, "context": context, "magic": 0})
    return Record(key, None if is_gone else compact({"tenant": TENANT, "context": context}))
