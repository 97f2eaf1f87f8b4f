"""Scheduled jobs: sources are read side by side, and each table waits for its own sources only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from barnabas.engine.schedule import Job
from barnabas.engine.timeline import Kind
from barnabas.pipeline.file.reading import read_text
from barnabas.pipeline.run.batch_app import sources_of_jobs
from barnabas.pipeline.run.job_lanes import JobLanes
from barnabas.pipeline.run.worker import jobs_of
from barnabas.testing.waiting import wait_until

FILE = """
name: shop
lake: ./lake
sources:
  orders:
    files: {path: /data/orders}
    schema: "id BIGINT, shop STRING"
    frequency: {batch: "0 2 * * *"}
  shops:
    files: {path: /data/shops}
    schema: "shop STRING"
    frequency: {batch: "0 2 * * *"}
  clicks: {files: {path: /data/clicks}, schema: "id BIGINT"}
staging: {orders: {}, shops: {}, clicks: {}}
trusted: {orders: {}, shops: {}, clicks: {}}
refined:
  known: {sql: "SELECT o.id FROM orders o JOIN shops s ON o.shop = s.shop"}
  most: {sql: "SELECT max(id) AS id FROM known"}
  others: {sql: "SELECT max(id) AS id FROM clicks"}
views:
  counts:
    from: trusted.shops
    sql: SELECT shop, count(*) AS n FROM shops GROUP BY shop
    keys: [shop]
    measures: {n: count}
    batch: "0 3 * * *"
"""
PATIENCE_S = 30


@dataclass
class Work:
    """Jobs that end when they are told to."""

    began: list[str] = field(default_factory=list)
    ends: dict[str, threading.Event] = field(default_factory=dict)

    def do(self, job: Job) -> None:
        self.began.append(job.name)
        assert self.ends.setdefault(job.name, threading.Event()).wait(PATIENCE_S)

    def end(self, *names: str) -> None:
        for name in names:
            self.ends.setdefault(name, threading.Event()).set()


@pytest.fixture
def work() -> Iterator[Work]:
    found = Work()
    yield found
    found.end("slow", "fast", "third", "table", "other")


def source(name: str) -> Job:
    return Job(Kind.SOURCE, name, "* * * * *")


def test_sources_run_side_by_side_up_to_a_bound_and_hold_up_their_own_tables_only(work: Work) -> None:
    table, other = Job(Kind.REFINED, "table", "* * * * *"), Job(Kind.REFINED, "other", "* * * * *")
    behind = {table.key: frozenset({"source/fast"}), other.key: frozenset({"source/slow"})}
    lanes = JobLanes(work.do, behind, 2)
    due = [source("slow"), source("fast"), source("third"), table, other]
    lanes.begin(due)
    wait_until(lambda: sorted(work.began) == ["fast", "slow"], PATIENCE_S)
    lanes.begin(due)  # nothing begins twice
    work.end("fast")
    wait_until(lambda: "third" in work.began, PATIENCE_S)
    work.end("third")
    lanes.begin([table, other])
    wait_until(lambda: "table" in work.began, PATIENCE_S)
    work.end("table", "slow")

    def has_begun() -> bool:
        lanes.begin([other])
        return "other" in work.began

    wait_until(has_begun, PATIENCE_S)
    work.end("other")
    wait_until(lambda: lanes.is_idle, PATIENCE_S)
    lanes.close()
    assert sorted(work.began) == ["fast", "other", "slow", "table", "third"]


def test_a_source_that_is_always_due_again_does_not_keep_its_table_waiting(work: Work) -> None:
    table = Job(Kind.REFINED, "table", "* * * * *")
    lanes = JobLanes(work.do, {table.key: frozenset({"source/slow", "source/fast"})})
    due = [source("slow"), source("fast"), table]  # reads take longer than their schedule
    lanes.begin(due)
    wait_until(lambda: sorted(work.began) == ["fast", "slow"], PATIENCE_S)
    work.end("fast")
    wait_until(lambda: lanes.under_way == {"source/slow"}, PATIENCE_S)
    for _ in range(100):
        lanes.begin(due)
    assert work.began.count("fast") == 1, "it is due again, and its table waits for it"
    work.end("slow")

    def has_begun() -> bool:
        lanes.begin(due)
        return "table" in work.began

    wait_until(has_begun, PATIENCE_S)
    for _ in range(100):
        lanes.begin(due)
    assert sorted(work.began) == ["fast", "slow", "table"], "nobody reads a source while its table is made"
    work.end("table")

    def is_read_again() -> bool:
        lanes.begin(due)
        return work.began.count("fast") > 1 and work.began.count("slow") > 1

    wait_until(is_read_again, PATIENCE_S)
    lanes.close()


def test_a_source_that_starts_while_the_lane_of_its_table_is_taken_holds_the_table_up(work: Work) -> None:
    other, table = Job(Kind.REFINED, "other", "* * * * *"), Job(Kind.REFINED, "table", "* * * * *")
    lanes = JobLanes(work.do, {table.key: frozenset({"source/slow"})})
    lanes.begin([other, table])
    wait_until(lambda: work.began == ["other"], PATIENCE_S)
    lanes.begin([source("slow"), table])
    wait_until(lambda: work.began == ["other", "slow"], PATIENCE_S)
    work.end("other")
    wait_until(lambda: "refined/other" not in lanes.under_way, PATIENCE_S)
    lanes.begin([table])
    assert lanes.under_way == {"source/slow"}, "half of the source is not enough"
    work.end("slow")

    def has_begun() -> bool:
        lanes.begin([table])
        return "table" in work.began

    wait_until(has_begun, PATIENCE_S)
    work.end("table")
    lanes.close()


def test_a_job_that_ended_after_its_caller_looked_does_not_run_again(work: Work) -> None:
    done: set[str] = set()

    def do(job: Job) -> None:
        work.began.append(job.name)
        done.add(job.key)

    lanes = JobLanes(do, {}, is_due=lambda job: job.key not in done)
    due = [source("fast")]
    lanes.begin(due)
    wait_until(lambda: lanes.is_idle, PATIENCE_S)
    lanes.begin(due)
    lanes.close()
    assert work.began == ["fast"]


def test_a_table_waits_for_all_sources_that_it_is_made_from() -> None:
    pipeline = read_text(FILE)
    found = sources_of_jobs(pipeline, jobs_of(pipeline))
    both = frozenset({"source/orders", "source/shops"})
    assert found == {
        "refined/known": both, "refined/most": both, "refined/others": frozenset(),
        "view batch/counts": frozenset({"source/shops"}),
    }  # fmt: skip
