"""Data contracts: metadata and rule sets that belong to a schema.

In: their JSON. Out: frozen values that can be printed, hashed, merged and checked. Sets and maps are sorted,
because the identity of a schema is a hash over them.
Does not know: how rules run; clients run them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

VERSION_PROPERTY = "confluent:version"
RESERVED_PROPERTY = "confluent:reserved"
KINDS = frozenset({"TRANSFORM", "CONDITION"})
DOMAIN_MODES = frozenset({"WRITE", "READ", "WRITEREAD"})
MIGRATION_MODES = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"})
ENABLE_AT = frozenset({"ALL", "CLIENT", "GATEWAY", "SERVER", "NONE"})
RULE_NAME = re.compile(r"[^\W\d_]\S*")
RULES_MAX = 1000
ENTRIES_MAX = 10_000  # of a map or a set


@dataclass(frozen=True, slots=True)
class Metadata:
    tags: Mapping[str, tuple[str, ...]] | None = None  # a path in the schema and the tags of its fields
    properties: Mapping[str, str] | None = None
    sensitive: tuple[str, ...] | None = None  # names of properties

    def to_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        if self.tags:
            shown["tags"] = {path: list(tags) for path, tags in self.tags.items()}
        if self.properties:
            shown["properties"] = dict(self.properties)
        if self.sensitive:
            shown["sensitive"] = list(self.sensitive)
        return shown

    def hashed(self) -> Iterator[bytes]:
        for path, tags in (self.tags or {}).items():
            yield path.encode()
            yield from (tag.encode() for tag in tags)
        for name, value in (self.properties or {}).items():
            yield name.encode()
            yield value.encode()
        yield from (name.encode() for name in self.sensitive or ())

    def property(self, name: str) -> str | None:
        return (self.properties or {}).get(name)

    def with_property(self, name: str, value: str) -> Metadata:
        properties = dict(sorted({**(self.properties or {}), name: value}.items()))
        return replace(self, properties=properties)


@dataclass(frozen=True, slots=True)
class Rule:
    name: str | None = None
    doc: str | None = None
    kind: str | None = None
    mode: str | None = None
    type: str | None = None
    tags: tuple[str, ...] | None = None
    params: Mapping[str, str] | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False

    def to_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "name": self.name,
            "doc": self.doc,
            "kind": self.kind,
            "mode": self.mode,
            "type": self.type,
            "tags": list(self.tags or ()),
            "params": dict(self.params or {}),
            "expr": self.expr,
            "onSuccess": self.on_success,
            "onFailure": self.on_failure,
        }
        return {**{name: value for name, value in shown.items() if value}, "disabled": self.disabled}

    def hashed(self) -> Iterator[bytes]:
        for text in (self.name, self.doc, self.kind, self.mode, self.type):
            yield (text or "").encode()
        yield from (tag.encode() for tag in self.tags or ())
        for name, value in (self.params or {}).items():
            yield name.encode()
            yield value.encode()
        for text in (self.expr, self.on_success, self.on_failure):
            yield (text or "").encode()
        if self.disabled:
            yield b"\x01"


@dataclass(frozen=True, slots=True)
class RuleSet:
    migration_rules: tuple[Rule, ...] | None = None
    domain_rules: tuple[Rule, ...] | None = None
    encoding_rules: tuple[Rule, ...] | None = None
    enable_at: str | None = None

    def to_json(self) -> dict[str, Any]:
        lists = {
            "migrationRules": self.migration_rules,
            "domainRules": self.domain_rules,
            "encodingRules": self.encoding_rules,
        }
        shown: dict[str, Any] = {
            name: [rule.to_json() for rule in rules] for name, rules in lists.items() if rules
        }
        if self.enable_at:
            shown["enableAt"] = self.enable_at
        return shown

    def rules(self) -> Iterator[Rule]:
        yield from self.migration_rules or ()
        yield from self.domain_rules or ()
        yield from self.encoding_rules or ()

    def hashed(self) -> Iterator[bytes]:
        for rule in self.rules():
            yield from rule.hashed()
        yield (self.enable_at or "").encode()

    def why_invalid(self) -> str | None:
        """The reason why this is no rule set, or None."""
        allowed = [(rule, MIGRATION_MODES, "migration") for rule in self.migration_rules or ()]
        allowed += [(rule, DOMAIN_MODES, "domain") for rule in self.domain_rules or ()]
        allowed += [(rule, DOMAIN_MODES, "encoding") for rule in self.encoding_rules or ()]
        if len(allowed) > RULES_MAX:
            return f"it has {len(allowed)} rules; at most {RULES_MAX} are allowed"
        seen: set[str] = set()
        for rule, modes, sort in allowed:
            if not rule.name:
                return f"a {sort} rule has no name"
            if not RULE_NAME.fullmatch(rule.name):
                return f"the name of rule {rule.name[:100]!r} does not start with a letter"
            if rule.name in seen:
                return f"the rule name {rule.name[:100]!r} appears twice"
            if not rule.type:
                return f"rule {rule.name[:100]!r} has no type"
            if rule.mode is not None and rule.mode not in modes:
                allowed_modes = ", ".join(sorted(modes))
                return f"{sort} rule {rule.name[:100]!r} has mode {rule.mode}; allowed: {allowed_modes}"
            seen.add(rule.name)
        return None


def metadata_of(source: Any) -> Metadata | None:
    """Metadata of its JSON. ValueError says what has another shape."""
    if source is None:
        return None
    source = shaped(source, dict, "metadata")
    tags = source.get("tags")
    paths = bounded(sorted(shaped(tags, dict, "metadata.tags")), "metadata.tags") if tags is not None else []
    return Metadata(
        tags=None if tags is None else {path: strings(tags[path], f"metadata.tags.{path}") for path in paths},
        properties=string_map(source.get("properties"), "metadata.properties"),
        sensitive=None
        if source.get("sensitive") is None
        else strings(source["sensitive"], "metadata.sensitive"),
    )


def rule_set_of(source: Any) -> RuleSet | None:
    """A rule set of its JSON. ValueError says what has another shape; `why_invalid` looks further."""
    if source is None:
        return None
    source = shaped(source, dict, "ruleSet")

    def rules(name: str) -> tuple[Rule, ...] | None:
        found = source.get(name)
        if found is None:
            return None
        where = f"ruleSet.{name}"
        return tuple(rule_of(each, where) for each in bounded(shaped(found, list, where), where))

    return RuleSet(
        migration_rules=rules("migrationRules"),
        domain_rules=rules("domainRules"),
        encoding_rules=rules("encodingRules"),
        enable_at=word(source, "enableAt", "ruleSet", ENABLE_AT),
    )


def rule_of(source: Any, where: str) -> Rule:
    source = shaped(source, dict, where)
    disabled = source.get("disabled")
    return Rule(
        name=word(source, "name", where),
        doc=word(source, "doc", where),
        kind=word(source, "kind", where, KINDS),
        mode=word(source, "mode", where, DOMAIN_MODES | MIGRATION_MODES),
        type=word(source, "type", where),
        tags=None if source.get("tags") is None else strings(source["tags"], f"{where}.tags"),
        params=string_map(source.get("params"), f"{where}.params"),
        expr=word(source, "expr", where),
        on_success=word(source, "onSuccess", where),
        on_failure=word(source, "onFailure", where),
        disabled=False if disabled is None else shaped(disabled, bool, f"{where}.disabled"),
    )


def shaped(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        names = {dict: "an object", list: "a list", bool: "true or false", str: "a string", int: "a number"}
        raise ValueError(f"{where} is not {names[kind]}")
    return value


def bounded(entries: list[Any], where: str) -> list[Any]:
    if len(entries) > ENTRIES_MAX:
        raise ValueError(f"{where} has {len(entries)} entries; at most {ENTRIES_MAX} are allowed")
    return entries


def word(
    source: Mapping[str, Any], name: str, where: str, allowed: frozenset[str] | None = None
) -> str | None:
    value = source.get(name)
    if value is None:
        return None
    text: str = shaped(value, str, f"{where}.{name}")
    if allowed is not None and text not in allowed:
        raise ValueError(f"{where}.{name} is {text[:100]!r}; allowed: {', '.join(sorted(allowed))}")
    return text


def strings(value: Any, where: str) -> tuple[str, ...]:
    """A set of strings, sorted."""
    entries = bounded(shaped(value, list, where), where)
    return tuple(sorted({shaped(each, str, f"an entry of {where}") for each in entries}))


def string_map(value: Any, where: str) -> dict[str, str] | None:
    """A map of strings, sorted. Numbers and booleans are taken as their text, as Java's JSON library does."""
    if value is None:
        return None
    bounded(list(shaped(value, dict, where)), where)
    return {name: as_text(value[name], f"{where}.{name}") for name in sorted(value)}


