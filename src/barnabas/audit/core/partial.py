"""Ledgers in parts: several that each summed other streams are merged into one.

In: a ledger, or the text of one. Out: text, or the sums of both. So executors sum up and the driver
compares. The streams themselves stay behind: a merged ledger can be compared, and takes no more messages of
the same streams.
Does not know: Spark.
"""

from __future__ import annotations

import json
from dataclasses import astuple
from functools import reduce
from typing import Any

from barnabas.audit.core.buckets import bucket_end
from barnabas.audit.core.delays import Delays
from barnabas.audit.core.ledger import SKEW_PERIOD_MS, Beginning, Cell, Doubt, Ledger, Session, Skew
from barnabas.audit.core.messages import Tally


def dump(ledger: Ledger) -> str:
    cells = [
        [
            topic, bucket, tier, cell.width_ms, cell.first_ms, cell.last_ms, list(cell.firsts.items()),
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
            "skews": [[host, *astuple(each)] for host, each in ledger.skews.items()],
            "totals": [[*place, count] for place, count in ledger.totals.items()],
            "repeated": ledger.repeated,
            "conflicts": ledger.conflicts,
            "beginnings": [
                [*place, each.since_ms, list(each.offsets.items()), each.sees_aborted]
                for place, each in ledger.beginnings.items()
            ],
            "topic_ids": [[*place, list(ids.items())] for place, ids in ledger.topic_ids.items()],
            "compacted": [[*place, is_compacted] for place, is_compacted in ledger.compacted.items()],
            "gaps": list(ledger.gaps()),
        }
    )


def merge(ledger: Ledger, text: str) -> None:
    """Add the sums of a ledger that summed other streams."""
    body: dict[str, Any] = json.loads(text)
    for topic, bucket, tier, width_ms, first_ms, last_ms, firsts, shares, delays, arrivals in body["cells"]:
        counts, max_ms, ahead_ms = delays
        tallies = {(host, partition): Tally(*tally) for host, partition, tally in shares}
        ledger.cell(topic, bucket, tier, width_ms).merge(
            Cell(
                width_ms,
                bucket_end(bucket, width_ms),
                reduce(Tally.plus, tallies.values(), Tally()),
                tallies,
                Delays(dict(counts), max_ms, ahead_ms),
                first_ms,
                last_ms,
                {last_ms: (count, last_ms) for count, last_ms in arrivals},
                dict(firsts),
            )
        )
    for tier, topic, since_ms, offsets, sees_aborted in body["beginnings"]:
        found = ledger.beginnings.setdefault((tier, topic), Beginning())
        found.sees_aborted = found.sees_aborted or sees_aborted
        found.since_ms = min(found.since_ms, since_ms)
        for partition, offset in offsets:
            found.note(partition, offset)
    for tier, topic, ids in body["topic_ids"]:
        for topic_id, arrived_ms in ids:
            ledger.note_topic_id((tier, topic), topic_id, arrived_ms)
    for tier, topic, is_compacted in body["compacted"]:
        ledger.compacted[tier, topic] = is_compacted
    for tier, stream, host, seen_ms, interval_ms, is_closed, messages, topics in body["sessions"]:
        doubts = {name: Doubt(*numbers) for name, *numbers in topics}
        ledger.sessions[tier, stream] = Session(tier, host, seen_ms, interval_ms, is_closed, messages, doubts)
    for tier, topic, count in body["expired"]:
        ledger.expired[tier, topic] = ledger.expired.get((tier, topic), 0) + count
    for tier, topic, count in body["lost"]:
        ledger.lost[tier, topic] = ledger.lost.get((tier, topic), 0) + count
    for tier, topic, count in body["totals"]:
        ledger.totals[tier, topic] = ledger.totals.get((tier, topic), 0) + count
    for host, *numbers in body["skews"]:
        other = Skew(*numbers)
        ledger.skews.setdefault(host, Skew()).note(other.period * SKEW_PERIOD_MS, other.least_ms)
    ledger.repeated += body["repeated"]
    ledger.merged_conflicts += body["conflicts"]
    ledger.merged_gaps += [tuple(each) for each in body["gaps"]]
