"""Registering schemas: ids, versions, modes, what is inherited, what is refused."""

from __future__ import annotations

import pytest

from barnabas.registry.state.checking import incompatibilities
from barnabas.registry.state.commands import (
    ChangeConfig,
    ChangeMode,
    DeleteConfig,
    DeleteMode,
    DeleteSubject,
    DeleteVersion,
    RegisterSchema,
    SchemaRequest,
    TagVersion,
)
from barnabas.registry.state.config import Level, Mode
from barnabas.registry.state.contracts import Metadata, Rule, RuleSet
from barnabas.registry.state.deciding import Rules
from barnabas.registry.state.registering import lookup
from barnabas.schemas.model import Reference
from barnabas.services.errors import ApiError
from registry.desk import Desk


def refused(desk: Desk, subject: str, text: str = '{"a":1}', **given: object) -> int:
    force = bool(given.pop("force", False))
    return desk.refusal(RegisterSchema(subject, SchemaRequest(text, **given), force=force))  # type: ignore[arg-type]


def place(desk: Desk, subject: str, text: str = '{"a":1}', **given: object) -> tuple[int, int]:
    found = desk.register(subject, text, **given)
    return found.version, found.schema_id


def test_the_same_schema_has_the_same_id_in_all_subjects_of_a_context() -> None:
    desk = Desk()
    assert place(desk, "s") == (1, 1)
    assert place(desk, "s", '{ "a" : 1 }') == (1, 1)
    assert place(desk, "t") == (1, 1)
    assert place(desk, "s", '{"b":1}') == (2, 2)
    assert place(desk, ":.x:s", '{"b":1}') == (1, 1)
    assert place(desk, ":.:s", '{"b":1}') == (2, 2)
    assert place(desk, "u", schema_type="JSON") == (
        1,
        3,
    )  # the same text in another language is another schema
    assert len(desk.log) == 6


def test_a_schema_moves_to_a_new_version_with_its_old_id() -> None:
    desk = Desk()
    assert [place(desk, "s", text) for text in ('{"a":1}', '{"b":1}')] == [(1, 1), (2, 2)]
    desk.do(DeleteVersion("s", 1))
    assert place(desk, "s") == (3, 1)
    assert sorted(desk.state.subject("s").versions) == [2, 3]  # type: ignore[union-attr]


def test_numbers_come_back_after_a_hard_delete_and_ids_do_not() -> None:
    desk = Desk()
    place(desk, "s")
    place(desk, "s", '{"b":1}')
    desk.do(DeleteVersion("s", 2))
    desk.do(DeleteVersion("s", 2, permanent=True))
    assert place(desk, "s", '{"c":1}') == (2, 3)
    desk.do(DeleteSubject("s"))
    assert place(desk, "s", '{"d":1}') == (3, 4)


def test_versions_may_be_asked_for_only_if_they_are_next() -> None:
    desk = Desk()
    assert refused(desk, "s", version=2) == 42201
    assert place(desk, "s", version=1)[0] == 1
    assert place(desk, "s", version=1)[0] == 1
    assert refused(desk, "s", '{"b":1}', version=1) == 42201
    assert desk.register("s", '{"b":1}', version=-1).content.metadata == Metadata(
        properties={"confluent:version": "2"}
    )
    assert desk.register("s", '{"c":1}').content.metadata == Metadata(properties={"confluent:version": "3"})


