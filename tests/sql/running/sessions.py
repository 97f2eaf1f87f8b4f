"""Statements against an engine, as a server takes them: prepared, resources created, applied, carried out."""

from __future__ import annotations

from typing import Any

from barnabas.sql.execution.port import PullResult, Row
from barnabas.sql.metastore.metastore import Metastore
from barnabas.sql.running.engine import SparkEngine
from barnabas.sql.running.selects import TailingSelect
from barnabas.sql.syntax.parsing import parse_statement
from barnabas.sql.syntax.splitting import split


class Statements:
    """`run` carries statements out; `push`, `pull` and `to_end` are for SELECTs."""

    def __init__(self, engine: SparkEngine, **properties: str) -> None:
        self.engine, self.metastore, self.properties = engine, Metastore(), properties
        self._number = 0

    async def prepared(self, text: str) -> Any:
        self._number += 1
        statement = parse_statement(text)
        return await self.engine.prepare(statement, text, self.metastore, self.properties, self._number)

    async def run(self, text: str) -> list[str | None]:
        """The ids of the queries that the statements start."""
        started = []
        for each in split(text):
            prepared = await self.prepared(each.text)
            await self.engine.create_resources(prepared)
            if prepared.kind == "INSERT_VALUES":
                await self.engine.insert(prepared)
                continue
            self.metastore = self.metastore.apply(prepared.changes)
            await self.engine.carry_out(prepared)
            started.append(prepared.starts)
        return started

    async def push(self, text: str) -> TailingSelect:
        select = self.engine.select(await self.prepared(text))
        await select.begun()
        return select

    async def to_end(self, text: str) -> list[list[Any]]:
        return [row.values async for row in self.engine.select(await self.prepared(text))]

    async def pull(self, text: str) -> PullResult:
        return await self.engine.pull(await self.prepared(text))


async def first(select: TailingSelect, count: int) -> list[Row]:
    rows: list[Row] = []
    async for row in select:
        rows.append(row)
        if len(rows) == count:
            await select.close()
            break
    return rows
