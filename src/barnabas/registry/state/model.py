"""Schemas, versions, subjects and contexts as the state holds them.

In: values of records. Out: objects with few bytes each: a schema's text is kept once for each id.
Does not know: how records look, how schemas are parsed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from uuid import UUID

from barnabas.registry.state.contracts import Metadata, RuleSet
from barnabas.registry.state.names import SubjectName
from barnabas.schemas.model import Reference


class Content:
    """A schema with everything that makes it the schema it is. Immutable.

    `digest` says which schemas are the same. `md5` is the one of its record, which names it to clients: other
    registries may have computed it over fields that we do not know.
    """

    __slots__ = ("digest", "md5", "metadata", "references", "rules", "schema_type", "text")

    def __init__(
        self,
        schema_type: str,
        text: str,
        references: tuple[Reference, ...] = (),
        metadata: Metadata | None = None,
        rules: RuleSet | None = None,
        md5: bytes | None = None,
    ) -> None:
        self.schema_type = schema_type
        self.text = text
        self.references = references
        self.metadata = metadata
        self.rules = rules
        self.digest = digest_of(text, references, metadata, rules)
        self.md5 = self.digest if md5 is None or md5 == self.digest else md5

    @property
    def guid(self) -> str:
        return str(UUID(bytes=self.md5))

    def is_same(self, other: Content) -> bool:
        return self.digest == other.digest and self.schema_type == other.schema_type


def digest_of(
    text: str, references: Iterable[Reference], metadata: Metadata | None, rules: RuleSet | None
) -> bytes:
    """The 16 bytes that identify a schema; written as a UUID they are its GUID. The type does not count."""
    digest = hashlib.md5(text.encode(errors="surrogatepass"), usedforsecurity=False)
    for reference in references:
        digest.update(reference.name.encode())
        digest.update(reference.subject.encode())
        digest.update(reference.version.to_bytes(4, "big", signed=True))
    for contract in (metadata, rules):
        if contract is not None:
            digest.update(b"\x01")
            for part in contract.hashed():
                digest.update(part)
    return digest.digest()


class Version:
    """A schema in its place: a number in a subject. Replaced, never changed."""

    __slots__ = ("content", "is_deleted", "number", "schema_id", "subject", "timestamp_ms")

    def __init__(
        self,
        subject: Subject,
        number: int,
        schema_id: int,
        content: Content,
        is_deleted: bool,
        timestamp_ms: int,
    ) -> None:
        self.subject = subject
        self.number = number
        self.schema_id = schema_id
        self.content = content
        self.is_deleted = is_deleted
        self.timestamp_ms = timestamp_ms


class Subject:
    """Versions by number. Other threads read them while the loop applies records, so readers take a copy."""

    __slots__ = ("_latest", "bare_name", "context", "name", "versions")

    def __init__(self, name: SubjectName, context: Context) -> None:
        self.name = name.qualified
        self.bare_name = name.subject  # without the context
        self.context = context
        self.versions: dict[int, Version] = {}
        self._latest: Version | None = None

    @property
    def latest(self) -> Version | None:
        """The highest version that is not deleted."""
        return self._latest

    @property
    def version_max(self) -> int:
        """The highest number in use, soft-deleted versions included; 0 if there is none."""
        return max(list(self.versions), default=0)

    def sorted(self, *, live: bool = True, deleted: bool = False) -> list[Version]:
        """Versions in the order of their numbers: live ones, soft-deleted ones, or both."""
        found = [each for each in list(self.versions.values()) if (deleted if each.is_deleted else live)]
        found.sort(key=number_of)
        return found

    def put(self, version: Version) -> None:
        self.versions[version.number] = version
        latest = self._latest
        if version.is_deleted:
            if latest is not None and latest.number == version.number:
                self._find_latest()
        elif latest is None or latest.number <= version.number:
            self._latest = version

    def pop(self, number: int) -> Version | None:
        version = self.versions.pop(number, None)
        if version is not None and version is self._latest:
            self._find_latest()
        return version

    def _find_latest(self) -> None:
        live = (each for each in self.versions.values() if not each.is_deleted)
        self._latest = max(live, key=number_of, default=None)


def number_of(version: Version) -> int:
    return version.number


class Context:
    """Subjects that share ids."""

    __slots__ = (
        "further_ids",
        "id_max",
        "ids_by_digest",
        "is_recorded",
        "name",
        "subjects",
        "versions_by_id",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_recorded = False  # a CONTEXT record exists
        self.id_max = 0  # the highest that was ever seen, also of schemas that are gone
        self.subjects: dict[str, Subject] = {}  # by qualified name
        self.versions_by_id: dict[int, list[Version]] = {}  # in the order in which they were first seen
        self.ids_by_digest: dict[bytes, int] = {}  # by digests and by those of records
        self.further_ids: dict[bytes, tuple[int, ...]] = {}  # of schemas that were imported with several ids

    def content(self, schema_id: int) -> Content | None:
        versions = self.versions_by_id.get(schema_id)
        return versions[0].content if versions else None

    def id_of(self, content: Content) -> int | None:
        """The id under which this schema was first seen here."""
        return next(self.ids_of(content), None)

    def ids_of(self, content: Content) -> Iterator[int]:
        """All ids under which this schema is known here: an import may bring an id of its own."""
        first = self.ids_by_digest.get(content.digest)
        if first is None:
            return
        for schema_id in (first, *self.further_ids.get(content.digest, ())):
            known = self.content(schema_id)
            if known is not None and known.is_same(content):
                yield schema_id

    def add(self, version: Version) -> None:
        """Take a version in, or in the place of the one with the same number."""
        schema_id = version.schema_id
        earlier = version.subject.versions.get(version.number)
        if earlier is not None and earlier.schema_id != schema_id:
            self._forget(earlier)
            earlier = None
        version.subject.put(version)
        users = self.versions_by_id.get(schema_id)
        if users is None:
            self.versions_by_id[schema_id] = [version]
            for digest in {version.content.digest, version.content.md5}:
                if self.ids_by_digest.setdefault(digest, schema_id) != schema_id:
                    self.further_ids[digest] = (*self.further_ids.get(digest, ()), schema_id)
        elif earlier is None:
            users.append(version)
        else:
            users[users.index(earlier)] = version
        self.id_max = max(self.id_max, schema_id)

    def remove(self, version: Version) -> None:
        version.subject.pop(version.number)
        self._forget(version)
        if not version.subject.versions:
            self.subjects.pop(version.subject.name, None)

    def _forget(self, version: Version) -> None:
        users = self.versions_by_id.get(version.schema_id, [])
        if version in users:
            users.remove(version)
        if not users:
            self.versions_by_id.pop(version.schema_id, None)
            for digest in {version.content.digest, version.content.md5}:
                self._forget_id(digest, version.schema_id)

    def _forget_id(self, digest: bytes, schema_id: int) -> None:
        """The next id of the schema takes the place of the first one. Readers always find one of them."""
        further = tuple(each for each in self.further_ids.get(digest, ()) if each != schema_id)
        if self.ids_by_digest.get(digest) == schema_id:
            if not further:
                del self.ids_by_digest[digest]
                return
            self.ids_by_digest[digest], further = further[0], further[1:]
        if further:
            self.further_ids[digest] = further
        else:
            self.further_ids.pop(digest, None)
