"""A healthy system has no alarm: not while tiers begin to count, not after a change of settings."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from audit.counted import LATER, T0, WIDTH
from barnabas.audit.core.ledger import Ledger
from barnabas.audit.core.messages import CountMessage, Entry, MessageError, StreamKind, Tally, decode, encode
from barnabas.audit.core.report import Report, Row, Rules, make_report
from barnabas.audit.core.verdicts import State
from barnabas.audit.report.metrics import AuditCollector
from barnabas.audit.report.page import page
from barnabas.audit.report.rules_file import rules_of
from barnabas.audit.report.text import lines

END = T0 + WIDTH


class Counts:
    """Count messages that are written by hand."""

    def __init__(self) -> None:
        self.ledger = Ledger(keep_ms=2**60)
        self._ends: dict[tuple[str, int], int] = {}  # by log and partition
        self._sessions = 0

    def log(
        self, count: int, *, tier: str = "cluster", partition: int = 0, arrived: int = T0 + 10_000,
        bucket: int = T0, width: int = WIDTH, topic: str = "orders", is_compacted: bool = False,
        aborted: int = 0, topic_id: str = "", **others: int,
    ) -> None:  # fmt: skip
        """A broker counts the next records of a partition."""
        place = (tier + topic_id, partition)
        start = self._ends.get(place, 0)
        end = self._ends[place] = start + count + aborted
        entry = Entry(bucket, Tally(count, 0, aborted, **others), partition, first=start)
        stream = f"{tier}{topic_id}-{partition}"
        self.ledger.apply(
            CountMessage(
                tier, topic, "broker-1", stream, StreamKind.OFFSETS, start, end, arrived, (entry,), width,
                is_compacted=is_compacted,
            ),
            arrived,
        )  # fmt: skip

    def client(
        self, tier: str, count: int, *, partition: int = 0, arrived: int = T0 + 10_000, age: int = 0,
        first: int = -1, bucket: int = T0, topic: str = "orders", sees_aborted: bool = False, **others: int,
    ) -> None:  # fmt: skip
        self._sessions += 1
        entry = Entry(bucket, Tally(count, **others), partition, first=first)
        self.ledger.apply(
            CountMessage(
                tier, topic, "shop-1", str(self._sessions), StreamKind.SESSION, 0, 1, arrived, (entry,),
                WIDTH, is_last=True, age_ms=age, sees_aborted=sees_aborted,
            ),
            arrived,
        )  # fmt: skip

    def report(self, now_ms: int = LATER, rules: Rules | None = None) -> Report:
        return make_report(self.ledger, rules or Rules(), now_ms)

    def row(self, tier: str, bucket: int = T0, rules: Rules | None = None) -> Row:
        [found] = [
            row for row in self.report(rules=rules).rows if (row.tier, row.bucket_ms) == (tier, bucket)
        ]
        return found


@pytest.fixture
def told() -> Counts:
    return Counts()


def test_buckets_before_producers_began_to_count_have_no_reference(told: Counts) -> None:
    told.log(100)
    told.log(50, bucket=END, arrived=END + 10_000)
    told.log(70, bucket=END, arrived=END + 40_000)
    told.client("producer", 60, bucket=END, arrived=END + 50_000, age=20_000)
    assert told.row("cluster").verdict.state is State.NO_REFERENCE
    assert told.row("cluster", END).verdict.state is State.UNCERTAIN
    told.log(10, bucket=END + WIDTH, arrived=END + WIDTH + 10_000)
    told.client("producer", 9, bucket=END + WIDTH, arrived=END + WIDTH + 10_000)
    assert told.row("cluster", END + WIDTH).verdict.state is State.DUPLICATED


def test_a_record_that_is_sent_twice_in_the_first_bucket_of_a_producer_is_an_alarm(told: Counts) -> None:
    """Nothing had passed when the producer began."""
    told.client("producer", 100, arrived=T0 + 11_000, age=10_000)
    told.log(101, arrived=T0 + 5_000)
    assert told.row("cluster").verdict.state is State.DUPLICATED


def test_a_consumer_that_begins_in_the_middle_misses_nothing(told: Counts) -> None:
    told.log(100)
    told.log(40, arrived=T0 + 30_000)
    told.client("consumer/new", 40, first=100, arrived=T0 + 31_000)
    assert told.row("consumer/new").verdict.state is State.UNCERTAIN
    assert not told.report().alarms


def test_a_consumer_that_loses_more_than_it_can_have_missed_at_its_beginning_is_an_alarm(
    told: Counts,
) -> None:
    told.log(140)
    told.client("consumer/new", 39, first=100, arrived=T0 + 31_000)
    row = told.row("consumer/new")
    assert (row.verdict.state, row.verdict.missing, row.verdict.partitions) == (State.MISSING, 101, (0,))


def test_a_consumer_that_reads_from_the_beginning_is_judged_from_its_first_bucket_on(told: Counts) -> None:
    for bucket in (T0, END):
        told.log(100, bucket=bucket, arrived=bucket + 10_000)
    told.client("consumer/new", 99, first=0, arrived=END + 60_000)
    told.client("consumer/new", 100, first=100, bucket=END, arrived=END + 60_000)
    assert told.row("consumer/new").verdict.state is State.MISSING
    assert told.row("consumer/new", END).verdict.state is State.COMPLETE


def test_an_old_record_does_not_make_a_new_consumer_responsible_for_all_since_then(told: Counts) -> None:
    for number in range(5):
        told.log(100, bucket=T0 + number * WIDTH, arrived=T0 + number * WIDTH + 10_000)
    told.log(1, bucket=T0, arrived=T0 + 5 * WIDTH)
    told.client("consumer/new", 1, first=500, bucket=T0, arrived=T0 + 5 * WIDTH + 1)
    assert not told.report().alarms
    assert [row.bucket_ms for row in told.report().rows if row.tier == "consumer/new"] == [T0]


def test_partitions_that_only_had_records_before_a_consumer_began_are_not_missing(told: Counts) -> None:
    told.log(10, partition=1)
    told.log(10, partition=0)
    told.client("consumer/new", 5, first=5, arrived=T0 + 20_000)
    assert not told.report().alarms
    told.log(7, partition=1, bucket=END, arrived=END + 1)  # these it should have read
    told.log(7, partition=0, bucket=END, arrived=END + 1)
    told.client("consumer/new", 7, first=10, bucket=END, arrived=END + 1)
    assert told.row("consumer/new", END).verdict.partitions == (1,)


def test_a_sink_that_begins_in_the_middle_misses_nothing(told: Counts) -> None:
    told.log(100)
    entries = (Entry(T0, Tally(40), 0),)
    told.ledger.apply(
        CountMessage("sink/lake", "orders", "w", "s", StreamKind.OFFSETS, 60, 100, T0, entries, WIDTH),
        T0 + 60_000,
    )
    assert told.row("sink/lake").verdict.state is State.UNCERTAIN


def test_readers_of_a_compacted_topic_see_fewer_records_and_raise_no_alarm(told: Counts) -> None:
    told.log(100, is_compacted=True)
    told.client("consumer/billing", 60, first=0, arrived=T0 + 60_000)
    row = told.row("consumer/billing")
    assert (row.verdict.state, row.verdict.missing) == (State.COMPACTED, 40)
    told.client("consumer/other", 101, first=0, arrived=T0 + 60_000)
    assert told.row("consumer/other").verdict.state is State.DUPLICATED


def test_a_broker_that_counts_fewer_records_of_a_compacted_topic_than_producers_is_an_alarm(
    told: Counts,
) -> None:
    told.client("producer", 101)
    told.log(100, is_compacted=True)
    assert told.row("cluster").verdict.state is State.MISSING


def test_consumers_that_read_uncommitted_records_see_aborted_ones_too(told: Counts) -> None:
    told.log(100, aborted=20)
    told.client("consumer/all", 120, first=0, sees_aborted=True)
    told.client("consumer/wrong", 110, first=0, sees_aborted=True)
    told.client("consumer/committed", 120, first=0)
    assert [row.tier for row in told.report().alarms] == ["consumer/committed", "consumer/wrong"]


def test_records_whose_acknowledgement_never_came_may_be_stored(told: Counts) -> None:
    told.client("producer", 100, failed=3)
    told.client("producer", 0, failed=2, partition=-1)
    told.log(104)
    assert told.row("cluster").verdict.state is State.UNCERTAIN
    told.log(2)
    assert told.row("cluster").verdict.state is State.DUPLICATED


@pytest.mark.parametrize("is_counted_first", [True, False])
def test_tiers_with_buckets_of_different_widths_are_compared_where_they_line_up(
    told: Counts, is_counted_first: bool
) -> None:
    def narrow() -> None:
        for minute in range(20):
            told.log(10, bucket=T0 + minute * 60_000, width=60_000)

    if is_counted_first:
        narrow()
    told.client("producer", 100, bucket=T0)
    told.client("producer", 99, bucket=END)
    if not is_counted_first:
        narrow()
    assert [(row.bucket_ms, row.verdict.extra) for row in told.report().alarms] == [(END, 1)]
    assert {row.width_ms for row in told.report().rows} == {WIDTH}


def test_widths_that_do_not_divide_each_other_meet_in_their_least_common_multiple(told: Counts) -> None:
    base = T0 - T0 % (40 * 60_000)
    told.client("producer", 40, bucket=base)
    for number in range(5):
        told.log(8, bucket=base + number * 480_000, width=480_000)
    [row] = [row for row in told.report().rows if row.tier == "cluster"]
    assert (row.width_ms, row.verdict.state) == (40 * 60_000, State.COMPLETE)


def test_buckets_whose_oldest_counts_are_deleted_are_uncertain(told: Counts) -> None:
    """Records without a timestamp: retention has deleted other messages of one counter than of another."""
    told.ledger.since_ms = T0
    told.client("producer", 100, bucket=-1, arrived=T0 + 1_000)
    told.log(90, bucket=-1, arrived=T0 + 1_000)
    assert told.row("cluster", -1).verdict.state is State.UNCERTAIN
    others = {"topic": "others", "partition": 1, "bucket": T0 - 50 * WIDTH, "arrived": END + WIDTH}
    told.client("producer", 10, **others)  # type: ignore[arg-type]
    told.log(9, **others)  # type: ignore[arg-type]
    assert [(row.topic, row.verdict.missing) for row in told.report().alarms] == [("others", 1)]


def test_old_records_are_kept_for_as_long_after_they_were_counted_as_new_ones(told: Counts) -> None:
    ledger = told.ledger = Ledger()
    told.client("producer", 5, bucket=T0 - 10_000 * WIDTH)
    ledger.forget_before(T0 + 3_600_000)
    assert ledger.columns
    ledger.forget_before(T0 + 8 * 86_400_000)
    assert not ledger.columns


def test_a_long_patience_holds_for_records_that_are_sent_late_over_a_long_time(told: Counts) -> None:
    rules = Rules(patience_ms={"sink": 10_800_000})
    begin = END + 86_400_000
    told.client("sink/lake", 1, first=0, arrived=begin)
    for number in range(600):  # a backfill of an old bucket that lasts 100 minutes
        told.log(10, arrived=begin + number * 10_000)
    told.ledger.forget_before(begin + 2 * 3_600_000)
    [row] = [row for row in told.report(begin + 2 * 3_600_000, rules).rows if row.tier == "sink/lake"]
    assert row.verdict.state is State.IN_FLIGHT


def test_a_client_that_was_killed_a_few_minutes_ago_makes_its_counts_uncertain(told: Counts) -> None:
    told.log(100, arrived=END)
    for number in range(3):
        told.ledger.apply(
            CountMessage(
                "consumer/a", "orders", "shop-1", "s", StreamKind.SESSION, number, number + 1, 0,
                (Entry(T0, Tally(32), 0, first=0),), WIDTH,
            ),
            END + 290_000 + number * 5_000,
        )  # fmt: skip
    [row] = [row for row in told.report(END + 601_000).rows if row.tier == "consumer/a"]
    assert row.verdict.state is State.UNCERTAIN


def test_records_of_a_topic_that_was_deleted_are_not_missing_behind_it(told: Counts) -> None:
    told.log(100, arrived=T0 + 10_000)
    told.log(40, arrived=T0 + 60_000, topic_id="again")
    told.client("consumer/new", 40, first=0, arrived=T0 + 61_000)
    assert told.row("consumer/new").verdict.state is State.UNCERTAIN
    told.log(10, bucket=END, arrived=END + 1, topic_id="again")
    told.client("consumer/new", 9, first=40, bucket=END, arrived=END + 1)
    assert told.row("consumer/new", END).verdict.state is State.MISSING


def test_a_message_that_was_on_its_way_for_long_says_nothing_of_its_hosts_clock(told: Counts) -> None:
    for number, late_ms in enumerate((20_000, 0, 9_000)):
        arrived = T0 + 60_000 * number
        told.ledger.apply(
            CountMessage(
                "producer", "", "shop-1", "s", StreamKind.SESSION, number, number + 1, arrived - late_ms
            ),
            arrived,
        )
    assert not told.ledger.skews_ms


def test_a_tier_is_judged_from_the_time_on_that_a_rule_names(told: Counts) -> None:
    for bucket in (T0, END):
        told.log(10, bucket=bucket)
        told.client("mirror/dc2", 9, bucket=bucket)
    rules = rules_of({"tiers": {"mirror/dc2": {"since": "2023-11-14T22:30:00Z"}}})
    assert rules.since_ms == {"mirror/dc2": END}
    assert [row.bucket_ms for row in told.report(rules=rules).rows if row.tier == "mirror/dc2"] == [END]
    with pytest.raises(ValueError, match="no time"):
        rules_of({"tiers": {"mirror/dc2": {"since": "soon"}}})


class Source:
    """An auditor that has read some counts."""

    def __init__(self, told: Counts) -> None:
        self.ledger = told.ledger
        self.on_report: list[Callable[[Report], None]] = []


def metrics_of(told: Counts) -> str:
    registry, source = CollectorRegistry(), Source(told)
    registry.register(AuditCollector(source))  # type: ignore[arg-type]
    source.on_report[0](told.report())
    return generate_latest(registry).decode()


def test_metrics_raise_no_alert_where_the_report_has_no_alarm(told: Counts) -> None:
    told.client("producer", 100, failed=5)
    told.log(105)
    told.client("consumer/billing", 104, first=1)

    assert not told.report().alarms
    text = metrics_of(told)
    assert "completeness_ratio{" not in text and "duplicate_ratio{" not in text
    assert "barnabas_audit_alarms 0.0" in text


def test_contents_that_differ_are_an_alert_too(told: Counts) -> None:
    told.log(10, summed=10, content=5)
    told.client("consumer/billing", 10, first=0, summed=10, content=6)

    assert [row.verdict.state for row in told.report().alarms] == [State.DIFFERENT]
    ratio = 'barnabas_audit_completeness_ratio{tier="consumer/billing",topic="orders"} 0.9'
    assert ratio in metrics_of(told)


STRANGE = [
    {"topic": "a\nb\x1b[31m"}, {"tier": "\ud800"}, {"host": "<script>"}, {"tier": ""}, {"stream": ""},
    {"time": -(2**62)}, {"time": 2**62}, {"start": -5, "end": 2**62}, {"width": 1_000}, {"expired": 2**62},
    {"counts": [{"bucket": 2**62, "count": 2**62, "partition": 2**31}]},
    {"counts": [{"bucket": 0, "count": 2**62, "delays": {"201": 2**62}, "delay_max": -5}]},
    {"counts": [{"bucket": 5, "count": 1, "summed": 2**62, "content": "f" * 16, "first": 2**62}]},
    {"age": 2**62}, {"epoch": 2**31, "correction": 5}, {"kind": "batches", "correction": 0},
]  # fmt: skip


@pytest.mark.parametrize("change", STRANGE, ids=str)
def test_reports_are_made_whatever_strangers_write_to_the_audit_topic(
    told: Counts, change: dict[str, object]
) -> None:
    told.log(10)
    body = json.loads(encode(CountMessage("cluster", "t", "h", "s", StreamKind.SESSION, 0, 1, T0)))
    body["counts"] = [{"bucket": T0, "count": 1}]
    try:
        told.ledger.apply(decode(json.dumps({**body, **change}).encode()), T0)
    except MessageError:
        return
    report = told.report()
    json.dumps(report.to_json(), ensure_ascii=False).encode()
    "\n".join(lines(report)).encode()
    page(report, 60).encode()


def test_a_week_of_a_busy_partition_needs_no_more_memory_than_its_buckets(told: Counts) -> None:
    """The stream remembers the sums of its last cuts only."""
    for number in range(300):
        told.log(10, bucket=T0 + number * WIDTH, arrived=T0 + number * WIDTH + 10_000)
    [stream] = told.ledger._streams.values()
    [covered] = stream._covered
    assert sum(map(len, covered._parts)) <= 64
    assert sum(len(cell.arrivals) for column in told.ledger.columns.values() for cell in column.values()) == 0
