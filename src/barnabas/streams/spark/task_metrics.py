"""Metrics of a query and its tasks under Kafka Streams' names.

In: results of batches, ends and positions of partitions. Out: values by metric and part, as the catalogue
takes them. A part is a task (`0_1`), one of its nodes or stores (`0_1 counts`), or empty for the query
itself, which stands for a thread. Names are those that Kafka Streams' beans have in Prometheus' exporter
(`kafka_streams_stream_task_metrics_process_total`), units are Kafka's: milliseconds of threads and ages,
nanoseconds of tasks and stores. Does not know: the catalogue.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping

from barnabas.client.core.topology import TopicPartition
from barnabas.metrics.growth import Growth
from barnabas.metrics.recent import Recent, Values
from barnabas.streams.spark.batch_measures import Ages, BatchMeasures
from barnabas.streams.spark.task_port import TaskResult

THREAD = "kafka_streams_stream_thread_metrics_"
TASK = "kafka_streams_stream_task_metrics_"
NODE = "kafka_streams_stream_processor_node_metrics_"
STATE = "kafka_streams_stream_state_metrics_"
CACHE = "kafka_streams_stream_record_cache_metrics_"
PROCESSED, COMMITTED, DROPPED = f"{TASK}process_total", f"{TASK}commit_total", f"{TASK}dropped_records_total"
RESTORED = f"{TASK}restore_total"
# Of nodes where they are counted, else of tasks.
NODE_PROCESSED, NODE_RATE = f"{NODE}process_total", f"{NODE}process_rate"
LATENCY = f"{TASK}process_latency"
POLLED, PASSED, COMMITS = f"{THREAD}poll_total", f"{THREAD}process_total", f"{THREAD}commit_total"
CREATED, CLOSED = f"{THREAD}task_created_total", f"{THREAD}task_closed_total"
# The exporter drops `_total` from gauges since its version 1.0, and dashboards ask for what is left.
ALSO = {
    DROPPED: f"{TASK}dropped_records",
    CLOSED: f"{THREAD}task_closed",
}
RATES = {
    f"{TASK}dropped_records_rate": DROPPED,
    f"{TASK}process_rate": PROCESSED,
    f"{TASK}commit_rate": COMMITTED,
    f"{TASK}restore_rate": RESTORED,
    NODE_RATE: NODE_PROCESSED,
    f"{THREAD}poll_rate": POLLED,
    f"{THREAD}process_rate": PASSED,
    f"{THREAD}commit_rate": COMMITS,
    f"{THREAD}task_created_rate": CREATED,
    f"{THREAD}task_closed_rate": CLOSED,
}
ACCESSES_RATES = {kind: f"{STATE}{kind}" for kind in ("get", "put", "delete", "range")}
LAG = "kafka_consumer_consumer_fetch_manager_metrics_records_lag"
PROBLEMS, WRITTEN = "barnabas_streams_task_problems_total", "barnabas_streams_task_records_sent_total"
QUERY = ""  # the part of what is measured of the query as a whole
PHASES = {"poll": "poll", "process": "process", "commit": "commit"}
READ, DONE = "source", "terminal"  # ages of records when they are read, and when their results are committed
NS_A_SECOND, MS_A_SECOND = 1e9, 1e3


class TaskMetrics:
    """`values`: by metric, then by part."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._growth = {name: Growth({}, now_s()) for name in RATES}
        self._busy = Growth({}, now_s())
        self._busy_s: dict[str, float] = defaultdict(float)  # of phases, and of tasks
        self._recent: dict[tuple[str, str], Recent] = defaultdict(Recent)  # by name without ending, and part
        self._accesses: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._access_growth = {name: Growth({}, now_s()) for name in ACCESSES_RATES}
        self.values: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._made: set[str] = set()  # tasks whose last batch did not fail
        self.lag = 0
        self.dropped: dict[str, int] = {}

    def add(self, result: TaskResult) -> None:
        task = str(result.task)
        if result.error is not None:
            self.values[CLOSED][QUERY] += 1
            self._made.discard(task)
            return
        self.values[CREATED][QUERY] += task not in self._made
        self._made.add(task)
        self.values[CLOSED][QUERY] += 0
        self.values[PROCESSED][task] += result.records
        self.values[WRITTEN][task] += result.outputs
        self.values[COMMITTED][task] += 1
        self.values[RESTORED][task] += result.measures.restored
        self.values[DROPPED][task] += sum(result.counts.dropped.values())
        self.values[PROBLEMS][task] += result.counts.problems
        for reason, count in result.counts.dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + count
        self.values[POLLED][QUERY] += 1
        self.values[PASSED][QUERY] += result.records
        self.values[COMMITS][QUERY] += 1
        self._measure(task, result)

    def _measure(self, task: str, result: TaskResult) -> None:
        now_s, measures = self._now_s(), result.measures
        self._busy_s[task] += result.seconds
        if result.records:
            ns = NS_A_SECOND * result.seconds
            mean = ns / result.records
            self._recent[LATENCY, task].add(Values(ns, result.records, mean, mean), now_s)
        for phase, name in PHASES.items():
            if phase in measures.phases:
                seconds = measures.phases[phase]
                self._busy_s[phase] += seconds
                self._recent[f"{THREAD}{name}_latency", QUERY].observe(MS_A_SECOND * seconds, now_s)
        if measures.phases:
            for name in ("poll", "process"):
                self._recent[f"{THREAD}{name}_records", QUERY].observe(result.records, now_s)
            flush_ns = NS_A_SECOND * measures.phases.get("flush", 0.0)
            self._recent[f"{STATE}flush_latency", task].observe(flush_ns, now_s)
        if measures.restored:
            restore_ns = NS_A_SECOND * measures.phases.get("restore", 0.0)
            self._recent[f"{STATE}restore_latency", task].observe(restore_ns, now_s)
        if measures.ages is not None:
            committed = measures.ages.after(result.seconds)
            for word, ages in ((READ, measures.ages), (DONE, committed)):
                self._recent[f"{NODE}record_e2e_latency", f"{task} {word}"].add(values_of(ages), now_s)
        self._measure_details(task, measures, now_s)

    def _measure_details(self, task: str, measures: BatchMeasures, now_s: float) -> None:
        """Nodes and stores, which are measured on request."""
        for node, count in measures.nodes.items():
            self.values[NODE_PROCESSED][f"{task} {node}"] += count
        for store, found in measures.stores.items():
            part = f"{task} {store}"
            for kind, each in found.accesses.items():
                self._accesses[kind][part] += each.pages
                spent = Values(each.total_ns, each.pages, each.total_ns / each.pages, each.largest_ns)
                self._recent[f"{STATE}{kind}_latency", part].add(spent, now_s)
            if "get" in found.accesses:
                ratio = found.hits / found.accesses["get"].pages
                self._recent[f"{CACHE}hit_ratio", part].observe(ratio, now_s)

    def measure_lag(
        self, ends: Mapping[TopicPartition, int], positions: Mapping[TopicPartition, int]
    ) -> None:
        lags = {place: max(ends.get(place, at) - at, 0) for place, at in positions.items()}
        self.lag = sum(lags.values())
        self.values[LAG] = {str(place): float(lag) for place, lag in lags.items()}

    def snapshot(self) -> dict[str, dict[str, float]]:
        now_s = self._now_s()
        found = {name: dict(each) for name, each in list(self.values.items())}
        by_node = found.get(NODE_PROCESSED) or found.get(PROCESSED, {})
        found[f"{NODE}process"] = by_node
        for name, other in ALSO.items():
            found[other] = found.get(name, {})
        for rate, name in RATES.items():
            counts = by_node if rate == NODE_RATE else found.get(name, {})
            found[rate] = self._growth[rate].rates(counts, now_s)
        for kind, stem in ACCESSES_RATES.items():
            counts = dict(self._accesses.get(kind, {}))
            found[f"{stem}_rate"] = self._access_growth[kind].rates(counts, now_s)
        found |= self._ratios(now_s)
        for (stem, part), recent in list(self._recent.items()):
            for ending, value in (("avg", recent.mean(now_s)), ("max", recent.largest(now_s))):
                found.setdefault(f"{stem}_{ending}", {})[part] = value or 0.0
            if stem.startswith((NODE, CACHE)):
                found.setdefault(f"{stem}_min", {})[part] = recent.smallest(now_s) or 0.0
        return {name: values for name, values in found.items() if values}

    def _ratios(self, now_s: float) -> dict[str, dict[str, float]]:
        """Shares of the time that batches took in the last half minute: of phases, and of tasks."""
        rates = self._busy.rates(dict(self._busy_s), now_s)
        tasks = {name: rate for name, rate in rates.items() if name not in PHASES}
        total = sum(tasks.values())
        ratios = {
            f"{THREAD}{name}_ratio": {QUERY: rates[phase] / total if total else 0.0}
            for phase, name in PHASES.items()
            if phase in rates
        }
        active = {task: rate / total if total else 0.0 for task, rate in tasks.items()}
        return {**ratios, f"{TASK}active_process_ratio": active}


def values_of(ages: Ages) -> Values:
    return Values(ages.total, ages.records, ages.smallest, ages.largest)