@pytest.mark.parametrize(
    ("level", "new", "is_compatible"),
    [
        (Level.NONE, '{"z":null}', True),
        (Level.BACKWARD, '{"c":null}', False),
        (Level.BACKWARD, '{"b":null,"x":0}', True),
        (Level.BACKWARD, '{"b":null,"a":null}', False),
        (Level.BACKWARD_TRANSITIVE, '{"b":null,"x":0}', False),
        (Level.BACKWARD_TRANSITIVE, '{"b":0}', True),
        (Level.FORWARD, '{"a":0}', False),
        (Level.FORWARD, '{"b":0}', True),
        (Level.FORWARD_TRANSITIVE, '{"b":0}', False),
        (Level.FORWARD_TRANSITIVE, '{"a":0,"b":0}', True),
        (Level.FULL, '{"b":0,"c":null}', False),
        (Level.FULL, '{"b":0,"c":0}', True),
        (Level.FULL_TRANSITIVE, '{"b":0,"c":0}', False),
        (Level.FULL_TRANSITIVE, '{"a":0,"b":0,"c":0}', True),
    ],
)
def test_levels_choose_the_versions_and_the_direction(level: Level, new: str, is_compatible: bool) -> None:
    desk = Desk()
    desk.register("s", '{"a":null}')
    desk.register("s", '{"b":null}', force=True)
    desk.register("s", '{"deleted":null}', force=True)
    desk.do(DeleteVersion("s", 3))
    desk.do(ChangeConfig("s", {"level": level}))
    if is_compatible:
        assert place(desk, "s", new)[0] == 4
    else:
        assert refused(desk, "s", new) == 40901
        assert refused(desk, "s", '{"b":null}', schema_type="JSON") == 40901
        assert place(desk, "s", new, force=True)[0] == 4


def test_the_message_names_the_version_and_the_rules() -> None:
    desk = Desk()
    desk.register("s")
    with pytest.raises(ApiError) as caught:
        desk.register("s", '{"b":null}')
    assert caught.value.message == (
        'Schema being registered is incompatible with an earlier schema for subject "s", details: '
        "[{errorType:'MISSING', field:'b'}, {oldSchemaVersion: 1}, {oldSchema: '{\"a\":1}'}, "
        "{validateFields: 'false', compatibility: 'BACKWARD'}]"
    )
    assert caught.value.status == 409


def test_groups_compare_only_within() -> None:
    desk = Desk()
    desk.do(ChangeConfig("s", {"group": "major"}))
    one, two = Metadata(properties={"major": "1"}), Metadata(properties={"major": "2"})
    desk.register("s", '{"a":null}', metadata=one)
    desk.register("s", '{"b":null}', metadata=two)
    assert refused(desk, "s", '{"a":null,"b":null}', metadata=one) == 40901
    assert refused(desk, "s", '{"c":null}') == 40901  # inherits the metadata of version 2
    assert place(desk, "s", '{"a":null,"c":0}', metadata=one)[0] == 3


def test_a_check_against_one_version_stays_within_the_group() -> None:
    desk = Desk()
    desk.do(ChangeConfig("s", {"group": "major"}))
    for major, text in (("1", '{"a":null}'), ("2", '{"b":null}')):
        desk.register("s", text, metadata=Metadata(properties={"major": major}))

    def found(major: str, number: int) -> bool:
        request = SchemaRequest('{"c":null}', metadata=Metadata(properties={"major": major}))
        return bool(incompatibilities("s", request, number, desk.state, desk.decider.reader))

    assert (found("1", 1), found("1", 2), found("1", -1)) == (True, False, False)
    assert (found("2", 1), found("2", 2), found("2", -1)) == (False, True, True)


def test_reserved_names_are_refused() -> None:
    desk = Desk()
    desk.do(ChangeConfig("s", {"validate_fields": True}))
    reserved = Metadata(properties={"confluent:reserved": "x, y"})
    assert refused(desk, "s", '{"$$a":1}') == 42201
    assert refused(desk, "s", '{"x":1}', metadata=reserved) == 40901
    desk.register("s", '{"a":1}', metadata=reserved)
    assert refused(desk, "s", '{"a":1,"y":1}') == 40901
    assert place(desk, "s", '{"a":1,"z":1}')[0] == 2


