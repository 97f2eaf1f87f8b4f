"""Counters for the hot path: slotted objects whose attributes are incremented where events happen.

In: one call for each request, or for all requests of a tick; `+=` for bytes and messages. Out: totals, and
histograms of the phases of requests. Most requests are responded to by their handler: their total time is
their local time, and one histogram has both. Phases that a request did not have are not counted; readers add
them as zeros. Does not know: names, labels, readers.
"""

from __future__ import annotations

from barnabas.metrics import Histogram


class ApiMetrics:
    """Requests of one API in one version: how many, how long they took in each phase, their sizes and errors.

    All times are in nanoseconds."""

    __slots__ = (
        "errors",
        "immediate",
        "local",
        "observe",
        "observe_many",
        "queue",
        "remote",
        "request_bytes",
        "response_queue",
        "send",
        "throttle_ms",
        "waited",
    )

    def __init__(self) -> None:
        self.immediate = Histogram()  # total time of requests that waited for nothing
        self.observe = self.immediate.observe
        self.observe_many = self.immediate.observe_many
        # Of requests that waited for others: the total, the work of the handler, the wait.
        self.waited: Histogram | None = None
        self.local: Histogram | None = None
        self.remote: Histogram | None = None
        self.queue: Histogram | None = None  # before the handler, of requests that arrived behind others
        self.response_queue: Histogram | None = None  # a response that waits for earlier ones to leave
        self.send: Histogram | None = None  # sampled
        self.request_bytes: Histogram | None = None  # sampled
        self.throttle_ms: Histogram | None = None
        self.errors: dict[int, int] = {}  # by code, of responses; produce counts its successes by partition

    @property
    def count(self) -> int:
        return self.immediate.count + (self.waited.count if self.waited is not None else 0)

    @property
    def handler_ns(self) -> int:
        """Time in the handler of all requests."""
        return self.immediate.total + (self.local.total if self.local is not None else 0)

    def observe_wait(self, local_ns: int, remote_ns: int, response_queue_ns: int = 0) -> None:
        """Count a request whose response waited for followers, other members, records or threads."""
        self.observe_committed(local_ns + remote_ns + response_queue_ns)
        self.observe_phases(local_ns, remote_ns, response_queue_ns)

    def observe_committed(self, total_ns: int) -> None:
        """Count a request that waited, without its phases."""
        if self.waited is None:
            self.waited = Histogram()
        self.waited.observe(total_ns)

    def observe_phases(self, local_ns: int, remote_ns: int, response_queue_ns: int, times: int = 1) -> None:
        """Count the phases of a request that waited, for as many requests as were not measured."""
        if self.local is None or self.remote is None:
            self.local, self.remote = Histogram(), Histogram()
        self.local.observe_many(local_ns, times)
        self.remote.observe_many(remote_ns, times)
        if response_queue_ns:
            if self.response_queue is None:
                self.response_queue = Histogram()
            self.response_queue.observe_many(response_queue_ns, times)

    def observe_queue(self, queue_ns: int) -> None:
        if self.queue is None:
            self.queue = Histogram()
        self.queue.observe(queue_ns)

    def observe_send(self, send_ns: int) -> None:
        if self.send is None:
            self.send = Histogram()
        self.send.observe(send_ns)

    def observe_bytes(self, size: int) -> None:
        if self.request_bytes is None:
            self.request_bytes = Histogram()
        self.request_bytes.observe(size)

    def observe_throttle(self, throttle_ms: int) -> None:
        if self.throttle_ms is None:
            self.throttle_ms = Histogram()
        self.throttle_ms.observe(throttle_ms)

    def count_error(self, code: int, times: int = 1) -> None:
        self.errors[code] = self.errors.get(code, 0) + times

    def rotate(self) -> None:
        """Let percentiles describe recent requests."""
        for histogram in (
            self.immediate, self.waited, self.local, self.remote, self.queue, self.response_queue, self.send,
            self.request_bytes, self.throttle_ms,
        ):  # fmt: skip
            if histogram is not None:
                histogram.rotate()


class SilentApiMetrics(ApiMetrics):
    """Metrics of a broker that does not measure requests: every value is dropped."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self.observe = self.observe_many = ignore  # type: ignore[assignment]

    def observe_committed(self, total_ns: int) -> None: ...

    def observe_phases(
        self, local_ns: int, remote_ns: int, response_queue_ns: int, times: int = 1
    ) -> None: ...

    def observe_queue(self, queue_ns: int) -> None: ...

    def observe_throttle(self, throttle_ms: int) -> None: ...


def ignore(*values: int) -> None:
    """Drop what would be observed."""


class TopicMetrics:
    """Traffic of one topic on this broker."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "failed_share_acknowledgement_requests",
        "failed_share_fetch_requests",
        "fetch_requests",
        "invalid_crc_records",
        "invalid_magic_records",
        "invalid_sequence_records",
        "messages_in",
        "no_key_records",
        "own_appends",  # of `produce_requests`: those of coordinators; Kafka has no metric of them
        "produce_requests",
        "reassignment_bytes_in",
        "reassignment_bytes_out",
        "refused_produce_requests",  # of `produce_requests`; Kafka has no metric of them
        "replication_bytes_in",
        "replication_bytes_out",
        "share_acknowledgement_requests",
        "share_fetch_requests",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.failed_fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_share_acknowledgement_requests = 0
        self.failed_share_fetch_requests = 0
        self.fetch_requests = 0
        self.invalid_crc_records = 0
        self.invalid_magic_records = 0
        self.invalid_sequence_records = 0
        self.messages_in = 0
        self.no_key_records = 0
        self.own_appends = 0
        self.produce_requests = 0
        self.reassignment_bytes_in = 0
        self.reassignment_bytes_out = 0
        self.refused_produce_requests = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.share_acknowledgement_requests = 0
        self.share_fetch_requests = 0

    def count_produced(self, size: int, records: int) -> None:
        """Count a batch of a producer or of a coordinator."""
        self.bytes_in += size
        self.messages_in += records
        self.produce_requests += 1

    def count_followed(self, size: int, *, is_added: bool) -> None:
        """Count a batch from a leader. `is_added`: a reassignment adds the replica."""
        self.replication_bytes_in += size
        if is_added:
            self.reassignment_bytes_in += size

    def add(self, other: TopicMetrics) -> None:
        for name in TopicMetrics.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
