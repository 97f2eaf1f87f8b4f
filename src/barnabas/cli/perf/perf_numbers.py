"""The numbers of a performance test: windows, totals and percentiles, in Kafka's lines.

In: latency, size and time of each record. Out: lines. Does not know: the client.
"""

from collections.abc import Callable, Sequence

SAMPLES_MAX = 500_000
MEGABYTE = 1024.0 * 1024.0

Line = Callable[[str], None]


class ProducerStats:
    """Counts of sent records: in total, and since the last line."""

    def __init__(self, records: int, interval_ms: int, now_ms: float, line: Line, kind: str = "") -> None:
        self._line = line
        self._kind = kind
        self._interval_ms = interval_ms
        self._start_ms = self._window_start_ms = now_ms
        self._sampling = max(1, records // min(records, SAMPLES_MAX))
        self._latencies: list[int] = []
        self.count = 0
        self._bytes = self._total_ms = self._max_ms = 0
        self._window_count = self._window_bytes = self._window_total_ms = self._window_max_ms = 0

    def record(self, latency_ms: int, size_bytes: int, now_ms: float) -> None:
        if self.count % self._sampling == 0:
            self._latencies.append(latency_ms)
        self.count += 1
        self._bytes += size_bytes
        self._total_ms += latency_ms
        self._window_count += 1
        self._window_bytes += size_bytes
        self._window_total_ms += latency_ms
        if latency_ms > self._window_max_ms:
            self._window_max_ms = latency_ms
            self._max_ms = max(self._max_ms, latency_ms)
        if now_ms - self._window_start_ms >= self._interval_ms:
            self._print_window(now_ms)

    def _print_window(self, now_ms: float) -> None:
        seconds = (now_ms - self._window_start_ms) / 1000
        self._line(
            f"{self._window_count} records sent, {self._window_count / seconds:.1f} records/sec "
            f"({self._window_bytes / seconds / MEGABYTE:.2f} MB/sec), "
            f"{self._window_total_ms / self._window_count:.1f} ms avg latency, "
            f"{float(self._window_max_ms):.1f} ms max latency."
        )
        self._window_start_ms = now_ms
        self._window_count = self._window_bytes = self._window_total_ms = self._window_max_ms = 0

    def print_total(self, now_ms: float) -> None:
        seconds = max(now_ms - self._start_ms, 1) / 1000
        p50, p95, p99, p999 = percentiles(self._latencies, (0.5, 0.95, 0.99, 0.999))
        self._line(
            f"{self.count}{self._kind} records sent, {self.count / seconds:f} records/sec "
            f"({self._bytes / seconds / MEGABYTE:.2f} MB/sec), "
            f"{self._total_ms / max(self.count, 1):.2f} ms avg latency, "
            f"{float(self._max_ms):.2f} ms max latency, "
            f"{p50} ms 50th, {p95} ms 95th, {p99} ms 99th, {p999} ms 99.9th."
        )


def percentiles(latencies: Sequence[int], wanted: Sequence[float]) -> list[int]:
    ordered = sorted(latencies)
    return [ordered[min(int(each * len(ordered)), len(ordered) - 1)] if ordered else 0 for each in wanted]


class Throttle:
    """Computes the wait before the next record that keeps a rate; a negative rate means no limit."""

    def __init__(self, records_per_second: float, now_s: float) -> None:
        self._rate = records_per_second
        self._start_s = now_s

    def wait_s(self, sent: int, now_s: float) -> float:
        if self._rate <= 0:
            return 0.0
        return max(0.0, self._start_s + sent / self._rate - now_s)
