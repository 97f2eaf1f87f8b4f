"""Tiers compared: every kind of damage has its name, and 100 % means all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.counted import LATER, T0, WIDTH
from barnabas.audit.core.ledger import Ledger
from barnabas.audit.core.messages import CountMessage, Entry, StreamKind, Tally
from barnabas.audit.core.report import Report, Row, Rules, alarm_text, make_report
from barnabas.audit.core.tiers import default_reference, order_of, zone_of_source
from barnabas.audit.core.verdicts import State, percent
from barnabas.audit.report.page import page
from barnabas.audit.report.rules_file import duration_ms, rules_of
from barnabas.audit.report.text import lines


class Book:
    """A ledger that is written by hand."""

    def __init__(self) -> None:
        self.ledger = Ledger(keep_ms=2**60)
        self._numbers = 0

    def add(
        self,
        tier: str,
        count: int,
        *,
        topic: str = "orders",
        host: str = "h1",
        partition: int = 0,
        bucket: int = T0,
        arrived: int = T0 + WIDTH + 1_000,
        stream: str | None = None,
        is_last: bool = True,
        time_ms: int | None = None,
        **others: int,
    ) -> None:
        self._numbers += 1
        self.ledger.apply(
            CountMessage(
                tier, topic, host, stream or str(self._numbers), StreamKind.SESSION, self._numbers,
                self._numbers + 1, arrived if time_ms is None else time_ms,
                (Entry(bucket, Tally(count, **others), partition),), WIDTH, is_last=is_last,
            ),
            arrived,
        )  # fmt: skip

    def report(self, now_ms: int = LATER, rules: Rules | None = None, **choice: object) -> Report:
        return make_report(self.ledger, rules or Rules(), now_ms, **choice)  # type: ignore[arg-type]

    def row(self, tier: str, topic: str = "orders", bucket: int = T0, **choice: object) -> Row:
        rows = [
            row
            for row in self.report(**choice).rows  # type: ignore[arg-type]
            if (row.tier, row.topic, row.bucket_ms) == (tier, topic, bucket)
        ]
        assert len(rows) == 1
        return rows[0]


@pytest.fixture
def book() -> Book:
    return Book()


def test_records_that_the_tier_before_dropped_on_purpose_are_not_expected() -> None:
    book = Book()
    for partition in (0, 1):
        book.add("consumer/filter", 4, partition=partition, dropped=1)
        book.add("mirror/dc2", 4, partition=partition)
        book.add("cluster", 5, partition=partition)
    rules = Rules(references={"mirror/dc2": ("consumer/filter",), "consumer/filter": ("cluster",)})
    for tier in ("mirror/dc2", "consumer/filter"):
        row = book.row(tier, rules=rules)
        assert (row.verdict.state, row.verdict.missing, row.verdict.partitions) == (State.COMPLETE, 0, ())


def test_a_loss_behind_a_tier_that_drops_is_found_in_its_partition() -> None:
    book = Book()
    book.add("consumer/filter", 4, partition=0, dropped=1)
    book.add("mirror/dc2", 3, partition=0)
    row = book.row("mirror/dc2", rules=Rules(references={"mirror/dc2": ("consumer/filter",)}))
    assert (row.verdict.missing, row.verdict.partitions) == (1, (0,))


def test_the_worked_example(book: Book) -> None:
    book.add("producer", 600, host="a")
    book.add("producer", 400, host="a")
    book.add("producer", 500, host="b")
    book.add("cluster", 1_500)
    book.add("mirror/dc2", 1_496, host="m1")
    book.add("sink/lake", 1_502)
    assert book.row("cluster").verdict.state is State.COMPLETE
    mirror, lake = book.row("mirror/dc2"), book.row("sink/lake")
    assert (mirror.completeness, mirror.verdict.missing, mirror.verdict.state) == ("99.733", 4, State.MISSING)
    assert (lake.completeness, lake.verdict.extra, lake.verdict.state) == ("100.133", 2, State.DUPLICATED)
    assert [row.tier for row in book.report().alarms] == ["mirror/dc2", "sink/lake"]
    text = alarm_text(mirror)
    assert "orders" in text and str(T0) in text and "4 of 1500" in text
    assert "between cluster and mirror/dc2" in text and "m1" in text


def test_records_have_time_to_arrive_before_they_are_missing(book: Book) -> None:
    book.add("producer", 10, arrived=T0 + WIDTH - 60_000)
    book.add("cluster", 8)
    end, patience = T0 + WIDTH, 600_000
    assert book.row("cluster", now_ms=end - 1).verdict.state is State.OPEN
    assert book.row("cluster", now_ms=end).verdict.state is State.IN_FLIGHT
    assert book.row("cluster", now_ms=end + patience - 1).verdict.state is State.IN_FLIGHT
    assert not book.report(end + patience - 1).alarms
    assert book.row("cluster", now_ms=end + patience).verdict.state is State.MISSING
    rules = Rules(patience_ms={"cluster": 5_000})
    assert book.row("cluster", now_ms=end + 5_000, rules=rules).verdict.state is State.MISSING


def test_old_records_that_are_sent_now_have_time_to_arrive_too(book: Book) -> None:
    """A backfill: the bucket was over long ago, and the next tier's counts come some seconds later."""
    book.add("producer", 10, arrived=LATER)
    assert book.row("producer", now_ms=LATER).verdict.state is State.NO_REFERENCE
    book.add("cluster", 0, arrived=LATER, dropped=0, failed=1)
    assert book.row("cluster", now_ms=LATER + 9 * 60_000).verdict.state is State.IN_FLIGHT
    assert book.row("cluster", now_ms=LATER + 11 * 60_000).verdict.state is State.MISSING
    book.add("cluster", 10, arrived=LATER + 12 * 60_000)
    assert book.row("cluster", now_ms=LATER + 12 * 60_000).verdict.state is State.LATE


