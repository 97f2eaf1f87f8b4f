"""Rows of INSERT … VALUES and of /inserts-stream become records.

In: a target with its schema, a key tuple and a value dict. Out: the record is in the topic when `write`
returns; `begin` lets several be on their way. Values given as JSON are read as the JSON format reads them.
Does not know: statements.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.accumulator import SentRecord
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError
from barnabas.client.producer import Producer, ProducerSettings
from barnabas.plans.serdes import RegistryAway
from barnabas.protocol import KafkaError
from barnabas.sql.analysis.stages import rows_of
from barnabas.sql.analysis.work import InsertRow, TopicRows
from barnabas.sql.errors import SqlError, did_you_mean
from barnabas.sql.formats.codecs import row_codec
from barnabas.sql.formats.contract import (
    BadBytes,
    BadRow,
    RowCodec,
    by_any_case,
    facts_of,
)
from barnabas.sql.formats.json_rows import NeedsExact, reader_of
from barnabas.sql.formats.registries import RegistryPlace
from barnabas.sql.metastore.metastore import DataSource
from barnabas.sql.metastore.schemas import ROWTIME
from barnabas.sql.types.sql_types import BIGINT

CODECS_MAX = 1_000
SHOWN_MAX = 80  # characters of a value in an error
Codecs = tuple[RowCodec, RowCodec]


@dataclass(frozen=True, slots=True)
class Writing:
    """A row on its way: awaiting it ends when all in-sync replicas have it. SqlError if they refuse it."""

    target: TopicRows
    sent: SentRecord

    def __await__(self) -> Generator[Any, None, None]:
        try:
            yield from self.sent.__await__()  # type: ignore[no-untyped-call]
        except (KafkaError, ClientError) as error:
            raise not_inserted(self.target, error) from error


def not_inserted(target: TopicRows, error: Exception) -> SqlError:
    return SqlError(f"Failed to insert values into {target.name}: {error}")


class Inserts:
    """Writes rows, in the order in which they are begun. `close` it at the end."""

    def __init__(self, cluster: ClusterCore, registry: RegistryPlace) -> None:
        self._cluster, self._registry = cluster, registry
        self._producer: Producer | None = None
        self._codecs: dict[Any, Codecs] = {}

    async def write(self, row: InsertRow) -> None:
        await (await self.begin(row))

    async def begin(self, row: InsertRow) -> Writing:
        """Hand a row over, which may wait for room. Await the result until the row is written."""
        target = row.target
        if target.window is not None:
            raise SqlError(f"Cannot insert values into windowed stream/table: {target.name}")
        read_key, read_value = self._codecs_of(target)
        names = [each.name for each in target.schema.key]
        try:
            if asks_registry(target):
                key, value = await asyncio.to_thread(self._bytes, read_key, read_value, names, row)
            else:  # threads may all be busy with lookups
                key, value = self._bytes(read_key, read_value, names, row)
        except (BadRow, RegistryAway) as error:
            raise SqlError(f"Could not serialize row for {target.name}: {error}") from error
        return await self._send(target, key, value, row.timestamp_ms)

    @staticmethod
    def _bytes(
        keys: RowCodec, values: RowCodec, names: list[str], row: InsertRow
    ) -> tuple[bytes | None, bytes | None]:
        """Formats of a registry ask it here, which blocks."""
        key = None if row.key is None else keys.to_bytes(dict(zip(names, row.key, strict=True)))
        return key, None if row.value is None else values.to_bytes(row.value)

    async def _send(
        self, target: TopicRows, key: bytes | None, value: bytes | None, timestamp_ms: int
    ) -> Writing:
        if self._producer is None:
            self._producer = Producer(self._cluster, ProducerSettings(acks=-1))
        try:
            sent = await self._producer.send(target.topic, value, key, timestamp_ms=timestamp_ms)
        except (KafkaError, ClientError) as error:
            raise not_inserted(target, error) from error
        return Writing(target, sent)

    def _codecs_of(self, target: TopicRows) -> Codecs:
        place = (
            target.topic, target.schema, str(target.key_format), str(target.value_format),
            tuple(target.key_format.properties.items()), tuple(target.value_format.properties.items()),
            target.value_format.is_wrapped,
        )  # fmt: skip
        found = self._codecs.get(place)
        if found is None:
            if len(self._codecs) >= CODECS_MAX:
                self._codecs.clear()
            schema, topic = target.schema, target.topic
            found = self._codecs[place] = (
                row_codec(target.key_format, schema.key, is_key=True, topic=topic, registry=self._registry),
                row_codec(
                    target.value_format, schema.value, is_key=False, topic=topic, registry=self._registry
                ),
            )
        return found

    async def close(self) -> None:
        if self._producer is not None:
            await self._producer.close()


def asks_registry(target: TopicRows) -> bool:
    """Whether writing a row may wait for the registry."""
    return any(facts_of(form.name).has_registry for form in (target.key_format, target.value_format))


def insert_of(source: DataSource, given: Mapping[str, Any]) -> InsertRow:
    """A row given as JSON values by column, names in any case. SqlError names the column that is wrong."""
    if source.is_source:
        raise SqlError(f"Cannot insert values into read-only {source.kind.lower()}: {source.name}")
    schema = source.schema
    writable = [each for each in schema if each not in schema.headers]
    columns = {each.name: each for each in writable}
    found: dict[str, Any] = {}
    for name, value in given.items():
        column = by_any_case([*columns, ROWTIME], name)
        if column is None:
            raise SqlError(f"Column name {name} does not exist.{did_you_mean(name, columns)}")
        kind = BIGINT if column == ROWTIME else columns[column].kind
        try:
            found[column] = None if value is None else read_json(kind, value)
        except (BadBytes, ValueError, ArithmeticError, TypeError):
            shown = json.dumps(value, default=str)[:SHOWN_MAX]
            raise SqlError(f"Can't coerce the value {shown} of column {column} into {kind}") from None
    key = tuple(found.get(each.name) for each in schema.key)
    if source.is_table and any(each is None for each in key):
        raise SqlError(
            f"Failed to insert values into '{source.name}'. Value for primary key column(s) missing"
        )
    is_keyless = not schema.key or (not source.is_table and all(each is None for each in key))
    return InsertRow(
        rows_of(source),
        None if is_keyless else key,
        {each.name: found.get(each.name) for each in schema.value},
        int(time.time() * 1000) if found.get(ROWTIME) is None else int(found[ROWTIME]),
    )


def read_json(kind: Any, value: Any) -> Any:
    try:
        return reader_of(kind)(value)
    except NeedsExact:
        from decimal import Decimal

        return reader_of(kind)(Decimal(str(value))) if isinstance(value, float) else str(value)
