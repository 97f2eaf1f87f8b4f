"""Formats by a schema registry: each record names the schema that it was written with.

In: options `schema.registry.*`, a subject and a version. Out: a codec. It reads every record with the schema
of its writer into the columns of one version, the reader's, and writes records with that version.
Executors ask for a schema once per id and remember it. A registry that does not answer ends the query; an id
that it does not know is an error of the record.
Does not know: topics, connections to Kafka, how the three types of schemas decode.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.security.clients.references import resolve_properties
from barnabas.spark.formats.formats import CannotDecode, Format, Registered

if TYPE_CHECKING:
    from barnabas.schemas import RegisteredSchema, Schema, SchemaRegistryClient
    from barnabas.schemas.model import ResolvedReference
    from barnabas.schemas.serdes.framing import SchemaId

PREFIX = "schema.registry."
NAMES = ("avro", "json", "protobuf", "registry")  # formats; `registry` takes the type that the subject has
SUBJECT, VERSION, LOCATION = "subject", "schema.version", "schema.id.location"
LOCATIONS = ("prefix", "header")
WRITERS_MAX = 1000  # schemas that a process remembers for one codec
ID_BYTES = 5  # of a prefix with an id
TIMEOUT_S = 10  # of a request, unless an option says otherwise
UNKNOWN_FOR_S = 30.0  # a schema that the registry does not know, or that is of no use, is not asked for again
ITS_OWN_FAULT = (400, 404, 422)  # answers that say that the record names nothing


def properties_of(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The settings of the registry's client, references to secrets unresolved: plans show options."""
    found = {name[len(PREFIX) :]: value for name, value in options.items() if name.startswith(PREFIX)}
    return tuple(sorted(found.items()))


def registered_of(options: Mapping[str, str], side: str, name: str) -> Registered | None:
    """The subject of a side, with the number of its version; none if the schema comes without a registry."""
    properties = properties_of(options)
    declared = Format(side, name)
    given = [option for option in (SUBJECT, VERSION, LOCATION) if f"{side}.{option}" in options]
    if not properties or f"{side}.schema" in options or name not in NAMES:
        if given or name == "registry":
            option = given[0] if given else "format"
            raise declared.wrong(option, f"needs the option {PREFIX}url, and no option {side}.schema")
        return None
    if "url" not in dict(properties):
        raise declared.wrong("format", f"is {name} by a registry, and the option {PREFIX}url is missing")
    subject = options.get(f"{side}.{SUBJECT}", "").strip() or _default_subject(options, side)
    if subject is None:
        raise declared.wrong(SUBJECT, "is missing: the query has not one topic that could name it")
    version = options.get(f"{side}.{VERSION}", "latest").strip().lower()
    if version != "latest" and not version.isdecimal():
        raise declared.wrong(VERSION, f"is {version!r}, it may be latest or a number")
    found = _version(declared, properties, subject, version)
    return Registered(properties, subject, found.version or 0)


def ids_in_headers(options: Mapping[str, str], side: str) -> bool:
    """True if a record's schema may be named in a header instead of before its payload."""
    given = options.get(f"{side}.{LOCATION}", LOCATIONS[0]).strip().lower()
    if given not in LOCATIONS:
        raise Format(side, "").wrong(LOCATION, f"is {given!r}, it may be {' or '.join(LOCATIONS)}")
    return given == LOCATIONS[1]


def with_prefixes(column: pa.Array, headers: pa.Array, side: str) -> pa.Array:
    """The payloads with the prefixes that headers hold; those without the header are as they were."""
    from barnabas.schemas.serdes.framing import KEY_HEADER, VALUE_HEADER

    name = KEY_HEADER if side == "key" else VALUE_HEADER
    found: list[bytes | None] = []
    for data, listed in zip(column.to_pylist(), headers.to_pylist(), strict=True):
        named = [one["value"] for one in listed or () if one["key"] == name and one["value"] is not None]
        found.append(named[-1] + data if named and data is not None else data)
    return pa.array(found, pa.binary())


def _default_subject(options: Mapping[str, str], side: str) -> str | None:
    """TopicNameStrategy, where there is one topic."""
    topic = options.get("topic", "").strip() or options.get("subscribe", "").strip()
    return f"{topic}-{side}" if topic and "," not in topic else None


@lru_cache(maxsize=16)
def client_of(properties: tuple[tuple[str, str], ...]) -> SchemaRegistryClient:
    """The client of this process. It asks for the latest version each time: queries start at any time."""
    from barnabas.schemas import SchemaRegistryClient

    defaults = {"cache.latest.ttl.sec": 0, "timeout": TIMEOUT_S}
    return SchemaRegistryClient({**defaults, **resolve_properties(dict(properties))})


