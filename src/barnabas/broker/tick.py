"""The tick: what one turn of the loop appended, written with one `writev` a partition, then
acknowledged.

In: partitions that staged batches, answers that must wait for them. Out: bytes in files first, high
watermarks second, answers third, in request order on every connection. The receive memory that staged
batches refer to is released after. Does not know: what a produce request is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.broker.shortcut import Shortcut
from barnabas.connection.arena import Arena
from barnabas.protocol import KafkaError, Message

if TYPE_CHECKING:
    from barnabas.broker.channel import Channel
    from barnabas.broker.partition import Partition
    from barnabas.broker.routes import Route

Schedule = Callable[[Callable[[], None]], object]
Refuse = Callable[[Message, "Partition", KafkaError], None]


Answer = tuple["Channel", "Route | Shortcut", int, Any, Any]


class Tick:
    __slots__ = ("_answers", "_dirty", "_schedule", "arena", "is_open")

    def __init__(self, arena: Arena, schedule: Schedule) -> None:
        self.arena = arena
        self.is_open = False  # something is staged: received bytes are referenced, answers must wait
        self._schedule = schedule
        self._dirty: list[Partition] = []
        self._answers: list[Answer] = []

    def staged(self, partition: Partition) -> None:
        """The partition has staged its first batch of this tick."""
        self._dirty.append(partition)
        if not self.is_open:
            self.is_open = True
            self._schedule(self.close)

    def answer(
        self,
        channel: Channel,
        route: Route,
        correlation_id: int,
        response: Message,
        refuse: Refuse | None = None,
    ) -> None:
        """Send `response` when the tick is written. `refuse` puts the error into it for a partition that
        was not.
        """
        channel.answers_waiting += 1
        self._answers.append((channel, route, correlation_id, response, refuse))

    def answer_again(
        self, channel: Channel, shortcut: Shortcut, correlation_id: int, base_offset: int, append_time_ms: int
    ) -> None:
        """The same for a request that took the shortcut: the answer is made when the tick is written."""
        channel.answers_waiting += 1
        self._answers.append((channel, shortcut, correlation_id, base_offset, append_time_ms))

    def close(self) -> None:
        """End the tick: write, advance, answer. Also called early when the receive memory is used up."""
        if not self.is_open:
            return
        dirty, self._dirty = self._dirty, []
        answers, self._answers = self._answers, []
        failed: list[tuple[Partition, KafkaError]] = []
        for partition in dirty:
            try:
                partition.write_staged()
            except KafkaError as error:
                failed.append((partition, error))
        self.is_open = False
        self.arena.release()
        channels: list[Channel] = []
        for channel, how, correlation_id, what, more in answers:
            channel.answers_waiting -= 1
            if not channel.out:
                channels.append(channel)
            if isinstance(how, Shortcut):
                why = dict(failed).get(how.partition) if failed else None
                if why is not None:
                    channel.encode(how.route, correlation_id, how.refusal(why))
                else:
                    channel.out.append(how.answer(correlation_id, what, more))
            else:
                if failed and more is not None:
                    for unwritten, why in failed:
                        more(what, unwritten, why)
                channel.encode(how, correlation_id, what)
        for channel in channels:
            channel.send()
        for partition in dirty:
            partition.advance()
