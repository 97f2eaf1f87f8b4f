"""Everything that the registry knows, made of the records of its topic.

In: keys and values of records, in the order of their offsets. Out: contexts, subjects, configurations, modes.
Applying cannot fail: a record that makes no sense is logged and skipped. Only one thread applies; others may
read meanwhile, so they copy a dict or a list before they walk through it.
Does not know: the log, who writes, how schemas are parsed.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

from barnabas.registry.state.association_records import Associations
from barnabas.registry.state.config import EMPTY, Config, Level, Mode, config_of
from barnabas.registry.state.contracts import metadata_of, rule_set_of
from barnabas.registry.state.model import Content, Context, Subject, Version
from barnabas.registry.state.names import DEFAULT_CONTEXT, GLOBAL_CONTEXT, SubjectName, subject_name
from barnabas.registry.state.references import ReferenceIndex
from barnabas.schemas.model import Reference, SchemaType

logger = logging.getLogger(__name__)

GLOBAL = f":{GLOBAL_CONTEXT}:"
SHOWN_MAX = 200


class State:
    def __init__(self, defaults: Config | None = None) -> None:
        """`defaults` is the configuration of subjects where no record says another one."""
        self.defaults = (defaults or EMPTY).under(Config(level=Level.BACKWARD))
        self.contexts: dict[str, Context] = {DEFAULT_CONTEXT: Context(DEFAULT_CONTEXT)}
        self.configs: dict[str | None, Config] = {}  # by qualified name; None is the default context
        self.modes: dict[str | None, Mode] = {}
        self.references = ReferenceIndex()
        self.associations = Associations()
        self._subject_changes = 0  # grows when a subject came or went
        self._sorted: tuple[int, list[Subject]] = 0, []  # as of that number of changes
        self._appliers: dict[str, Callable[[dict[str, Any], Any, int], None]] = {
            "SCHEMA": self._schema,
            "CONFIG": self._config,
            "MODE": self._mode,
            "DELETE_SUBJECT": self._delete_subject,
            "CLEAR_SUBJECT": self._clear_subject,
            "CONTEXT": self._context,
            "ASSOC": self._association,
            "NOOP": lambda key, value, timestamp_ms: None,
        }

    # -- reading

    def context(self, name: str) -> Context | None:
        return self.contexts.get(name)

    def subject(self, name: str) -> Subject | None:
        """A subject by its qualified name."""
        context = self.contexts.get(subject_name(name).context)
        return None if context is None else context.subjects.get(name)

    def subjects(self) -> list[Subject]:
        """All subjects, sorted by their qualified names. The list is shared: nobody changes it."""
        count, found = self._sorted
        if count != self._subject_changes:
            count = self._subject_changes
            found = [
                each for context in list(self.contexts.values()) for each in list(context.subjects.values())
            ]
            found.sort(key=lambda subject: subject.name)
            self._sorted = count, found
        return found

    def config_in_force(self, name: str | None) -> Config:
        """The configuration of a subject; its gaps come from its context, the global one and the defaults."""
        config = EMPTY
        for scope in self._scopes(name):
            found = self.configs.get(scope)
            if found is not None:
                config = config.under(found)
        own = self.configs.get(name)
        config = config.under(self.defaults)
        return config if own is None else config.changed({"alias": own.alias})

    def mode_in_force(self, name: str | None) -> Mode:
        if self.modes.get(None) is Mode.READONLY_OVERRIDE:
            return Mode.READONLY_OVERRIDE
        for scope in self._scopes(name):
            found = self.modes.get(scope)
            if found is not None:
                return found
        return Mode.READWRITE

    def alias_of(self, name: str) -> str:
        """The subject that stands behind a name: another one if its configuration has an alias."""
        own = self.configs.get(name)
        if own is None or not own.alias:
            return name
        return subject_name(own.alias, subject_name(name).context).qualified

    def _scopes(self, name: str | None) -> Iterator[str | None]:
        """The scopes that may hold a setting of a subject, the nearest first."""
        if name is not None:
            yield name
            context = subject_name(name).context
            if context != DEFAULT_CONTEXT:
                if name != f":{context}:":
                    yield f":{context}:"
            else:
                yield None
        else:
            yield None
        if name != GLOBAL:
            yield GLOBAL

    # -- applying

    def apply(self, key: bytes | None, value: bytes | None, timestamp_ms: int = 0) -> None:
        """Apply one record."""
        try:
            parsed = json.loads(key or b"")
            applier = self._appliers[parsed["keytype"]]
            content = None if value is None else json.loads(value)
            if content is not None and not isinstance(content, dict):
                raise ValueError("the value is no JSON object")
            applier(parsed, content, timestamp_ms)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            shown = repr(key[:SHOWN_MAX] if key else key)
            logger.warning("A record of the registry's topic is skipped: key %s: %r", shown, error)

    def _schema(self, key: dict[str, Any], value: dict[str, Any] | None, timestamp_ms: int) -> None:
        name = subject_name(text_of(key["subject"]))
        number = number_of(key["version"], 1)
        if value is None:
            self._remove(name.qualified, number)
            return
        schema_id = number_of(value["id"], 0)
        content = content_of(value)
        context = self.contexts.get(name.context)
        if context is None:
            context = self.contexts[name.context] = Context(name.context)
        known = context.content(schema_id)
        if known is not None:
            if known.digest != content.digest:
                raise ValueError(f"id {schema_id} belongs to another schema")
            if known.schema_type == content.schema_type:
                content = known  # the text is kept once
        subject = context.subjects.get(name.qualified)
        if subject is None:
            subject = context.subjects[name.qualified] = Subject(name, context)
            self._subject_changes += 1
        else:
            earlier = subject.versions.get(number)
            if earlier is not None:
                self.references.remove(earlier)
        version = Version(subject, number, schema_id, content, bool(value.get("deleted")), timestamp_ms)
        context.add(version)
        self.references.add(version)

    def _remove(self, name: str, number: int) -> None:
        subject = self.subject(name)
        version = subject.versions.get(number) if subject is not None else None
        if subject is None or version is None:
            return
        self.references.remove(version)
        subject.context.remove(version)
        if not subject.versions:
            self._subject_changes += 1

    def _delete_subject(self, key: dict[str, Any], value: dict[str, Any] | None, timestamp_ms: int) -> None:
        if value is None:
            return
        subject = self.subject(subject_name(text_of(value["subject"])).qualified)
        if subject is None:
            return
        number_max = number_of(value["version"], 0)
        for version in subject.sorted():
            if version.number <= number_max:
                self._replace(version, is_deleted=True)

    def _replace(self, version: Version, *, is_deleted: bool) -> None:
        changed = Version(
            version.subject,
            version.number,
            version.schema_id,
            version.content,
            is_deleted,
            version.timestamp_ms,
        )
        self.references.remove(version)
        version.subject.context.add(changed)
        self.references.add(changed)

    def _clear_subject(self, key: dict[str, Any], value: dict[str, Any] | None, timestamp_ms: int) -> None:
        if value is None:
            return
        given = value.get("subject")
        for subject in self.subjects_in_scope(None if given is None else text_of(given)):
            for version in subject.sorted(live=False, deleted=True):
                self._remove(subject.name, version.number)

    def subjects_in_scope(self, name: str | None) -> list[Subject]:
        """Subjects that a mode of this name applies to: one, those of a context, or all."""
        if name == GLOBAL:
            return self.subjects()
        scope = SubjectName(DEFAULT_CONTEXT, "") if name is None else subject_name(name)
        context = self.contexts.get(scope.context)
        if context is None:
            return []
        if scope.is_context:
            return [context.subjects[each] for each in sorted(context.subjects)]
        found = context.subjects.get(scope.qualified)
        return [] if found is None else [found]

    def _config(self, key: dict[str, Any], value: dict[str, Any] | None, timestamp_ms: int) -> None:
        name = scope_of(key["subject"])
        if value is None:
            self.configs.pop(name, None)
        else:
            self.configs[name] = config_of(value)

    def _mode(self, key: dict[str, Any], value: dict[str, Any] | None, timestamp_ms: int) -> None:
        name = scope_of(key["subject"])
        if value is None:
            self.modes.pop(name, None)
        else:
            self.modes[name] = Mode(value["mode"])

    def _context(self, key: dict[str, Any], value: dict[str, Any] | None, timestamp_ms: int) -> None:
        name = text_of(key["context"])
        context = self.contexts.get(name)
        if value is not None:
            if context is None:
                context = self.contexts[name] = Context(name)
            context.is_recorded = True
        elif context is not None:
            context.is_recorded = False

    def _association(self, key: dict[str, Any], value: dict[str, Any] | None, timestamp_ms: int) -> None:
        self.associations.apply(key, value, timestamp_ms)


def scope_of(name: object) -> str | None:
    """A subject of a configuration or a mode. The default context is written as null or as `:.:`."""
    return None if name is None else subject_name(text_of(name)).qualified or None


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no string")
    return value


def number_of(value: object, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31:
        raise ValueError(f"{value!r} is no number of at least {least}")
    return value


def content_of(value: dict[str, Any]) -> Content:
    return Content(
        value.get("schemaType") or SchemaType.AVRO,
        text_of(value["schema"]),
        tuple(
            Reference(text_of(each["name"]), text_of(each["subject"]), number_of(each["version"], -1))
            for each in value.get("references") or ()
        ),
        metadata_of(value.get("metadata")),
        rule_set_of(value.get("ruleSet")),
        md5_of(value.get("md5")),
    )


def md5_of(value: object) -> bytes | None:
    """The digest of a record, if it has one."""
    try:
        found = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except ValueError:
        return None
    return found if len(found) == 16 else None
