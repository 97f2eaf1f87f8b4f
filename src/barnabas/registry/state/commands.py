"""Commands that change the registry, and what deciding on one gives.

In: values of a request. Out: frozen commands; a `Decision` has the records to append and the reply.
Does not know: HTTP, the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from barnabas.registry.state.contracts import Metadata, RuleSet
from barnabas.registry.state.model import Content, Version
from barnabas.registry.state.records import Record
from barnabas.schemas.model import Reference

R = TypeVar("R", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """Records are appended as one batch, so all of them are stored or none."""

    records: tuple[Record, ...]
    reply: R


@dataclass(frozen=True, slots=True)
class TagChange:
    """Tags that an entity of a schema gets or loses; the path is `Record` or `Record.field`."""

    path: str
    is_field: bool
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """A schema as a request has it. `schema_type` None is AVRO."""

    text: str = ""
    schema_type: str | None = None
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None
    version: int = 0  # 0: not asked for, -1: the next one
    schema_id: int | None = None  # of imported schemas
    tags_to_add: tuple[TagChange, ...] = ()
    tags_to_remove: tuple[TagChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Registered:
    """A version, as it was found or as it will be once the records are applied."""

    subject: str
    version: int
    schema_id: int
    content: Content

    @classmethod
    def of(cls, version: Version) -> Registered:
        return cls(version.subject.name, version.number, version.schema_id, version.content)


@dataclass(frozen=True, slots=True)
class RegisterSchema:
    """`force` skips the check of compatibility."""

    subject: str  # qualified, as in all commands
    schema: SchemaRequest
    normalize: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class TagVersion:
    """A new version made of an old one, with other tags, metadata or rules."""

    subject: str
    version: int  # -1: the latest
    new_version: int = 0
    tags_to_add: tuple[TagChange, ...] = ()
    tags_to_remove: tuple[TagChange, ...] = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None
    rules_to_merge: RuleSet | None = None
    rules_to_remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteSubject:
    subject: str
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class DeleteVersion:
    subject: str
    version: int  # -1: the latest
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class ChangeConfig:
    """`subject` None is the default context."""

    subject: str | None
    changes: Mapping[str, Any]  # fields of `Config`


@dataclass(frozen=True, slots=True)
class DeleteConfig:
    subject: str | None


@dataclass(frozen=True, slots=True)
class ChangeMode:
    subject: str | None
    mode: str | None  # None removes it
    force: bool = False


@dataclass(frozen=True, slots=True)
class DeleteMode:
    subject: str | None
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class DeleteContext:
    context: str


@dataclass(frozen=True, slots=True)
class AssociationChange:
    """The values that a resource shall have with one subject. None leaves a value as it is."""

    subject: str | None
    association_type: str | None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: SchemaRequest | None = None
    normalize: bool = False


@dataclass(frozen=True, slots=True)
class Associate:
    """`may_exist`: change associations that are there; otherwise each must be new or the same."""

    resource_name: str | None
    resource_namespace: str | None
    resource_id: str | None
    resource_type: str | None
    associations: tuple[AssociationChange, ...]
    may_exist: bool = False
    dry_run: bool = False
    context: str = "."


@dataclass(frozen=True, slots=True)
class Dissociate:
    resource_id: str
    resource_type: str | None = None
    association_types: tuple[str, ...] = ()
    cascade: bool = False
    dry_run: bool = False


Command = (
    RegisterSchema
    | TagVersion
    | DeleteSubject
    | DeleteVersion
    | ChangeConfig
    | DeleteConfig
    | ChangeMode
    | DeleteMode
    | DeleteContext
    | Associate
    | Dissociate
)
