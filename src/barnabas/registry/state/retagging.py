"""A new version made of an old one, with other tags, metadata or rules.

In: the number of a version and changes. Out: what registering the changed schema gives.
Does not know: the log.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.registry.state import refusals
from barnabas.registry.state.commands import Decision, Registered, RegisterSchema, SchemaRequest, TagVersion
from barnabas.registry.state.contracts import Rule, RuleSet, merged_rule_sets
from barnabas.registry.state.parsed import SchemaReader
from barnabas.registry.state.references import LATEST
from barnabas.registry.state.registering import register
from barnabas.registry.state.state import State


def tag_version(command: TagVersion, state: State, reader: SchemaReader) -> Decision[Registered]:
    subject = state.subject(command.subject)
    if subject is None or subject.latest is None:
        raise refusals.subject_not_found(command.subject)
    version = subject.latest if command.version == LATEST else subject.versions.get(command.version)
    if version is None or version.is_deleted:
        raise refusals.version_not_found(command.version)
    content = version.content
    rules = content.rules if command.rules is None else command.rules
    rules = without(merged_rule_sets(rules, command.rules_to_merge), command.rules_to_remove)
    request = SchemaRequest(
        text=content.text,
        schema_type=content.schema_type,
        references=content.references,
        metadata=content.metadata if command.metadata is None else command.metadata,
        rules=rules,
        version=command.new_version,
        tags_to_add=command.tags_to_add,
        tags_to_remove=command.tags_to_remove,
    )
    return register(RegisterSchema(command.subject, request), state, reader)


def without(rules: RuleSet | None, names: tuple[str, ...]) -> RuleSet | None:
    if rules is None or not names:
        return rules

    def kept(some: tuple[Rule, ...] | None) -> tuple[Rule, ...] | None:
        return None if some is None else tuple(rule for rule in some if rule.name not in names)

    return replace(
        rules,
        migration_rules=kept(rules.migration_rules),
        domain_rules=kept(rules.domain_rules),
        encoding_rules=kept(rules.encoding_rules),
    )
