"""audit verify: compares two topics record by record on Spark. Status 0 if they are equal, 1 if not."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from barnabas.audit.deep.compare import Aspects
from barnabas.audit.deep.verify import TopicAddress, open_session, verify
from barnabas.cli.frame.connecting import load_properties, resolved, security_of
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, UsageError
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import ClientError
from barnabas.engine.session import SessionError
from barnabas.protocol import KafkaError

CHECK_MS_MAX = 20_000


def run(options: argparse.Namespace, out: Output) -> int:
    if options.ranges < 1 or options.limit < 1:
        raise UsageError("--ranges and --limit are numbers of at least 1")
    ours = resolved(load_properties(options.command_config))
    theirs = resolved(load_properties(options.target_config)) if options.target_config else ours
    try:
        source = TopicAddress.parse(options.source, ours)
        target = TopicAddress.parse(options.target, theirs)
    except ValueError as error:
        raise UsageError(str(error)) from None
    asyncio.run(check_topics(source, target))
    aspects = Aspects(options.headers, options.timestamps, not options.no_order, options.latest)
    try:
        spark = open_session(options.spark)
    except SessionError as error:
        raise ToolError(str(error)) from None
    try:
        found = verify(spark, source, target, aspects, ranges=options.ranges, limit=options.limit)
    finally:
        spark.stop()
    if options.json:
        out.line(json.dumps(found.to_json(), indent=2))
        return 0 if found.is_equal else 1
    out.line(
        f"{found.source_records} records in {options.source}, {found.target_records} in {options.target}"
    )
    if found.is_equal:
        out.line(f"equal: the digests of all {found.ranges} ranges of keys agree")
        return 0
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(found.counts.items()))
    out.line(f"different: {found.ranges_differing} of {found.ranges} ranges of keys; {counts}")
    for each in found.differences:
        out.line(str(each))
    return 1


async def check_topics(*addresses: TopicAddress) -> None:
    """ToolError if a topic cannot be reached: Spark would say so after half a minute, in fifty lines."""
    for each in addresses:
        where = f"{each.bootstrap}/{each.topic}"
        try:
            bootstrap = parse_bootstrap(each.bootstrap)
        except ValueError as error:
            raise UsageError(f"{where}: {error}") from None
        cluster = Cluster(bootstrap, client_id="barnabas-audit", security=security_of(each.properties))
        try:
            async with asyncio.timeout(CHECK_MS_MAX / 1000), cluster:
                found = await cluster.topics([each.topic])
        except TimeoutError:
            raise ToolError(f"{where}: no broker answers within {CHECK_MS_MAX // 1000} s") from None
        except (KafkaError, ClientError, OSError) as error:
            raise ToolError(f"{where}: {error}") from None
        count = len(found[each.topic].partitions)
        print(f"reading {where}: {count} partitions", file=sys.stderr)