def test_counts_of_a_tier_that_come_before_those_of_its_reference_are_no_duplicates(book: Book) -> None:
    book.add("cluster", 10)
    book.add("consumer/billing", 10)
    book.add("consumer/billing", 5, arrived=LATER)  # old records; the brokers' counts are on their way
    assert book.row("consumer/billing", now_ms=LATER + 60_000).verdict.state is State.IN_FLIGHT
    assert book.row("consumer/billing", now_ms=LATER + 11 * 60_000).verdict.state is State.DUPLICATED
    book.add("cluster", 5, arrived=LATER + 12 * 60_000)
    assert book.row("consumer/billing", now_ms=LATER + 12 * 60_000).verdict.state is State.COMPLETE


def test_records_of_the_far_future_are_judged_when_nothing_comes_any_more(book: Book) -> None:
    far = T0 + 1_000_000 * WIDTH
    book.add("producer", 10, bucket=far)
    book.add("cluster", 9, bucket=far)
    assert book.row("cluster", bucket=far, now_ms=T0 + WIDTH + 60_000).verdict.state is State.IN_FLIGHT
    assert book.row("cluster", bucket=far).verdict.state is State.MISSING


def test_as_many_records_that_are_not_the_same_are_different(book: Book) -> None:
    """One was lost and another one came twice, in the same partition and bucket."""
    book.add("cluster", 10, summed=10, content=2**64 - 5)
    book.add("consumer/billing", 6, summed=6, content=2**64 - 7, host="h1")
    book.add("consumer/billing", 4, summed=4, content=2, host="h2")
    assert book.row("consumer/billing").verdict.state is State.COMPLETE
    book.add("sink/lake", 10, summed=10, content=7)
    row = book.row("sink/lake")
    assert (row.verdict.state, row.verdict.partitions) == (State.DIFFERENT, (0,))
    assert [each.tier for each in book.report().alarms] == ["sink/lake"]
    assert "the contents of 10 records differ between cluster and sink/lake, partitions 0" in alarm_text(row)
    book.add("mirror/dc2", 10)  # without sums there is nothing to compare
    book.add("consumer/some", 10, summed=9, content=3)
    assert [each.tier for each in book.report().alarms] == ["sink/lake"]