def _version(
    declared: Format, properties: tuple[tuple[str, str], ...], subject: str, version: str | int
) -> RegisteredSchema:
    from barnabas.schemas import RegistryError

    try:
        return client_of(properties).get_version(subject, version, deleted=True)
    except RegistryError as error:
        problem = f"names {subject}, version {version}, which cannot be had: {error}"
        raise declared.wrong(SUBJECT, problem) from None
    except ImportError as error:
        raise declared.wrong("format", f"needs the package {error.name}: install barnabas[schemas]") from None
    except ValueError as error:
        raise declared.wrong(
            "format", f"is by a registry whose options {PREFIX}* are wrong: {error}"
        ) from None


@lru_cache(maxsize=64)
def codec_of(declared: Format) -> RegistryCodec:
    """One codec for each format in a process: it holds the schemas that were fetched."""
    return RegistryCodec(declared)


class RegistryCodec:
    def __init__(self, declared: Format) -> None:
        from barnabas.schemas.client.caching import Cache
        from barnabas.schemas.serdes.framing import read_prefix
        from barnabas.spark.formats.registered import TYPES

        assert declared.registered is not None
        self._registered = declared.registered
        self._client = client_of(declared.registered.properties)
        found = _version(
            declared, declared.registered.properties, declared.registered.subject, declared.registered.version
        )
        kind = found.schema.schema_type
        if declared.name not in ("registry", kind.lower()):
            raise declared.wrong(
                "format", f"is {declared.name}, and {self._registered.subject} has schemas of {kind}"
            )
        try:
            references = self._references(found.schema)
            self._reader = TYPES[kind](found.schema, references, declared.message)
        except Exception as error:
            problem = (
                f"names {self._registered.subject}, whose version {self._registered.version} is of no use:"
            )
            raise declared.wrong(SUBJECT, f"{problem} {error}") from None
        self.ddl = self._reader.ddl
        self._kind = kind
        self._prefix = self._reader.prefix(found.id)
        self._read_prefix = read_prefix
        self._writers: Cache[Any] = Cache(WRITERS_MAX)
        # The writers of the usual records, by their first bytes: Avro and JSON with an id before the payload.
        self._by_prefix: dict[bytes, Any] = {} if kind == "PROTOBUF" else {self._prefix: self._reader}
        self._unknown: Cache[str] = Cache(WRITERS_MAX, UNKNOWN_FOR_S)
        self._writers.put((found.id, None), self._reader)

    def decode(self, data: bytes) -> Any:
        writer = self._by_prefix.get(data[:ID_BYTES])
        if writer is not None:
            return self._reader.decode(data, ID_BYTES, writer, ())
        named, at = self._read_prefix(data, with_indexes=self._kind == "PROTOBUF")
        writer = self._writers.get((named.id, named.guid))
        if writer is None:
            writer = self._fetched(named)
        return self._reader.decode(data, at, writer, named.indexes)

    def encode(self, value: Any) -> bytes:
        return self._prefix + self._reader.encode(value)

    def _fetched(self, named: SchemaId) -> Any:
        """The schema that a record names, from the registry."""
        from barnabas.schemas import RegistryError

        key = (named.id, named.guid)
        unknown = self._unknown.get(key, time.monotonic())
        if unknown is not None:
            raise ValueError(unknown)
        shown = f"id {named.id}" if named.guid is None else f"GUID {named.guid}"
        try:
            found = self._asked(named)
            if found.schema.schema_type != self._kind:
                raise ValueError(
                    f"the schema with {shown} is of {found.schema.schema_type}, not of {self._kind}"
                )
            writer = self._reader.writer(found.schema, self._references(found.schema))
        except RegistryError as error:
            if error.status not in ITS_OWN_FAULT:
                raise CannotDecode(
                    f"the schema registry did not give the schema with {shown}: {error}"
                ) from None
            problem = f"the schema registry knows no schema with {shown}"
            self._unknown.put(key, problem, time.monotonic())
            raise ValueError(problem) from None
        except ValueError as error:
            self._unknown.put(key, str(error), time.monotonic())
            raise
        self._writers.put(key, writer)
        if named.id is not None and self._kind != "PROTOBUF" and len(self._by_prefix) < WRITERS_MAX:
            self._by_prefix[named.id_prefix()] = writer
        return writer

    def _references(self, schema: Schema) -> list[ResolvedReference]:
        from barnabas.schemas.client.faces import run

        return run(self._client.core.resolved(schema))

    def _asked(self, named: SchemaId) -> RegisteredSchema:
        if named.guid is not None:
            return self._client.get_schema_by_guid(named.guid)
        return self._client.get_schema(named.id or 0, self._registered.subject)
