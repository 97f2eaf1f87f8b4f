"""Registering a schema under a subject, and finding one that is there.

In: the schema of a request. Out: records and the version that they make, or a version that exists.
Does not know: who is the primary, the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from barnabas.registry.state import records, refusals
from barnabas.registry.state.commands import Decision, Registered, RegisterSchema, SchemaRequest
from barnabas.registry.state.compatibility import problems
from barnabas.registry.state.config import Config, Mode
from barnabas.registry.state.contracts import (
    VERSION_PROPERTY,
    Metadata,
    RuleSet,
    merged_metadata,
    merged_rule_sets,
)
from barnabas.registry.state.model import Content, Context, Subject, Version
from barnabas.registry.state.names import DEFAULT_CONTEXT, subject_name, why_invalid
from barnabas.registry.state.parsed import SchemaReader
from barnabas.registry.state.references import LATEST
from barnabas.registry.state.state import State
from barnabas.registry.state.tagging import with_tags
from barnabas.schemas.model import InvalidSchema, ParsedSchema, Reference, SchemaType

NEXT_VERSION = -1
ID_MAX = 2**31 - 1
FIELD_PREFIX_RESERVED = "$$"


def following_id(content: Content, following: int) -> int:
    return following


def register(
    command: RegisterSchema,
    state: State,
    reader: SchemaReader,
    new_id: Callable[[Content, int], int] = following_id,
) -> Decision[Registered]:
    """`new_id` gets the next id of the context, for callers that register several schemas at once."""
    name = command.subject
    found = existing(command, state, reader)
    if found is not None:
        return Decision((), Registered.of(found))
    request = command.schema
    is_import = check_mode(name, request, state)
    config = state.config_in_force(name)
    subject = state.subject(name)
    number = next_version(request, subject, is_import=is_import)
    latest = subject.latest if subject is not None else None
    if not is_import:
        request = filled(request, latest, config)
    check_own_latest(name, request.references)
    strict = config.validate_new_schemas is not False and not is_import
    parsed, content = read(request, name, config, reader, normalize=command.normalize, strict=strict)
    check_rules(request.rules)
    context = state.context(subject_name(name).context)
    schema_id = request.schema_id
    if schema_id is not None:
        check_overwrite(context, schema_id, content)
    elif context is not None:
        schema_id = context.id_of(content)
    if request.version == 0 and (same := live_with(subject, schema_id)) is not None:
        return Decision((), Registered.of(same))
    if not is_import:
        content = numbered(content, number, is_asked=request.version != 0)
        schema_id = context.id_of(content) if context is not None else None
    if not is_import and not command.force:
        earlier = subject.sorted() if subject is not None else []
        messages = problems(parsed, content.metadata, earlier, config, reader)
        if messages:
            raise refusals.incompatible(name, messages)
    if schema_id is None:
        schema_id = new_id(content, next_id(context))
    return Decision(
        written(state, name, number, schema_id, content), Registered(name, number, schema_id, content)
    )


def existing(command: RegisterSchema, state: State, reader: SchemaReader) -> Version | None:
    """The version that a registration asks for, if it is there. No mode forbids to find it."""
    request = command.schema
    check_subject(command.subject)
    if not request.text.strip() or request.tags_to_add or request.tags_to_remove:
        return None
    wanted = [request]
    if request.version > 0:  # the property that registering with a version adds
        versioned = (request.metadata or Metadata()).with_property(VERSION_PROPERTY, str(request.version))
        wanted.append(replace(request, metadata=versioned))
    for each in wanted:
        found = lookup(command.subject, each, state, reader, normalize=command.normalize)
        if found is not None:
            is_same_id = request.schema_id in (None, found.schema_id)
            if is_same_id and request.version in (0, found.number):
                return found
    return None


def lookup(
    name: str,
    request: SchemaRequest,
    state: State,
    reader: SchemaReader,
    *,
    normalize: bool = False,
    include_deleted: bool = False,
) -> Version | None:
    """The version of the subject that has this schema."""
    subject = state.subject(name)
    config = state.config_in_force(name)
    parsed, content = read(request, name, config, reader, normalize=normalize, strict=False)
    if subject is None:
        return None
    found = version_with(subject, content, include_deleted)
    if found is not None:
        return found
    if any(each.version == LATEST for each in content.references):
        pinned = pin(content.references, subject.context.name, reader)
        other = Content(content.schema_type, content.text, pinned, content.metadata, content.rules)
        return version_with(subject, other, include_deleted)
    if not content.references and content.schema_type == SchemaType.AVRO:
        return version_inlined(subject, parsed, content, reader, include_deleted)
    return None


def version_with(subject: Subject, content: Content, include_deleted: bool) -> Version | None:
    context = subject.context
    users = [user for each in context.ids_of(content) for user in list(context.versions_by_id.get(each, ()))]
    mine = [each for each in users if each.subject is subject and (include_deleted or not each.is_deleted)]
    return max(mine, key=lambda each: (not each.is_deleted, each.number), default=None)


def live_with(subject: Subject | None, schema_id: int | None) -> Version | None:
    """The highest live version of the subject that has this id."""
    if subject is None or schema_id is None:
        return None
    users = subject.context.versions_by_id.get(schema_id, ())
    mine = (each for each in list(users) if each.subject is subject and not each.is_deleted)
    return max(mine, key=lambda each: each.number, default=None)


def version_inlined(
    subject: Subject, parsed: ParsedSchema, content: Content, reader: SchemaReader, include_deleted: bool
) -> Version | None:
    """A version with references whose text is this one once they are put in."""
    for version in reversed(subject.sorted(deleted=include_deleted)):
        stored = version.content
        if not stored.references or stored.schema_type != content.schema_type:
            continue
        if stored.metadata != content.metadata or stored.rules != content.rules:
            continue
        try:
            inlined = reader.stored(version).formatted("resolved")
        except InvalidSchema:
            continue
        if inlined == parsed.canonical:
            return version
    return None


def pin(references: tuple[Reference, ...], context: str, reader: SchemaReader) -> tuple[Reference, ...]:
    """References to the latest version, made references to the number that it has now."""
    pinned = []
    for reference in references:
        if reference.version == LATEST:
            found = reader.find(subject_name(reference.subject, context).qualified, LATEST)
            reference = reference if found is None else replace(reference, version=found.number)
        pinned.append(reference)
    return tuple(pinned)


def read(
    request: SchemaRequest,
    name: str,
    config: Config,
    reader: SchemaReader,
    *,
    normalize: bool,
    strict: bool,
) -> tuple[ParsedSchema, Content]:
    """The schema of a request, parsed and as it would be stored."""
    schema_type = request.schema_type or SchemaType.AVRO
    if not request.text.strip():
        raise refusals.invalid_schema("Empty schema")
    context = subject_name(name).context
    parsed = reader.new(schema_type, request.text, request.references, context, strict=strict)
    references = request.references
    if normalize or config.normalize:
        parsed = parsed.normalized()
        references = tuple(sorted(set(references), key=lambda each: (each.subject, each.version, each.name)))
    if strict and config.validate_fields:
        check_field_names(parsed)
    content = Content(schema_type, parsed.canonical, references, request.metadata, request.rules)
    return parsed, content


def check_field_names(parsed: ParsedSchema) -> None:
    reserved = sorted(each for each in parsed.field_names() if each.startswith(FIELD_PREFIX_RESERVED))
    if reserved:
        raise refusals.invalid_schema(
            f"the field {reserved[0]!r} starts with {FIELD_PREFIX_RESERVED}, which is reserved"
        )


def check_own_latest(name: str, references: tuple[Reference, ...]) -> None:
    """Code 42201 for a reference to the latest version of the own subject: the schema would be that one."""
    for reference in references:
        own = subject_name(reference.subject, subject_name(name).context).qualified == name
        if own and reference.version == LATEST:
            raise refusals.invalid_schema(
                f"the reference {reference.name!r} is to the latest version of {name}, which this schema"
                " becomes: name the version by its number"
            )


def check_subject(name: str) -> None:
    why = why_invalid(subject_name(name))
    if why is not None:
        raise refusals.invalid_subject(name, why)


def check_mode(name: str, request: SchemaRequest, state: State) -> bool:
    """Whether this is an import; code 42205 if the mode forbids it."""
    mode = state.mode_in_force(name)
    if mode.is_read_only:
        raise refusals.not_permitted(f"Subject {name} is in read-only mode")
    if request.schema_id is not None:
        if mode is not Mode.IMPORT:
            raise refusals.not_permitted(
                f"Subject {name} is not in import mode, so a schema cannot bring an id"
            )
        if not 0 <= request.schema_id <= ID_MAX:
            raise refusals.invalid_schema(f"the id {request.schema_id} is not between 0 and {ID_MAX}")
        return True
    if mode is Mode.IMPORT:
        raise refusals.not_permitted(f"Subject {name} is in import mode, so a schema must bring its id")
    if mode is not Mode.READWRITE:
        raise refusals.not_permitted(f"Subject {name} is not in read-write mode")
    return False


def check_overwrite(context: Context | None, schema_id: int, content: Content) -> None:
    known = context.content(schema_id) if context is not None else None
    if known is not None and not known.is_same(content):
        raise refusals.not_permitted(f"Overwrite new schema with id {schema_id} is not permitted.")


def check_rules(rules: RuleSet | None) -> None:
    why = rules.why_invalid() if rules is not None else None
    if why is not None:
        raise refusals.invalid_rule_set(why)


def next_version(request: SchemaRequest, subject: Subject | None, *, is_import: bool) -> int:
    number = (subject.version_max if subject is not None else 0) + 1
    if request.version in (0, NEXT_VERSION, number):
        return number
    if is_import and 0 < request.version <= ID_MAX:
        return request.version
    raise refusals.invalid_schema(f"version {request.version} is not the next one, which is {number}")


def next_id(context: Context | None) -> int:
    schema_id = (context.id_max if context is not None else 0) + 1
    if schema_id > ID_MAX:
        raise refusals.store_failed("all ids of the context are used")
    return schema_id


def filled(request: SchemaRequest, latest: Version | None, config: Config) -> SchemaRequest:
    """The request with what it leaves out: the schema, metadata and rules of the latest version, and those
    that the configuration puts under and over them."""
    before = latest.content if latest is not None else None
    if not request.text.strip():
        if before is None:
            raise refusals.invalid_schema("Empty schema")
        request = replace(
            request, text=before.text, schema_type=before.schema_type, references=before.references
        )
    if request.tags_to_add or request.tags_to_remove:
        request = replace(request, text=with_tags(request, request.tags_to_add, request.tags_to_remove))
    metadata, rules = request.metadata, request.rules
    if before is not None:
        metadata = before.metadata if metadata is None else metadata
        rules = before.rules if rules is None else rules
    metadata = merged_metadata(merged_metadata(config.default_metadata, metadata), config.override_metadata)
    rules = merged_rule_sets(merged_rule_sets(config.default_rule_set, rules), config.override_rule_set)
    return replace(request, metadata=metadata, rules=rules)


def numbered(content: Content, number: int, *, is_asked: bool) -> Content:
    """The schema with its version in its metadata, if a version was asked for or the property is there."""
    metadata = content.metadata
    if not is_asked and (metadata is None or metadata.property(VERSION_PROPERTY) is None):
        return content
    metadata = (metadata or Metadata()).with_property(VERSION_PROPERTY, str(number))
    return Content(content.schema_type, content.text, content.references, metadata, content.rules)


def written(
    state: State, name: str, number: int, schema_id: int, content: Content
) -> tuple[records.Record, ...]:
    """The version's record, the context's if it is the first there, and tombstones of soft-deleted versions
    with the same id, so that the schema moves to its new number."""
    found = [records.schema_record(name, number, schema_id, content)]
    context_name = subject_name(name).context
    context = state.context(context_name)
    if context_name != DEFAULT_CONTEXT and (context is None or not context.is_recorded):
        found.insert(0, records.context_record(context_name))
    subject = state.subject(name)
    for version in subject.sorted(live=False, deleted=True) if subject is not None else ():
        is_moved = version.schema_id == schema_id and version.number < number
        if is_moved and not state.references.referring(version):
            found.append(records.schema_tombstone(name, version.number))
    return tuple(found)