def test_a_counter_that_died_makes_only_what_it_can_have_counted_uncertain(book: Book) -> None:
    for number in range(3):
        book.add("producer", 2, stream="s", is_last=False, arrived=T0 + WIDTH + 1_000 + 10_000 * number)
    book.add("cluster", 12)
    assert book.row("cluster").verdict.state is State.UNCERTAIN  # 6 more: three windows of it
    book.add("cluster", 1)
    assert book.row("cluster").verdict.state is State.DUPLICATED
    later = T0 + 20 * WIDTH  # the session was over for long
    book.add("producer", 5, bucket=later, stream="t")
    book.add("cluster", 6, bucket=later)
    assert book.row("cluster", bucket=later).verdict.state is State.DUPLICATED


def test_a_consumer_that_died_before_its_last_counts_makes_losses_uncertain(book: Book) -> None:
    book.add("cluster", 12)
    for number in range(3):
        book.add("consumer/a", 3, stream="s", is_last=False, arrived=T0 + WIDTH + 1_000 + 10_000 * number)
    assert book.row("consumer/a").verdict.state is State.UNCERTAIN
    book.add("cluster", 20)
    assert book.row("consumer/a").verdict.state is State.MISSING


def test_records_that_come_after_the_patience_are_late_and_the_alarm_ends(book: Book) -> None:
    book.add("producer", 10)
    book.add("cluster", 8)
    assert book.report().alarms
    book.add("cluster", 2, arrived=T0 + WIDTH + 3_600_000)
    row = book.row("cluster")
    assert row.verdict.state is State.LATE
    assert row.verdict.completed_ms == 3_600_000
    assert not book.report().alarms


def test_a_loss_in_one_partition_is_not_made_up_for_by_a_duplicate_in_another(book: Book) -> None:
    for partition in range(3):
        book.add("cluster", 10, partition=partition)
    book.add("consumer/billing", 9, partition=0, host="reader-1")
    book.add("consumer/billing", 11, partition=1, host="reader-2")
    book.add("consumer/billing", 10, partition=2, host="reader-3")
    row = book.row("consumer/billing")
    assert row.verdict.state is State.MISSING_AND_DUPLICATED
    assert (row.verdict.missing, row.verdict.extra) == (1, 1)
    assert row.verdict.partitions == (0, 1)
    assert row.hosts == ("reader-1", "reader-2")
    assert row.completeness == "96.666"


def test_records_that_were_dropped_on_purpose_are_accounted_for(book: Book) -> None:
    book.add("zone/shop/raw", 10)
    book.add("zone/shop/staging", 7, dropped=3)
    assert book.row("zone/shop/staging").verdict.state is State.COMPLETE
    assert book.row("zone/shop/staging").dropped == 3


def test_records_that_failed_or_were_aborted_are_not_expected(book: Book) -> None:
    book.add("producer", 10, failed=5, aborted=7)
    book.add("cluster", 10, aborted=7)
    assert book.row("cluster").verdict.state is State.COMPLETE


def test_a_tier_that_counted_nothing_of_a_bucket_is_missing_all(book: Book) -> None:
    for bucket in (T0, T0 + WIDTH):
        book.add("cluster", 10, bucket=bucket)
    book.add("consumer/billing", 10)
    row = book.row("consumer/billing", bucket=T0 + WIDTH)
    assert (row.verdict.state, row.verdict.missing) == (State.MISSING, 10)


def test_a_tier_is_not_judged_before_it_began_to_count(book: Book) -> None:
    for bucket in (T0, T0 + WIDTH):
        book.add("cluster", 10, bucket=bucket)
    book.add("consumer/new", 10, bucket=T0 + WIDTH)
    assert not [row for row in book.report().rows if row.tier == "consumer/new" and row.bucket_ms == T0]


