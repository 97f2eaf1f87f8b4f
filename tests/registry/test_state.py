"""Records of the registry's topic: written byte for byte as other registries do, and applied in any order."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from typing import Any

import pytest

from barnabas.registry.state import records
from barnabas.registry.state.commands import (
    ChangeConfig,
    ChangeMode,
    DeleteContext,
    DeleteSubject,
    DeleteVersion,
)
from barnabas.registry.state.config import Level, Mode
from barnabas.registry.state.contracts import Metadata, Rule, RuleSet
from barnabas.registry.state.lookups import by_guid
from barnabas.registry.state.model import Content
from barnabas.registry.state.records import Record
from barnabas.registry.state.state import State
from barnabas.schemas.model import Reference
from registry.desk import Desk


def texts(written: list[Record]) -> list[tuple[str, str | None]]:
    return [(each.key.decode(), each.value.decode() if each.value is not None else None) for each in written]


def test_records_have_the_bytes_of_other_registries() -> None:
    desk = Desk()
    desk.register("käse", '{"a": 1}')
    desk.register(
        ":.eu:s",
        '{"käse": 1}',
        schema_type="JSON",
        references=(Reference("käse", ":.:käse", 1),),
        metadata=Metadata(properties={"owner": "x"}),
        rules=RuleSet(domain_rules=(Rule("r", type="CEL", kind="CONDITION", mode="WRITE", expr="e"),)),
    )
    desk.do(ChangeConfig(None, {"level": Level.FULL}))
    desk.do(ChangeConfig("käse", {"normalize": True}))
    desk.do(ChangeMode(":.eu:", "READONLY"))
    desk.do(ChangeMode(":.eu:", None))
    desk.do(DeleteVersion(":.eu:s", 1))
    desk.do(DeleteSubject("käse"))
    plain = base64.b64encode(hashlib.md5(b'{"a":1}').digest()).decode()
    digest = hashlib.md5('{"käse":1}'.encode())
    digest.update("käse:.:käse".encode() + b"\0\0\0\1" + b"\1ownerx" + b"\1rCONDITIONWRITECELe")
    full = base64.b64encode(digest.digest()).decode()
    eu = (
        f'{{"subject":":.eu:s","version":1,"id":1,"md5":"{full}","schemaType":"JSON",'
        '"references":[{"name":"käse","subject":":.:käse","version":1}],'
        '"metadata":{"properties":{"owner":"x"}},'
        '"ruleSet":{"domainRules":[{"name":"r","kind":"CONDITION","mode":"WRITE","type":"CEL","expr":"e",'
        '"disabled":false}]},"schema":"{\\"käse\\":1}","deleted":'
    )
    assert texts(desk.log) == [
        (
            '{"keytype":"SCHEMA","subject":"käse","version":1,"magic":1}',
            f'{{"subject":"käse","version":1,"id":1,"md5":"{plain}","schema":"{{\\"a\\":1}}","deleted":false}}',
        ),
        (
            '{"keytype":"CONTEXT","tenant":"default","context":".eu","magic":0}',
            '{"tenant":"default","context":".eu"}',
        ),
        ('{"keytype":"SCHEMA","subject":":.eu:s","version":1,"magic":1}', eu + "false}"),
        ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"FULL"}'),
        ('{"keytype":"CONFIG","subject":"käse","magic":0}', '{"subject":"käse","normalize":true}'),
        ('{"keytype":"MODE","subject":":.eu:","magic":0}', '{"subject":":.eu:","mode":"READONLY"}'),
        ('{"keytype":"MODE","subject":":.eu:","magic":0}', None),
        ('{"keytype":"SCHEMA","subject":":.eu:s","version":1,"magic":1}', eu + "true}"),
        ('{"keytype":"DELETE_SUBJECT","subject":"käse","magic":0}', '{"subject":"käse","version":1}'),
        ('{"keytype":"CONFIG","subject":"käse","magic":0}', None),
    ]


def test_a_guid_is_the_digest_of_everything_but_the_type() -> None:
    content = Content("AVRO", '"string"')
    assert content.digest == hashlib.md5(b'"string"').digest()
    assert content.guid.replace("-", "") == content.digest.hex()
    assert Content("JSON", '"string"').digest == content.digest
    assert Content("AVRO", '"string"', metadata=Metadata()).digest != content.digest
    one = Metadata(tags={"a.b": ("PII",)}, properties={"k": "v"}, sensitive=("k",))
    assert Content("AVRO", "x", metadata=one).digest == hashlib.md5(b"x\1a.bPIIkvk").digest()
    rule = Rule("n", "d", "TRANSFORM", "READ", "T", ("t",), {"p": "q"}, "e", "NONE", "DLQ", True)
    rules = RuleSet(migration_rules=(rule,))
    assert (
        Content("AVRO", "x", rules=rules).digest == hashlib.md5(b"x\1ndTRANSFORMREADTtpqeNONEDLQ\1").digest()
    )


def shown(state: State) -> Any:
    """Everything that a state knows, as plain values."""
    return (
        {
            context.name: (
                context.is_recorded,
                {
                    name: [
                        (v.number, v.schema_id, v.content.text, v.content.schema_type, v.is_deleted)
                        for v in subject.sorted(deleted=True)
                    ]
                    for name, subject in context.subjects.items()
                },
                {
                    schema_id: sorted((v.subject.name, v.number) for v in users)
                    for schema_id, users in context.versions_by_id.items()
                },
                dict(context.ids_by_digest),
                context.id_max,
            )
            for context in state.contexts.values()
        },
        dict(state.configs),
        dict(state.modes),
        [each.name for each in state.subjects()],
        {
            key: sorted((v.subject.name, v.number) for v in users)
            for key, users in state.references._referring.items()
        },
    )


def test_a_log_that_is_read_again_gives_the_same_state() -> None:
    desk = Desk()
    rng = random.Random(7)
    names = ["a", "b", ":.x:a", ":.x:c"]
    given_ids: dict[tuple[bool, int], str] = {}  # an id never belongs to a second schema
    for _ in range(600):
        name = rng.choice(names)
        match rng.randrange(8):
            case 0:
                command: Any = DeleteSubject(name, permanent=rng.random() < 0.4)
            case 1 | 2:
                command = DeleteVersion(name, rng.choice([-1, 1, 2, 3]), permanent=rng.random() < 0.5)
            case 3:
                command = ChangeConfig(rng.choice([name, None]), {"level": Level.NONE})
            case _:
                command = None
        try:
            if command is None:
                made = desk.register(name, f'{{"f{rng.randrange(6)}": 1}}', force=True)
                place = (name[:4] == ":.x:", made.schema_id)
                assert given_ids.setdefault(place, made.content.text) == made.content.text
            else:
                desk.do(command)
        except Exception as error:
            assert getattr(error, "code", 0) > 400, error
    assert len(desk.log) > 200
    assert shown(desk.again().state) == shown(desk.state)
    # Compaction keeps the last record of each key; only ids of schemas that are gone are forgotten.
    last = {record.key: offset for offset, record in enumerate(desk.log)}
    kept = Desk()
    kept.put(*(record for offset, record in enumerate(desk.log) if last[record.key] == offset))
    compacted, whole = shown(kept.state), shown(desk.state)
    assert compacted[1:] == whole[1:]
    for name, found in whole[0].items():
        assert {**compacted[0][name][1]} == found[1]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b"{}"),
        (None, None),
        (b"\xff", b"{}"),
        (b"[]", b"{}"),
        (b"1", b"{}"),
        (b'{"keytype":"UNHEARD"}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b"no json"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b"[1]"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"id":1}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"id":-1,"schema":"x"}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":true,"magic":1}', b'{"id":1,"schema":"x"}'),
        (b'{"keytype":"SCHEMA","subject":null,"version":1,"magic":1}', b'{"id":1,"schema":"x"}'),
        (
            b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            b'{"id":1,"schema":"x","references":[1]}',
        ),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"id":1,"schema":"x","metadata":[]}'),
        (b'{"keytype":"CONFIG","subject":"s","magic":0}', b'{"compatibilityLevel":"SIDEWAYS"}'),
        (b'{"keytype":"MODE","subject":"s","magic":0}', b'{"mode":"ASLEEP"}'),
        (b'{"keytype":"MODE","magic":0}', b'{"mode":"IMPORT"}'),
        (b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', b'{"version":1}'),
        (b'{"keytype":"CONTEXT","tenant":"default","magic":0}', b"{}"),
        (b'{"keytype":"ASSOC","tenant":"default","magic":0}', b"{}"),
        (b'{"keytype":["SCHEMA"]}', b"{}"),
        (b"[" * 100_000, b"{}"),
    ],
)
def test_a_record_that_makes_no_sense_changes_nothing(
    key: bytes, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()
    desk.register("t", '{"a":1}')
    before = shown(desk.state)
    desk.state.apply(key, value)
    assert shown(desk.state) == before
    assert "skipped" in caplog.text


def test_a_used_id_with_another_text_is_ignored() -> None:
    desk = Desk()
    desk.register("a", '{"a":1}')
    before = shown(desk.state)
    desk.put(records.schema_record("b", 1, 1, Content("AVRO", '{"b":1}')))
    assert shown(desk.state) == before


def test_records_of_older_registries_are_read() -> None:
    state = State()
    old = {"subject": "s", "version": 3, "id": 12, "schema": '{"a":1}'}
    state.apply(b'{"magic":1,"keytype":"SCHEMA","version":3,"subject":"s"}', json.dumps(old).encode())
    state.apply(b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"NONE"}')
    state.apply(b'{"keytype":"CONFIG","subject":"s","magic":0}', b'{"compatibilityLevel":"FULL","more":1}')
    state.apply(b'{"keytype":"MODE","subject":"s","magic":0}', b'{"mode":"READONLY"}')
    subject = state.subject("s")
    assert subject is not None and subject.latest is not None
    assert (subject.latest.number, subject.latest.schema_id, subject.context.id_max) == (3, 12, 12)
    assert state.config_in_force("s").level is Level.FULL
    assert state.config_in_force("t").level is Level.NONE
    assert state.mode_in_force("s") is Mode.READONLY


def test_a_guid_of_another_registry_stays() -> None:
    desk = Desk()
    value = {"subject": "s", "version": 1, "id": 4, "md5": base64.b64encode(b"0123456789abcdef").decode()}
    key = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    desk.put(Record(key, json.dumps({**value, "schema": '{"a":1}'}).encode()))
    assert by_guid(desk.state, "30313233-3435-3637-3839-616263646566")[0].schema_id == 4
    assert by_guid(desk.state, Content("AVRO", '{"a":1}').guid)[0].schema_id == 4
    assert desk.register("t", '{"a":1}').schema_id == 4  # the same schema, whatever its digest was
    desk.do(DeleteVersion("s", 1))
    assert json.loads(desk.log[-1].value or b"")["md5"] == value["md5"]
    desk.put(Record(key, None), Record(key.replace(b'"s"', b'"t"'), None))
    assert desk.state.contexts["."].ids_by_digest == {}


def test_settings_come_from_the_nearest_scope() -> None:
    desk = Desk()
    state = desk.state
    assert state.config_in_force(":.x:s").level is Level.BACKWARD
    desk.do(ChangeConfig(":.__GLOBAL:", {"level": Level.FULL, "group": "g"}))
    desk.do(ChangeConfig(None, {"level": Level.NONE}))
    assert state.config_in_force(":.x:s").level is Level.FULL
    assert state.config_in_force("s").level is Level.NONE
    assert state.config_in_force("s").group == "g"
    desk.do(ChangeConfig(":.x:", {"level": Level.FORWARD}))
    assert state.config_in_force(":.x:s").level is Level.FORWARD
    desk.do(ChangeConfig(":.x:s", {"normalize": True, "alias": "t"}))
    assert state.config_in_force(":.x:s").level is Level.FORWARD
    assert state.alias_of(":.x:s") == ":.x:t"
    assert state.alias_of("s") == "s"
    desk.do(ChangeMode(":.__GLOBAL:", "READONLY"))
    assert {state.mode_in_force(each) for each in ("s", ":.x:s", None)} == {Mode.READONLY}
    desk.do(ChangeMode(":.x:", "IMPORT"))
    assert state.mode_in_force(":.x:s") is Mode.IMPORT
    desk.do(ChangeMode(None, "READONLY_OVERRIDE"))
    assert state.mode_in_force(":.x:s") is Mode.READONLY_OVERRIDE


def test_a_context_is_listed_until_it_is_deleted() -> None:
    desk = Desk()
    desk.register(":.x:s")
    assert desk.refusal(DeleteContext(".x")) == 42211
    desk.do(DeleteSubject(":.x:s"))
    assert desk.refusal(DeleteContext(".x")) == 42211
    desk.do(DeleteSubject(":.x:s", permanent=True))
    desk.do(DeleteContext(".x"))
    assert not desk.state.contexts[".x"].is_recorded
    assert desk.register(":.x:s", '{"b":1}').schema_id == 2  # an id is never given twice