def test_modes_forbid_what_they_should() -> None:
    desk = Desk()
    desk.register("s")
    assert refused(desk, "s", '{"b":1}', schema_id=7) == 42205
    desk.do(ChangeMode(None, "READONLY"))
    assert place(desk, "s") == (1, 1)  # a schema that is there is found in any mode
    for command in (
        DeleteSubject("s"),
        DeleteVersion("s", 1),
        ChangeConfig("s", {"level": Level.NONE}),
        ChangeConfig(None, {"level": Level.NONE}),
        DeleteConfig(None),
    ):
        assert desk.refusal(command) == 42205
    assert refused(desk, "s", '{"b":1}') == 42205
    assert desk.refusal(ChangeMode(None, "IMPORT")) == 42205  # live subjects
    desk.do(ChangeMode(None, "IMPORT", force=True))
    assert refused(desk, "s", '{"b":1}') == 42205  # needs an id
    assert refused(desk, "s", '{"b":1}', schema_id=1) == 42205  # the id of another schema
    assert refused(desk, "s", '{"b":1}', schema_id=2**31) == 42201
    assert place(desk, "s", '{"b":null}', schema_id=40, version=9) == (9, 40)
    assert place(desk, "s", '{"b":null}', schema_id=40, version=9) == (9, 40)
    assert place(desk, "s", '{"c":null}', schema_id=41) == (10, 41)
    assert place(desk, "s", '{"d":null}', schema_id=42, version=9) == (9, 42)  # in the place of 40
    assert desk.state.contexts["."].content(40) is None
    assert desk.refusal(ChangeMode("s", "FORWARD")) == 42204
    assert desk.refusal(ChangeMode("s", "READONLY_OVERRIDE")) == 42204
    assert desk.refusal(ChangeMode("s", "ASLEEP")) == 42204
    assert desk.do(DeleteMode(None)) is Mode.IMPORT
    assert desk.refusal(DeleteMode("s")) == 40401
    assert place(desk, "s", '{"e":1}', force=True) == (11, 43)


def test_import_wipes_what_was_deleted_softly() -> None:
    desk = Desk()
    desk.register("s")
    desk.register("t", '{"s":1}', references=(Reference("s", "s", 1),))
    desk.do(DeleteSubject("t"))
    desk.do(DeleteSubject("s"))
    assert desk.refusal(ChangeMode("s", "IMPORT")) == 42206
    desk.do(ChangeMode(None, "IMPORT"))
    assert desk.state.subjects() == []
    assert desk.log[-2].key == b'{"keytype":"CLEAR_SUBJECT","subject":null,"magic":0}'


def test_modes_of_a_context_go_with_it() -> None:
    desk = Desk()
    for name in (":.x:", ":.x:s", "s", None):
        desk.do(ChangeMode(name, "READONLY"))
    assert desk.do(DeleteMode(":.x:", recursive=True)) is Mode.READONLY
    assert set(desk.state.modes) == {"s", None}
    desk.do(DeleteMode(None, recursive=True))
    assert not desk.state.modes
    fixed = Desk(rules=Rules(mode_is_mutable=False))
    assert fixed.refusal(ChangeMode(None, "READONLY")) == 42205
    assert fixed.refusal(DeleteMode(None)) == 42205


def test_deletes_are_soft_first() -> None:
    desk = Desk()
    assert desk.refusal(DeleteSubject("s")) == 40401
    assert desk.refusal(DeleteVersion("s", 1)) == 40401
    desk.register("s")
    desk.register("s", '{"b":1}')
    desk.do(ChangeConfig("s", {"level": Level.NONE}))
    assert desk.refusal(DeleteSubject("s", permanent=True)) == 40405
    assert desk.refusal(DeleteVersion("s", 1, permanent=True)) == 40407
    assert desk.refusal(DeleteVersion("s", 3)) == 40402
    assert desk.do(DeleteVersion("s", -1)) == 2
    assert desk.refusal(DeleteVersion("s", 2)) == 40406
    assert desk.do(DeleteVersion("s", 2, permanent=True)) == 2
    assert "s" in desk.state.configs
    assert desk.do(DeleteSubject("s")) == [1]
    assert "s" not in desk.state.configs
    assert desk.refusal(DeleteSubject("s")) == 40404
    assert desk.do(DeleteSubject("s", permanent=True)) == [1]
    assert desk.refusal(DeleteSubject("s", permanent=True)) == 40401