def test_producers_that_do_not_count_leave_the_cluster_as_the_reference(book: Book) -> None:
    book.add("cluster", 10)
    book.add("consumer/billing", 9)
    assert book.row("cluster").verdict.state is State.NO_REFERENCE
    assert book.row("cluster").completeness == "-"
    assert book.row("consumer/billing").references == ("cluster",)


def test_a_producer_that_died_before_its_last_counts_makes_more_records_uncertain_not_duplicated(
    book: Book,
) -> None:
    book.add("producer", 10, is_last=False)
    book.add("cluster", 12)
    assert book.row("cluster").verdict.state is State.UNCERTAIN
    assert not book.report().alarms
    assert any("without its last counts" in note for note in book.report().notes)
    book.add("producer", 2, host="h2")
    assert book.row("cluster").verdict.state is State.COMPLETE


def test_a_loss_behind_a_producer_that_died_is_a_loss(book: Book) -> None:
    book.add("producer", 10, is_last=False)
    book.add("cluster", 9)
    assert book.row("cluster").verdict.state is State.MISSING


def test_any_two_tiers_can_be_compared(book: Book) -> None:
    book.add("producer", 10)
    book.add("cluster", 10)
    book.add("consumer/billing", 8)
    report = book.report(between=("producer", "consumer/billing"))
    assert [(row.tier, row.references, row.verdict.missing) for row in report.rows] == [
        ("consumer/billing", ("producer",), 2)
    ]


def test_a_mirror_that_renames_topics_and_joins_clusters_follows_rules(book: Book) -> None:
    book.add("cluster/dc1", 10)
    book.add("cluster/dc2", 5)
    rules = rules_of(
        {
            "patience": "5m",
            "tiers": {
                "mirror/all": {
                    "reference": ["cluster/dc1", "cluster/dc2"],
                    "topics": {"all.orders": "orders"},
                    "patience": "1h",
                },
                "consumer/old": {"ignore": True},
                "mirror/small": {"keeps_partitions": False, "reference": "cluster/dc1"},
            },
        }
    )
    book.add("mirror/all", 14, topic="all.orders")
    book.add("consumer/old", 1)
    book.add("mirror/small", 10, partition=7)
    assert book.row("mirror/small", rules=rules).verdict.state is State.COMPLETE
    row = book.row("mirror/all", "all.orders", rules=rules)
    assert (row.verdict.expected, row.verdict.missing) == (15, 1)
    book.add("cluster/dc1", 3, bucket=T0 + WIDTH)  # nothing of this bucket came at all
    later = book.row("mirror/all", "all.orders", bucket=T0 + WIDTH, rules=rules)
    assert (later.verdict.expected, later.verdict.missing) == (3, 3)
    assert not [row for row in book.report(rules=rules).rows if row.tier == "consumer/old"]
    assert rules.patience_of("mirror/all") == 3_600_000 and rules.patience_of("cluster") == 300_000


def test_topics_that_the_reference_of_a_rule_does_not_count_have_no_reference(book: Book) -> None:
    """A mirrored cluster has topics of its own, those of the mirror for example."""
    book.add("cluster", 10)
    book.add("mirror/dc2", 10)
    book.add("mirror/dc2", 7, topic="mm2-configs.dc1.internal")
    rules = rules_of({"tiers": {"mirror/dc2": {"reference": "cluster"}}})
    assert book.row("mirror/dc2", rules=rules).verdict.state is State.COMPLETE
    own = book.row("mirror/dc2", "mm2-configs.dc1.internal", rules=rules)
    assert own.verdict.state is State.NO_REFERENCE


