"""What the audit topic of a cluster says: read with our client, summed by the ledger."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from barnabas.audit.core.ledger import Ledger
from barnabas.audit.core.report import Report, Rules, make_report
from barnabas.audit.counters.audit_topic import AUDIT_TOPIC, ensure_topic
from barnabas.audit.counters.audit_topic_reader import AuditTopicReader
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.protocol import KafkaError
from barnabas.security.clients.client_security import PLAINTEXT, ClientSecurity
from barnabas.testing.waiting import wait_until

WIDTH = 600_000
T0 = 1_700_000_400_000  # the start of a bucket
LATER = T0 + 100 * WIDTH  # everything is judged by then


def ledger_of(bootstrap: str, topic: str = AUDIT_TOPIC, security: ClientSecurity = PLAINTEXT) -> Ledger:
    async def read() -> Ledger:
        async with Cluster(parse_bootstrap(bootstrap), security=security) as cluster:
            await ensure_topic(cluster, topic)
            ledger = Ledger(keep_ms=2**60)
            reader = AuditTopicReader(cluster, topic)
            try:
                await reader.catch_up(ledger.apply)
            finally:
                await reader.close()
            return ledger

    return asyncio.run(read())


def counts(bootstrap: str, topic: str, tier: str, field: str = "counted") -> dict[int, int]:
    """Records by bucket."""
    return {
        bucket: getattr(column[tier].total, field)
        for (name, bucket), column in ledger_of(bootstrap).columns.items()
        if name == topic and tier in column and getattr(column[tier].total, field)
    }


def wait_for_counts(bootstrap: str, topic: str, tier: str, expected: dict[int, int]) -> None:
    seen: dict[int, int] = {}

    def is_there() -> bool:
        nonlocal seen
        try:
            seen = counts(bootstrap, topic, tier)
        except KafkaError:  # a partition of the audit topic has no leader at the moment
            return False
        return seen == expected

    wait_until(is_there, 30, lambda: f"{tier} counted {seen} of {topic}, not {expected}")


def report_of(bootstrap: str, rules: Rules | None = None, now_ms: int = LATER, **choice: object) -> Report:
    return make_report(ledger_of(bootstrap), rules or Rules(), now_ms, **choice)  # type: ignore[arg-type]


def row_of(report: Report, topic: str, tier: str, bucket: int = T0) -> dict[str, object]:
    found = [row for row in report.rows if (row.topic, row.tier, row.bucket_ms) == (topic, tier, bucket)]
    assert len(found) == 1, json.dumps([row.to_json() for row in report.rows], indent=1)
    return found[0].to_json()


Numbers = Callable[[], int]
