"""`python -m bench.audit_zones`: what it costs that zones of a pipeline count their records for the audit.

Needs Java. Out: processor seconds for a million rows of a pipeline that counts and of one that does not, both
alternately, of Spark, its workers and the broker together; the rows that were counted. Does not know: lakes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

from barnabas.audit.core.ledger import Ledger
from barnabas.audit.counters.audit_topic_reader import AuditTopicReader
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.pipeline import Audit
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.testing.broker import Broker
from bench.pipeline_orders import Scale, pipeline_of
from bench.pipeline_zones import Zones, session
from bench.spark_effort import Effort

TOPIC = "zones"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--batch", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    scale = Scale(rows=given.rows, rows_per_batch=given.batch)
    with tempfile.TemporaryDirectory() as folder, session() as spark, Broker(in_process=False) as broker:
        zones = Zones(spark, broker, scale, Path(folder), print)
        sent = zones.fill(TOPIC, given.rows)
        found: dict[bool, list[float]] = {False: [], True: []}
        for number in range(-1, given.rounds):  # the first of each warms up
            for counts in (False, True):
                lake = zones.lake()
                pipeline = pipeline_of(broker.bootstrap, TOPIC, lake, given.batch)
                before = sum(os.times()[:2])
                with Effort() as effort:
                    SourceRunner(spark, replace(pipeline, audit=Audit(is_enabled=counts)), "orders").drain()
                seconds = effort.seconds + sum(os.times()[:2]) - before
                if number >= 0:
                    found[counts].append(seconds / sent * 1e6)
                shutil.rmtree(lake)
        counted = asyncio.run(totals(broker.bootstrap))
    plain, audited = (statistics.median(found[counts]) for counts in (False, True))
    print(f"{sent:,} rows in batches of {given.batch:,}, {given.rounds} rounds; counted {counted}")
    print(f"without: {plain:.1f} processor seconds for a million rows {spread(found[False])}")
    print(f"with:    {audited:.1f} {spread(found[True])}, {(audited / plain - 1) * 100:+.1f} %")


def spread(values: list[float]) -> str:
    return f"({min(values):.1f} to {max(values):.1f})"


async def totals(bootstrap: str) -> dict[str, int]:
    """Records of each tier: those of all rounds."""
    ledger = Ledger()
    async with Cluster(parse_bootstrap(bootstrap)) as cluster:
        reader = AuditTopicReader(cluster)
        await reader.catch_up(ledger.apply)
        await reader.close()
    return {tier: count for (tier, _), count in sorted(ledger.totals.items())}


if __name__ == "__main__":
    main()