@pytest.mark.parametrize(
    "body", [{"tier": {}}, {"tiers": {"a": {"patient": "1m"}}}, {"patience": "soon"}, {"tiers": {"a": 5}}, []]
)
def test_rules_that_are_wrong_are_refused(body: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        rules_of(body)


def test_durations() -> None:
    assert [duration_ms(text) for text in ("250", "30s", "10m", "1h", "2d")] == [
        250, 30_000, 600_000, 3_600_000, 172_800_000,
    ]  # fmt: skip


def test_a_clock_that_differs_from_the_brokers_is_named(book: Book) -> None:
    book.add("producer", 10, host="slow", time_ms=T0 + WIDTH + 1_000 - 60_000)
    book.add("cluster", 10)
    assert any("the clock of slow is about 60000 ms behind" in note for note in book.report().notes)
    assert book.row("cluster").verdict.state is State.COMPLETE


def test_records_without_a_time_are_judged_when_nothing_comes_any_more(book: Book) -> None:
    book.add("producer", 10, bucket=-1, arrived=LATER)
    book.add("cluster", 9, bucket=-1, arrived=LATER)
    assert book.row("cluster", bucket=-1, now_ms=LATER + 1).verdict.state is State.IN_FLIGHT
    assert book.row("cluster", bucket=-1, now_ms=LATER + 600_000).verdict.state is State.MISSING


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_completeness_is_never_rounded_up(seen: int, expected: int) -> None:
    text = percent(seen, expected)
    assert float(text) <= seen * 100 / expected + 1e-6
    assert (text == "100") == (seen == expected) or seen > expected
    if seen < expected:
        assert float(text) < 100


def test_tiers_are_compared_with_the_one_before_them() -> None:
    known = ["producer", "cluster", "zone/shop/raw", "zone/shop/staging", "zone/shop/trusted", "consumer/a"]
    assert [default_reference(tier, known) for tier in sorted(known, key=order_of)] == [
        None, "producer", "cluster", "cluster", "zone/shop/raw", "zone/shop/staging",
    ]  # fmt: skip
    tables = [zone_of_source("shop", "orders", name, "paid") for name in ("staging", "trusted")]
    known = ["cluster", zone_of_source("shop", "orders", "raw"), *tables, "zone/shop/payments/raw"]
    assert sorted(known, key=order_of)[-2:] == tables
    assert [default_reference(tier, known) for tier in known] == [
        None, "cluster", "zone/shop/orders/raw", "zone/shop/orders/raw", "cluster",
    ]  # fmt: skip


def test_a_loss_and_a_duplicate_of_a_zone_do_not_make_up_for_each_other(book: Book) -> None:
    for partition in (0, 1):
        book.add("zone/shop/orders/raw", 10, partition=partition)
    book.add("zone/shop/orders/staging.orders", 8, dropped=1, partition=0)
    book.add("zone/shop/orders/staging.orders", 11, partition=1)
    verdict = book.row("zone/shop/orders/staging.orders").verdict
    assert (verdict.missing, verdict.extra, verdict.partitions) == (1, 1, (0, 1))


def test_old_buckets_are_forgotten_and_cells_are_bounded() -> None:
    ledger = Ledger(keep_ms=WIDTH, cells_max=3)
    for number in range(10):
        entry = (Entry(T0 + number * WIDTH, Tally(1), 0),)
        ledger.apply(
            CountMessage("cluster", "t", "h", "s", StreamKind.OFFSETS, number, number + 1, 0, entry, WIDTH),
            T0 + number * WIDTH,
        )
    assert sorted(bucket for _, bucket in ledger.columns) == [T0 + number * WIDTH for number in (7, 8, 9)]
    ledger.forget_before(T0 + 10 * WIDTH)
    assert sorted(bucket for _, bucket in ledger.columns) == [T0 + 9 * WIDTH]


def test_a_report_as_text_and_as_a_page(book: Book) -> None:
    book.add("producer", 10)
    book.add("cluster", 9, host="<b>&")
    text = "\n".join(lines(book.report()))
    assert "COMPLETE-%" in text and "90" in text and "missing" in text and "2023-11-14T22:20:00Z" in text
    html = page(book.report(), 60)
    assert "&lt;b&gt;&amp;" in html and "<b>&" not in html
    assert "1 alarm." in html and "The first report" in page(None, 60)
