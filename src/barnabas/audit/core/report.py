"""The report: a row for each topic, bucket and tier, and the alarms that follow from them.

In: a ledger, rules, the time. Out: rows and alarms. An alarm names topic, bucket, tier, partitions and the
hosts that counted there. The same ledger and time give the same report, in this process or in Spark.
Does not know: how a report is shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.audit.core.delays import Delays
from barnabas.audit.core.doubts import Compared, Doubtful, began_later
from barnabas.audit.core.ledger import Cell, Ledger
from barnabas.audit.core.messages import Tally
from barnabas.audit.core.tiers import default_reference, kind_of, order_of
from barnabas.audit.core.verdicts import PATIENCE_MS, State, Verdict, judge, percent

SESSION_PATIENCE_MS = 2 * 60_000

Tiers = dict[str, dict[str, int]]  # by topic: the tiers that count it, with the first bucket of each


@dataclass(frozen=True, slots=True)
class Rules:
    """Tiers that belong together, where the names of tiers do not say it.

    `references`: tier → the tiers whose sum it is compared with. `topics`: (tier, topic) → the topic under
    which the tier before counts the same records (a mirror that renames). `patience_ms`: by tier or kind of
    tier. `ignored`: tiers that are not judged. `repartitioned`: tiers whose records have other partitions.
    `since_ms`: tiers that are judged from this bucket on.
    """

    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    topics: Mapping[tuple[str, str], str] = field(default_factory=dict)
    patience_ms: Mapping[str, int] = field(default_factory=dict)
    default_patience_ms: int = PATIENCE_MS
    ignored: frozenset[str] = frozenset()
    repartitioned: frozenset[str] = frozenset()
    since_ms: Mapping[str, int] = field(default_factory=dict)

    def patience_of(self, tier: str) -> int:
        found = self.patience_ms.get(tier, self.patience_ms.get(kind_of(tier)))
        return self.default_patience_ms if found is None else found


@dataclass(frozen=True, slots=True)
class Row:
    topic: str
    bucket_ms: int
    width_ms: int
    tier: str
    references: tuple[str, ...]
    verdict: Verdict
    hosts: tuple[str, ...]
    delays: Delays
    dropped: int
    aborted: int
    failed: int

    @property
    def completeness(self) -> str:
        verdict = self.verdict
        if not self.references:
            return "-"
        return percent(verdict.seen, verdict.expected, verdict.missing if verdict.extra else 0)

    def to_json(self) -> dict[str, Any]:
        verdict = self.verdict
        quantiles = {f"p{share * 100:g}": self.delays.percentile_ms(share) for share in (0.5, 0.95, 0.99)}
        return {
            "topic": self.topic,
            "bucket_ms": self.bucket_ms,
            "width_ms": self.width_ms,
            "tier": self.tier,
            "references": list(self.references),
            "state": verdict.state.value,
            "expected": verdict.expected,
            "seen": verdict.seen,
            "missing": verdict.missing,
            "extra": verdict.extra,
            "completeness_percent": self.completeness,
            "partitions": list(verdict.partitions),
            "hosts": list(self.hosts),
            "completed_after_ms": verdict.completed_ms,
            "delay_ms": {**quantiles, "max": self.delays.max_ms},
            "clock_ahead_ms": self.delays.ahead_max_ms,
            "dropped": self.dropped,
            "aborted": self.aborted,
            "failed": self.failed,
        }


@dataclass(frozen=True, slots=True)
class Report:
    time_ms: int
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def alarms(self) -> list[Row]:
        """Rows below or above 100 % after the allowed delay."""
        return [row for row in self.rows if row.verdict.state.is_wrong]

    def to_json(self) -> dict[str, Any]:
        return {
            "time_ms": self.time_ms,
            "rows": [row.to_json() for row in self.rows],
            "alarms": [alarm(row) for row in self.alarms],
            "notes": list(self.notes),
        }


def alarm(row: Row) -> dict[str, Any]:
    return {"text": alarm_text(row), **row.to_json()}


def alarm_text(row: Row) -> str:
    verdict = row.verdict
    what = []
    if verdict.missing:
        what.append(f"{verdict.missing} of {verdict.expected} records are missing")
    if verdict.extra:
        what.append(f"{verdict.extra} records are too many")
    if not what:
        what.append(f"the contents of {verdict.expected} records differ")
    where = f", partitions {', '.join(map(str, verdict.partitions))}" if verdict.partitions else ""
    hosts = f", hosts {', '.join(row.hosts)}" if row.hosts else ", no host has counted any"
    return (
        f"{row.topic}, bucket {row.bucket_ms}: {' and '.join(what)} between {' + '.join(row.references)} "
        f"and {row.tier}{where}{hosts}"
    )


def make_report(
    ledger: Ledger,
    rules: Rules,
    now_ms: int,
    *,
    topic: str | None = None,
    between: tuple[str, str] | None = None,
) -> Report:
    """Judge every cell; `between` compares two tiers whatever the rules say."""
    silent = ledger.silent_sessions(now_ms, SESSION_PATIENCE_MS)
    doubtful: Doubtful = {}
    for session in silent:
        for name in session.topics:
            doubtful.setdefault((session.tier, name), []).append(session)
    tiers: Tiers = {}
    for (name, bucket), column in ledger.columns.items():
        firsts = tiers.setdefault(name, {})
        for tier in column:
            firsts[tier] = min(firsts.get(tier, bucket), bucket)
    places = {*ledger.columns, *renamed_places(ledger, rules, tiers)}
    rows = [
        row
        for place in sorted(places)
        if topic is None or place[0] == topic
        for row in rows_of(ledger, rules, now_ms, place, tiers, between, doubtful)
    ]
    return Report(now_ms, tuple(rows), tuple(notes_of(ledger, now_ms)))


def renamed_places(ledger: Ledger, rules: Rules, tiers: Tiers) -> Iterator[tuple[str, int]]:
    """Buckets that only the tier before a renaming has: all of their records may be missing behind it."""
    for (_, topic), source in rules.topics.items():
        if topic in tiers:
            yield from ((topic, bucket) for name, bucket in ledger.columns if name == source)


def rows_of(
    ledger: Ledger,
    rules: Rules,
    now_ms: int,
    place: tuple[str, int],
    tiers: Tiers,
    between: tuple[str, str] | None,
    doubtful: Doubtful,
) -> Iterator[Row]:
    """A row for each tier that counts this topic at all, also if it counted nothing of this bucket."""
    topic, bucket = place
    firsts = tiers[topic]
    wanted = firsts.keys() - rules.ignored if between is None else {between[1]}
    for tier in sorted(wanted, key=order_of):
        if between is None and (bucket < firsts[tier] or bucket < rules.since_ms.get(tier, bucket)):
            continue  # the tier began to count later
        source = rules.topics.get((tier, topic), topic)
        cell = ledger.columns.get(place, {}).get(tier)
        sources = ledger.columns.get((source, bucket), {})
        names = references_of(tier, rules, tiers.get(source, {}).keys(), between)
        if between is None:
            names = tuple(
                name for name in names if name in sources or not began_later(ledger, name, source, cell)
            )
        references = [(name, sources.get(name)) for name in names]
        if cell is None and all(each is None for _, each in references):
            continue
        compared = Compared(ledger, doubtful, bucket, tier, topic, cell, source, references)
        verdict = judge(
            bucket,
            tier,
            cell,
            references,
            now_ms,
            patience_ms=rules.patience_of(tier),
            doubts=compared.doubts,
            keeps_partitions=tier not in rules.repartitioned,
            sees_aborted=(tier, topic) in ledger.beginnings and ledger.beginnings[tier, topic].sees_aborted,
        )
        if cell is None and verdict.state is State.UNCERTAIN and compared.saw_nothing_yet:
            continue
        total = cell.total if cell is not None else Tally()
        yield Row(
            topic,
            bucket,
            ledger.widths_ms[topic],
            tier,
            names,
            verdict,
            blamed_hosts(cell, verdict),
            cell.delays if cell is not None else Delays(),
            total.dropped,
            total.aborted,
            total.failed,
        )


def references_of(
    tier: str, rules: Rules, known: Collection[str], between: tuple[str, str] | None
) -> tuple[str, ...]:
    if between is not None:
        return (between[0],)
    if tier in rules.references:
        # A topic that none of them counts has no reference: the mirrored cluster has topics of its own.
        wanted = rules.references[tier]
        return wanted if any(name in known for name in wanted) else ()
    found = default_reference(tier, known)
    return () if found is None else (found,)


def blamed_hosts(cell: Cell | None, verdict: Verdict) -> tuple[str, ...]:
    """The hosts that counted the partitions with differences; all hosts of the cell if none did."""
    if cell is None:
        return ()
    wrong = set(verdict.partitions)
    found = {host for host, partition in cell.shares if partition in wrong}
    return tuple(sorted(found or cell.hosts))


def notes_of(ledger: Ledger, now_ms: int) -> Iterator[str]:
    for (tier, topic), count in sorted(ledger.expired.items()):
        yield f"{tier}: {count} offsets of {topic} were gone, or damaged, before they were counted"
    for (tier, topic), count in sorted(ledger.lost.items()):
        yield f"{tier}: {count} records of {topic} were counted and then lost in an unclean leader election"
    for tier, stream, size in sorted(ledger.gaps()):
        yield f"{tier}: counts of {size} steps of the stream {stream} are missing: sums may be too small"
    for session in ledger.silent_sessions(now_ms, SESSION_PATIENCE_MS):
        yield f"{session.tier}: the counter on {session.host} ended without its last counts"
    for host, skew_ms in sorted(ledger.skews_ms.items()):
        where = "behind" if skew_ms > 0 else "ahead of"
        yield f"the clock of {host} is about {abs(skew_ms)} ms {where} the broker's: so are its delays"
    if ledger.conflicts:
        yield f"{ledger.conflicts} count messages overlap others in a way that cannot be resolved"


__all__ = ["Report", "Row", "Rules", "State", "alarm", "alarm_text", "make_report"]