def as_text(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text: str = shaped(value, str, where)
    return text


def merged_metadata(under: Metadata | None, over: Metadata | None) -> Metadata | None:
    """Merge two sets of metadata; where both have a property, `over` wins. Tags and names of properties
    are united."""
    if under is None or over is None:
        return under if over is None else over
    tags: dict[str, tuple[str, ...]] | None = None
    if under.tags is not None or over.tags is not None:
        one, two = under.tags or {}, over.tags or {}
        tags = {path: united(one.get(path, ()), two.get(path, ())) for path in sorted({*one, *two})}
    properties: dict[str, str] | None = None
    if under.properties is not None or over.properties is not None:
        properties = dict(sorted({**(under.properties or {}), **(over.properties or {})}.items()))
    sensitive: tuple[str, ...] | None = None
    if under.sensitive is not None or over.sensitive is not None:
        sensitive = united(under.sensitive or (), over.sensitive or ())
    return Metadata(tags, properties, sensitive)


def united(one: Iterable[str], two: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*one, *two}))


def merged_rule_sets(under: RuleSet | None, over: RuleSet | None) -> RuleSet | None:
    """The rules of both; a rule of `over` takes the place of the one with the same name."""
    if under is None or over is None:
        return under if over is None else over
    return RuleSet(
        merged_rules(under.migration_rules, over.migration_rules),
        merged_rules(under.domain_rules, over.domain_rules),
        merged_rules(under.encoding_rules, over.encoding_rules),
        over.enable_at or under.enable_at,
    )


def merged_rules(under: tuple[Rule, ...] | None, over: tuple[Rule, ...] | None) -> tuple[Rule, ...] | None:
    if under is None or over is None:
        return under if over is None else over
    replaced = {rule.name for rule in over}
    return (*(rule for rule in under if rule.name not in replaced), *over)
