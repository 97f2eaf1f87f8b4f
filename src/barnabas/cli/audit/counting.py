"""audit count: counts the records of a cluster from outside, and sends the counts to the audit topic."""

from __future__ import annotations

import argparse
import logging
import sys

from barnabas.audit.cluster.remote_counter import RemoteCounter
from barnabas.audit.core.batch_counts import Opens
from barnabas.cli.frame.connecting import cluster_from
from barnabas.cli.frame.output import Output

INTERVAL_S = 10.0


async def run(options: argparse.Namespace, out: Output) -> int:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    there = argparse.Namespace(**vars(options))
    there.bootstrap_server = options.audit_server or options.bootstrap_server
    async with cluster_from(options) as counted, cluster_from(there) as audited:
        counter = RemoteCounter(
            counted,
            audited,
            tier=options.tier,
            topics=frozenset(options.topic or ()),
            audit_topic=options.audit_topic,
            opens=Opens(options.read),
        )
        try:
            if not options.once:
                await counter.run(INTERVAL_S)
            out.line(f"counted {await counter.count_all()} records")
        finally:
            await counter.close()
    return 0
