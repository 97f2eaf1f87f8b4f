"""Metrics of the process: processor, memory, descriptors, Python's garbage collector and threads; the
broker's state.

In: the operating system (`/proc` where there is one), Python, the node. Out: sources registered with the
metrics, under the names that Prometheus' client libraries use, and Kafka's.
"""

from __future__ import annotations

import gc
import os
import platform
import resource
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas import __version__
from barnabas.metrics import Kind, metric_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from barnabas.broker.broker import Broker
    from barnabas.metrics import Tags

PROCESS = "", "process"
PYTHON = "", "python"
SERVER = "kafka.server", "KafkaServer"
CONTROLLER_SERVER = "kafka.server", "ControllerServer"
PAGE_BYTES = resource.getpagesize()
DESCRIPTORS_A_STEP = 256


def register(broker: Broker) -> None:
    metrics = broker.metrics
    started_s = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC) + process_start_s()
    metrics.counter(*PROCESS, "cpu-seconds-total", "Processor time used.", cpu_s)
    metrics.gauge(*PROCESS, "resident-memory-bytes", "Resident memory.", lambda: memory_bytes()[1])
    metrics.gauge(*PROCESS, "virtual-memory-bytes", "Virtual memory.", lambda: memory_bytes()[0])
    metrics.walk([(*PROCESS, "open-fds", "Open files and sockets.")], open_descriptors)
    metrics.gauge(
        *PROCESS,
        "max-fds",
        "Files and sockets that may be open.",
        lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )
    metrics.gauge(*PROCESS, "start-time-seconds", "When the process started.", lambda: started_s)
    metrics.counters(
        *PYTHON,
        "gc-collections-total",
        "Runs of the garbage collector.",
        lambda: of_generations("collections"),
    )
    metrics.counters(
        *PYTHON, "gc-objects-collected-total", "Objects that it freed.", lambda: of_generations("collected")
    )
    metrics.gauge(*PYTHON, "threads", "Threads of the process.", threading.active_count)
    metrics.gauges(
        *PYTHON,
        "info",
        "1; the labels say which Python runs.",
        lambda: [
            (
                (
                    ("implementation", platform.python_implementation()),
                    ("version", platform.python_version()),
                ),
                1,
            )
        ],
    )
    state(broker)


def state(broker: Broker) -> None:
    metrics, settings = broker.metrics, broker.settings
    if settings.is_broker:
        metrics.gauge(
            *SERVER,
            "BrokerState",
            "0 not running, 1 starting, 2 recovery, 3 running, 6 controlled shutdown, 7 shutting down.",
            lambda: broker.state,
        )
    for is_here, server in ((settings.is_broker, SERVER), (settings.is_controller, CONTROLLER_SERVER)):
        if not is_here:
            continue
        metrics.text(*server, "ClusterId", "The id of the cluster.", lambda: broker.cluster_id)
        metrics.gauge(
            *server,
            "linux-disk-read-bytes",
            "Bytes that the process read from disks.",
            lambda: disk_bytes("read_bytes"),
        )
        metrics.gauge(
            *server,
            "linux-disk-write-bytes",
            "Bytes that it wrote to disks.",
            lambda: disk_bytes("write_bytes"),
        )
        metrics.gauge(
            *server, "yammer-metrics-count", "Metrics with a name.", lambda: count(broker, with_name=True)
        )
    metrics.gauge(
        "kafka.server", "kafka-metrics-count", "count", "Metrics.", lambda: count(broker, with_name=False)
    )
    started_ms = broker.clock.now_ms()
    for name, value in (("version", __version__), ("commit-id", "unknown")):
        metrics.registry.add(
            metric_of("kafka.server", "app-info", name, Kind.TEXT, "The version of the broker."),
            lambda value=value: [((), value)],  # type: ignore[misc]
        )
    metrics.gauge("kafka.server", "app-info", "start-time-ms", "When it started.", lambda: started_ms)
    id = (("id", str(broker.node_id)),)  # tools from before Kafka 2.8 read these spellings
    for name, value in (("Version", __version__), ("CommitId", "unknown")):
        metrics.registry.add(
            metric_of("kafka.server", "app-info", name, Kind.TEXT, "The version of the broker."),
            lambda value=value: [(id, value)],  # type: ignore[misc]
        )
    metrics.gauges("kafka.server", "app-info", "StartTimeMs", "When it started.", lambda: [(id, started_ms)])


def count(broker: Broker, *, with_name: bool) -> int:
    return sum(bool(metric.name) is with_name for metric in broker.metrics.registry.metrics)


def cpu_s() -> float:
    used = os.times()
    return used.user + used.system


def memory_bytes() -> tuple[int, int]:
    """Virtual and resident."""
    try:
        virtual, resident, *_ = Path("/proc/self/statm").read_bytes().split()
    except OSError:  # no Linux: the largest size is all that is known, in bytes or in kilobytes
        return 0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(virtual) * PAGE_BYTES, int(resident) * PAGE_BYTES


def open_descriptors(folder: str = "/proc/self/fd") -> Generator[None, None, list[int]]:
    """Their number, counted in steps: there may be a hundred thousand."""
    count = 0
    try:
        with os.scandir(folder) as entries:
            for count, _ in enumerate(entries, 1):
                if not count % DESCRIPTORS_A_STEP:
                    yield
    except OSError:
        return [-1]
    return [count]


def process_start_s() -> float:
    """When the process started, in seconds since the boot; now where that cannot be known."""
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.clock_gettime(time.CLOCK_MONOTONIC)


def disk_bytes(name: str) -> int:
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
        return next(int(line.split(":")[1]) for line in lines if line.startswith(f"{name}:"))
    except (OSError, StopIteration):  # it may be forbidden
        return -1


def of_generations(name: str) -> Iterator[tuple[Tags, int]]:
    for generation, stats in enumerate(gc.get_stats()):
        yield (("generation", str(generation)),), stats[name]
