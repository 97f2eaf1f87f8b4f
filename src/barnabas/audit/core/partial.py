"""Ledgers in parts: several that each summed other streams are merged into one.

In: a ledger, or the text of one. Out: text, or the sums of both. So executors sum up and the driver
compares. The streams themselves stay behind: a merged ledger can be compared, and takes no more messages of
the same streams.
Does not know: Spark.
"""

from __future__ import annotations

import json
from dataclasses import astuple
from typing import Any

from barnabas.audit.core.delays import Delays
from barnabas.audit.core.ledger import Doubt, Ledger, Session
from barnabas.audit.core.messages import Tally


def dump(ledger: Ledger) -> str:
    cells = [
        [
            topic, bucket, tier, cell.width_ms, cell.last_ms,
            [[host, partition, list(tally)] for (host, partition), tally in cell.shares.items()],
            [list(cell.delays.counts.items()), cell.delays.max_ms, cell.delays.ahead_max_ms],
            list(cell.arrivals.values()),
        ]
        for (topic, bucket), column in ledger.columns.items()
        for tier, cell in column.items()
    ]  # fmt: skip
    sessions = [
        [
            tier, stream, each.host, each.seen_ms, each.interval_ms, each.is_closed, each.messages,
            [[name, *astuple(doubt)] for name, doubt in each.topics.items()],
        ]
        for (tier, stream), each in ledger.sessions.items()
    ]  # fmt: skip
    return json.dumps(
        {
            "cells": cells,
            "sessions": sessions,
            "expired": [[*place, count] for place, count in ledger.expired.items()],
            "lost": [[*place, count] for place, count in ledger.lost.items()],
            "skews": list(ledger.skews_ms.items()),
            "totals": [[*place, count] for place, count in ledger.totals.items()],
            "repeated": ledger.repeated,
            "conflicts": ledger.conflicts,
            "gaps": list(ledger.gaps()),
        }
    )


def merge(ledger: Ledger, text: str) -> None:
    """Add the sums of a ledger that summed other streams."""
    body: dict[str, Any] = json.loads(text)
    for topic, bucket, tier, width_ms, last_ms, shares, delays, arrivals in body["cells"]:
        cell = ledger.cell(topic, bucket, tier, width_ms)
        known = dict(cell.arrivals)
        for host, partition, tally in shares:
            cell.add(host, partition, Tally(*tally), last_ms)
        cell.arrivals = known
        for count, arrived_ms in arrivals:
            cell.note_arrival(arrived_ms, count)
        counts, max_ms, ahead_ms = delays
        cell.delays.merge(Delays(dict(counts), max_ms, ahead_ms))
    for tier, stream, host, seen_ms, interval_ms, is_closed, messages, topics in body["sessions"]:
        doubts = {name: Doubt(*numbers) for name, *numbers in topics}
        ledger.sessions[tier, stream] = Session(tier, host, seen_ms, interval_ms, is_closed, messages, doubts)
    for tier, topic, count in body["expired"]:
        ledger.expired[tier, topic] = ledger.expired.get((tier, topic), 0) + count
    for tier, topic, count in body["lost"]:
        ledger.lost[tier, topic] = ledger.lost.get((tier, topic), 0) + count
    for tier, topic, count in body["totals"]:
        ledger.totals[tier, topic] = ledger.totals.get((tier, topic), 0) + count
    ledger.skews_ms.update(body["skews"])
    ledger.repeated += body["repeated"]
    ledger.merged_conflicts += body["conflicts"]
    ledger.merged_gaps += [tuple(each) for each in body["gaps"]]