def test_a_version_that_others_refer_to_stays() -> None:
    desk = Desk()
    assert refused(desk, "t", references=(Reference("s", "s", 1),)) == 42201
    desk.register("s")
    desk.register("s", '{"b":1,"s":1}', references=(Reference("s", "s", 1),))
    desk.register("t", '{"s":1}', references=(Reference("s", "s", 1),))
    desk.register(":.x:t", '{"s":1}', references=(Reference("s", ":.:s", 1),))
    assert desk.refusal(DeleteVersion("s", 1)) == 42206
    assert desk.refusal(DeleteSubject("s")) == 42206
    desk.do(DeleteSubject("t"))
    desk.do(DeleteSubject(":.x:t"))
    assert desk.do(DeleteSubject("s")) == [1, 2]  # its own reference is forgiven
    assert desk.refusal(DeleteSubject("s", permanent=True)) == 42206
    desk.do(DeleteSubject("t", permanent=True))
    desk.do(DeleteSubject(":.x:t", permanent=True))
    assert desk.do(DeleteSubject("s", permanent=True)) == [1, 2]
    assert desk.state.references._referring == {}


def test_two_more_ways_to_find_a_schema_with_references() -> None:
    desk = Desk()
    desk.register("s", '{"x":1}')
    found = desk.register("t", '{"s":1}', references=(Reference("s", "s", 1),))
    assert place(desk, "t", '{"s":1}', references=(Reference("s", "s", -1),)) == (1, found.schema_id)
    assert place(desk, "t", '{"s":{"x":1}}') == (1, found.schema_id)
    reader = desk.decider.reader
    request = SchemaRequest('{"s":1}', references=(Reference("s", "s", 2),))
    with pytest.raises(ApiError, match="No schema reference found"):
        lookup("t", request, desk.state, reader)


@pytest.mark.parametrize("subject", ["s", ":.x:s"])
def test_a_schema_does_not_refer_to_itself(subject: str) -> None:
    desk = Desk()
    desk.do(ChangeConfig(None, {"level": Level.NONE}))
    desk.do(ChangeConfig(":.x:", {"level": Level.NONE}))
    desk.register(subject, '{"x":1}')
    for named in {"s", subject}:
        assert refused(desk, subject, '{"s":1}', references=(Reference("s", named, -1),)) == 42201
    assert place(desk, subject, '{"s":1}', references=(Reference("s", "s", 1),))[0] == 2


def test_metadata_and_rules_are_inherited_and_merged() -> None:
    desk = Desk()
    rule = Rule("one", type="CEL", mode="WRITE")
    desk.do(
        ChangeConfig(
            "s",
            {
                "default_metadata": Metadata(
                    properties={"owner": "nobody", "zone": "eu"}, tags={"a": ("x",)}
                ),
                "override_metadata": Metadata(properties={"zone": "us"}, tags={"a": ("y",)}),
                "default_rule_set": RuleSet(domain_rules=(rule, Rule("two", type="CEL"))),
                "override_rule_set": RuleSet(domain_rules=(Rule("two", type="JSONATA"),)),
            },
        )
    )
    mine = Metadata(properties={"owner": "me"}, sensitive=("owner",))
    first = desk.register("s", metadata=mine, rules=RuleSet(domain_rules=(Rule("three", type="CEL"),)))
    assert first.content.metadata == Metadata({"a": ("x", "y")}, {"owner": "me", "zone": "us"}, ("owner",))
    assert first.content.rules is not None and first.content.rules.domain_rules is not None
    assert [(each.name, each.type) for each in first.content.rules.domain_rules] == [
        ("one", "CEL"),
        ("three", "CEL"),
        ("two", "JSONATA"),
    ]
    second = desk.register("s", '{"b":1}')
    assert second.content.metadata == first.content.metadata and second.content.rules == first.content.rules
    third = desk.register("s", "", metadata=Metadata(properties={"owner": "you"}))
    assert (third.version, third.content.text) == (3, '{"b":1}')
    assert refused(desk, "new", "") == 42201


