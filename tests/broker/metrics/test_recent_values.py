"""Means and maxima under Kafka's names are of recent values: those of Kafka are of the last 30 to 60 s."""

import pytest

from barnabas.broker.metrics import Metrics
from barnabas.broker.metrics.metrics import ROTATE_AFTER_S
from barnabas.broker.metrics.parts.totals import average_and_max
from barnabas.broker.quotas.client_quotas import Share
from barnabas.quotas import QuotaRate
from barnabas.quotas.recent_mean import SAMPLE_MS, RecentMean

from .test_metrics import scrape, value

NS_A_MS = 1_000_000
KIND = "kafka.server", "raft-metrics"


def test_a_latency_is_the_mean_of_recent_values_and_not_of_the_whole_life() -> None:
    now_s = [0.0]
    metrics = Metrics(lambda: now_s[0])
    commits = metrics.histogram("barnabas", "Test", "Commits", "Commits.")
    average_and_max(metrics, *KIND, "commit-latency", "Time to commit a record.", lambda: commits)
    commits.observe_many(2 * NS_A_MS, 1_000)
    for _ in range(3):
        now_s[0] += ROTATE_AFTER_S
        metrics.forget_old_values()
    commits.observe_many(100 * NS_A_MS, 4)
    commits.observe_many(200 * NS_A_MS, 4)
    samples = scrape(metrics)
    name = "kafka_server_raft_metrics_commit_latency"
    assert value(samples, f"{name}_avg") == pytest.approx(150, rel=1 / 32)
    assert value(samples, f"{name}_max") == pytest.approx(200, rel=1 / 32)


def test_a_latency_without_recent_values_is_zero() -> None:
    now_s = [0.0]
    metrics = Metrics(lambda: now_s[0])
    elections = metrics.histogram("barnabas", "Test", "Elections", "Elections.")
    average_and_max(metrics, *KIND, "election-latency", "Time to elect a leader.", lambda: elections)
    elections.observe(5_000 * NS_A_MS)
    assert value(scrape(metrics), "kafka_server_raft_metrics_election_latency_max") > 4_000
    for _ in range(3):
        now_s[0] += ROTATE_AFTER_S
        samples = scrape(metrics)
    for name in ("avg", "max"):
        assert value(samples, f"kafka_server_raft_metrics_election_latency_{name}") == 0


def test_a_mean_forgets_whole_samples() -> None:
    mean = RecentMean()
    assert mean.mean(0) == 0
    mean.record(100, 0)
    mean.record(300, SAMPLE_MS - 1)
    assert mean.mean(SAMPLE_MS - 1) == 200
    mean.record(500, SAMPLE_MS)
    assert mean.mean(SAMPLE_MS) == 300
    assert mean.mean(2 * SAMPLE_MS) == 500
    assert mean.mean(3 * SAMPLE_MS) == 0
    mean.record(50, 10 * SAMPLE_MS)
    assert mean.mean(10 * SAMPLE_MS) == 50


def test_the_throttle_time_of_a_client_is_that_of_its_recent_waits() -> None:
    share = Share(QuotaRate(11, 1_000), 100.0)
    for second in range(100):
        share.throttled(10, second * 1_000.0)
    assert share.throttles.mean(99_000) == 10
    assert share.throttled(0, 200_000.0) == 0  # a request that does not wait counts for nothing
    assert share.throttles.mean(200_000) == 0
    assert share.throttled(900, 200_000.0) == 900
    assert share.throttles.mean(200_000) == 900
