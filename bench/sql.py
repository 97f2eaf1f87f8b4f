"""`python -m bench.sql`: latency of SQL from produce to result, idle queries, push and pull queries.
`python -m bench.sql --tasks`: records that tasks take in a second of processor time, on both roads.

In: a rate of records a second, seconds. Out: a table. A stateless query and a windowed count run on
`local[2]` over one topic; the timestamp of a record and of its result is the time at which it was sent.
Broker, load and engine share the machine, so the numbers hold for a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

import psutil

from barnabas.sql.execution.port import Prepared
from barnabas.sql.metastore.metastore import Metastore
from barnabas.sql.running.engine import SparkEngine
from barnabas.sql.running.settings import EngineSettings
from barnabas.sql.syntax.parsing import parse_statement
from barnabas.sql.syntax.splitting import split
from barnabas.testing.broker import Broker
from bench import machine, sql_tasks
from bench.streams_latency import measure

PARTITIONS = 2
IDLE_QUERIES = 50
IDLE_S = 10.0
LOOKUPS = 200
SOURCE = f"""
    CREATE STREAM clicks (user STRING KEY, page STRING)
      WITH (KAFKA_TOPIC='clicks', PARTITIONS={PARTITIONS}, FORMAT='KAFKA');
    CREATE STREAM idle (id STRING KEY, v STRING)
      WITH (KAFKA_TOPIC='idle', PARTITIONS={PARTITIONS}, FORMAT='KAFKA');
"""
STATELESS = "CREATE STREAM upper AS SELECT user, UCASE(page) AS page FROM clicks WHERE page LIKE '/%';"
WINDOWED = """CREATE TABLE minutes WITH (KEY_FORMAT='KAFKA') AS
    SELECT user, COUNT(*) AS n FROM clicks WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY user;"""


class Bench:
    def __init__(self, engine: SparkEngine) -> None:
        self.engine, self.metastore, self.number = engine, Metastore(), 0

    async def run(self, text: str) -> list[str]:
        started = []
        for each in split(text):
            self.number += 1
            prepared = await self.engine.prepare(
                parse_statement(each.text), each.text, self.metastore, {}, self.number
            )
            await self.engine.create_resources(prepared)
            if prepared.kind == "INSERT_VALUES":
                await self.engine.insert(prepared)
                continue
            self.metastore = self.metastore.apply(prepared.changes)
            await self.engine.carry_out(prepared)
            started += [prepared.starts] if prepared.starts else []
        return started

    async def until_running(self, query_id: str) -> None:
        """The query has its positions: it reads what comes from now on."""
        while True:
            found = self.engine.status(query_id)
            if found is not None and found.lag is not None:
                return
            if found is not None and found.errors:
                raise RuntimeError(found.errors[-1].message)
            await asyncio.sleep(0.1)

    async def latency(self, statement: str, result: str, bootstrap: str, rate: int, seconds: float) -> str:
        (query_id,) = await self.run(statement)
        await self.until_running(query_id)
        found = await asyncio.to_thread(measure, bootstrap, "clicks", result, rate, seconds)
        await self.engine.pause(query_id)
        return (
            f"p50 {found['p50']:.0f} ms, p99 {found['p99']:.0f} ms at {found['rate']:,.0f} records/s"
            f" (load late by {1000 * found['late']:.0f} ms at most)"
        )

    async def idle(self) -> str:
        """Processor time of this process and its children while many queries have no news."""
        before = await asyncio.to_thread(cpu_share, IDLE_S)
        for number in range(IDLE_QUERIES):
            await self.run(f"CREATE STREAM idle_{number} AS SELECT id, UCASE(v) AS v FROM idle;")
        await self.until_running(f"CSAS_IDLE_{IDLE_QUERIES - 1}_{self.number}")
        after = await asyncio.to_thread(cpu_share, IDLE_S)
        return f"{100 * (after - before):.1f} % of a core for {IDLE_QUERIES} idle queries"

    async def first_row(self) -> str:
        prepared = await self.prepared("SELECT id, v FROM idle EMIT CHANGES;")
        times = []
        for number in range(20):
            select = self.engine.select(prepared)
            await select.begun()
            began = time.perf_counter()
            await self.run(f"INSERT INTO idle (id, v) VALUES ('k{number}', 'v');")
            async for _ in select:
                break
            times.append(1000 * (time.perf_counter() - began))
            await select.close()
        return f"median {statistics.median(times):.1f} ms, largest {max(times):.1f} ms from INSERT to row"

    async def lookups(self) -> str:
        prepared = await self.prepared("SELECT * FROM minutes WHERE user = 'user000007';")
        await self.engine.pull(prepared)
        times = []
        for _ in range(LOOKUPS):
            began = time.perf_counter()
            await self.engine.pull(prepared)
            times.append(1000 * (time.perf_counter() - began))
        return (
            f"median {statistics.median(times):.1f} ms, p99 {statistics.quantiles(times, n=100)[98]:.1f} ms"
        )

    async def prepared(self, text: str) -> Prepared:
        self.number += 1
        return await self.engine.prepare(parse_statement(text), text, self.metastore, {}, self.number)


def cpu_share(seconds: float) -> float:
    """Cores that this process and its children use."""
    before = cpu_seconds()
    time.sleep(seconds)
    return (cpu_seconds() - before) / seconds


def cpu_seconds() -> float:
    found = 0.0
    me = psutil.Process()
    for each in (me, *me.children(recursive=True)):
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue
        found += times.user + times.system
    return found


async def main(options: argparse.Namespace) -> None:
    for name, text in machine.description():
        print(f"{name}: {text}")
    with Broker(in_process=False) as broker, tempfile.TemporaryDirectory() as folder:
        settings = {
            "bootstrap.servers": broker.bootstrap,
            "state.dir": str(Path(folder)),
            "spark.master": "local[2]",
            "processing.guarantee": options.guarantee,
        }
        engine = SparkEngine(EngineSettings.of(settings))
        bench = Bench(engine)
        try:
            await bench.run(SOURCE)
            given = (broker.bootstrap, options.rate, options.seconds)
            print("stateless query:", await bench.latency(STATELESS, "UPPER", *given), flush=True)
            print("windowed count:", await bench.latency(WINDOWED, "MINUTES", *given), flush=True)
            print("pull query by key:", await bench.lookups(), flush=True)
            print("push query:", await bench.first_row(), flush=True)
            print("idle queries:", await bench.idle(), flush=True)
        finally:
            await engine.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--guarantee", default="at_least_once")
    parser.add_argument("--tasks", type=int, nargs="?", const=200_000, default=None, metavar="RECORDS")
    given = parser.parse_args()
    if given.tasks is not None:
        sql_tasks.main(given.tasks)
    else:
        asyncio.run(main(given))
