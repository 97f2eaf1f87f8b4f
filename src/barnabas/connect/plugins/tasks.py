"""The contract of tasks that run in a thread of the worker: a source is polled, a sink is given records.

The runtime calls all methods of one task from one thread, in this order: `start`, then `poll` and `commit` or
`open`, `put`, `flush` and `close` again and again, then `stop`. `stop` is also called when `start` failed.
Does not know: converters, transforms, topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.plugins.contexts import SinkContext, SinkOffsets, SourceContext

if TYPE_CHECKING:
    from barnabas.connect.data import Records

Positions = Sequence[tuple[dict[str, Any], dict[str, Any]]]  # (source partition, source offset)


class SourceTask:
    """Follows something and returns its news as records."""

    context: SourceContext

    def start(self, context: SourceContext) -> None:
        """Open what is read. `context.offsets.read([partition])` says where to go on."""
        self.context = context

    def poll(self) -> Records | None:
        """The next records, or None if none came within about `context.poll_seconds`.

        Wait with `context.stopping.wait(seconds)`, so that a stop is not held up. RetriableError: the worker
        polls again after a pause.
        """
        raise NotImplementedError

    def commit(self, positions: Positions) -> None:
        """Records up to these positions are written and their offsets stored: the source may forget them."""

    def stop(self) -> None:
        """Close what `start` opened."""


class SinkTask:
    """Writes records of topics somewhere."""

    context: SinkContext

    def start(self, context: SinkContext) -> None:
        self.context = context

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        """Records of these partitions will come. A sink with offsets of its own calls `context.seek`."""

    def put(self, records: Records) -> None:
        """Take records. RetriableError: the same records come again after a pause."""
        raise NotImplementedError

    def flush(self, offsets: SinkOffsets) -> SinkOffsets | None:
        """Make everything durable that was put. Out: offsets to commit in place of those given; None: those
        given. A sink that buffers returns lower ones, or leaves a partition out."""
        return None

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions go to another task; what was flushed is committed."""

    def stop(self) -> None:
        """Close what `start` opened."""