@pytest.mark.parametrize(
    "rules",
    [
        RuleSet(domain_rules=(Rule(type="CEL"),)),
        RuleSet(domain_rules=(Rule("1st", type="CEL"),)),
        RuleSet(domain_rules=(Rule("a"),)),
        RuleSet(domain_rules=(Rule("a", type="CEL"),), migration_rules=(Rule("a", type="CEL"),)),
        RuleSet(domain_rules=(Rule("a", type="CEL", mode="UPGRADE"),)),
        RuleSet(migration_rules=(Rule("a", type="CEL", mode="READ"),)),
        RuleSet(encoding_rules=(Rule("a", type="CEL", mode="UPDOWN"),)),
    ],
)
def test_rule_sets_are_checked(rules: RuleSet) -> None:
    desk = Desk()
    assert refused(desk, "s", rules=rules) == 42210
    assert desk.refusal(ChangeConfig("s", {"default_rule_set": rules})) == 42210


@pytest.mark.parametrize("name", ["a\nb", "__GLOBAL", "__EMPTY", ":.__GLOBAL:s", ":.x:", "a\x85"])
def test_subjects_that_cannot_be(name: str) -> None:
    assert refused(Desk(), name) == 42208


def test_normalizing_makes_one_schema_of_two() -> None:
    desk = Desk()
    assert place(desk, "s", '{"b":1,"a":1}', normalize=True) == (1, 1)
    assert place(desk, "s", '{"a":1,"b":1}') == (1, 1)
    assert place(desk, "s", '{"b":1,"a":1}') == (2, 2)
    desk.do(ChangeConfig("s", {"normalize": True}))
    assert place(desk, "s", '{"b":1,"a":1}') == (1, 1)


def test_new_schemas_are_checked_more_strictly_than_stored_ones() -> None:
    desk = Desk()
    assert refused(desk, "s", '{"a":"bad default"}') == 42201
    desk.do(ChangeConfig("s", {"validate_new_schemas": False}))
    assert place(desk, "s", '{"a":"bad default"}') == (1, 1)
    desk.do(ChangeConfig("s", {"validate_new_schemas": None}))
    assert place(desk, "s", '{"a":"bad default"}') == (1, 1)


def test_a_version_gets_other_rules_in_a_new_version() -> None:
    desk = Desk()
    assert desk.refusal(TagVersion("s", 1)) == 40401
    desk.register("s", rules=RuleSet(domain_rules=(Rule("a", type="CEL"), Rule("b", type="CEL"))))
    assert desk.refusal(TagVersion("s", 2)) == 40402
    merge = RuleSet(domain_rules=(Rule("c", type="CEL"),))
    changed = desk.do(TagVersion("s", -1, rules_to_merge=merge, rules_to_remove=("a",)))
    assert changed.version == 2
    assert [each.name for each in changed.content.rules.domain_rules] == ["b", "c"]


def test_a_schema_that_was_imported_with_another_id_is_found_in_its_subject() -> None:
    desk = Desk()
    assert place(desk, "s") == (1, 1)
    desk.do(ChangeMode("t", "IMPORT"))
    assert place(desk, "t", schema_id=40) == (1, 40)
    desk.do(DeleteMode("t"))
    found = lookup("t", SchemaRequest('{"a":1}'), desk.state, desk.decider.reader)
    assert found is not None and (found.number, found.schema_id) == (1, 40)
    assert place(desk, "t") == (1, 40)  # no second version
    assert place(desk, "u") == (1, 1)  # the id that was first


def test_a_schema_keeps_its_other_id_when_the_first_one_is_gone() -> None:
    desk = Desk()
    place(desk, "s")
    desk.do(ChangeMode("t", "IMPORT"))
    place(desk, "t", schema_id=40)
    for permanent in (False, True):
        desk.do(DeleteSubject("s", permanent))
    assert place(desk, "u") == (1, 40)
    assert place(desk.again(), "v") == (1, 40)
    for permanent in (False, True):
        desk.do(DeleteSubject("t", permanent))
        desk.do(DeleteSubject("u", permanent))
    assert place(desk, "v") == (1, 41)
