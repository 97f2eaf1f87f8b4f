"""A description of a node's current state for people: event loop, tasks, tick, waiting responses, queues.

In: a node that runs, or is starting. Out: lines of text, bounded in number and length. Objects are described
by their attributes: numbers as they are, containers by their length, so that a new queue shows by itself.
Reads only. Does not know: who requested it, where the lines go.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Sized
from itertools import islice
from typing import TYPE_CHECKING, Any

from barnabas.protocol import ApiKey

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.node import Node
    from barnabas.broker.wire.channel import Channel
    from barnabas.broker.wire.server import Listener
    from barnabas.runtime.loop_watch import LoopWatch

LINES_MAX = 400
LINE_CHARS_MAX = 400
TASK_KINDS_MAX = 60
CHANNELS_MAX = 20  # of each listener: those with the longest queues
AWAITS_MAX = 20
NUMBERS = (bool, int, float)


def lines_of(node: Node, watch: LoopWatch) -> Iterator[str]:
    found = islice(all_lines(node, watch), LINES_MAX)
    return (line if len(line) <= LINE_CHARS_MAX else f"{line[:LINE_CHARS_MAX]}..." for line in found)


def all_lines(node: Node, watch: LoopWatch) -> Iterator[str]:
    yield (
        f"loop: {watch.lag_s * 1000:.1f} ms late now, {watch.lag_max_s * 1000:.0f} ms at most of late, "
        f"held {watch.slow_count} times"
    )
    yield f"threads: {', '.join(sorted(each.name for each in threading.enumerate()))}"
    if node.listeners:
        for name, each in parts_of(node.broker, node.listeners[0]).items():
            yield f"{name}: {summary(each)}"
    for listener in node.listeners:
        yield from of_listener(listener)
    yield from of_tasks()


def parts_of(broker: Broker, listener: Listener) -> dict[str, object]:
    """The objects whose queues show what the node is doing."""
    found: dict[str, object] = {
        "tick": listener.tick,
        "receive memory": listener.tick.arena,
        "purgatory": broker.purgatory,
        "metadata log": broker.quorum.log,
        "quorum": broker.quorum,
        "role in the quorum": broker.quorum.member.role,
        "controller": broker.own_controller,
        "other brokers": broker.others,
        "transaction markers": broker.markers,
        "fetch sessions": broker.fetch_sessions,
        "partitions": broker.partitions,
        "log files": broker.log_dirs.context.files,
        "unforeseen errors": broker.unexpected,
    }
    return {name: part for name, part in found.items() if part is not None}


def summary(thing: Any) -> str:
    """An object's numbers, and the lengths of its containers, without those that are 0."""
    found = []
    for name in sorted(attribute_names(thing)):
        value = getattr(thing, name, None)
        if isinstance(value, NUMBERS):
            if value:
                found.append(f"{name.strip('_')} {value}")
        elif isinstance(value, Sized) and not isinstance(value, str | bytes | memoryview):
            try:
                count = len(value)
            except Exception:  # an attribute without a length must not hide the others
                continue
            if count:
                found.append(f"{name.strip('_')} has {count}")
    return ", ".join(found) or "nothing"


def attribute_names(thing: Any) -> set[str]:
    names = set(getattr(thing, "__dict__", ()))
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names |= {slots} if isinstance(slots, str) else set(slots)
    return {name for name in names if not name.startswith("__")}


def of_listener(listener: Listener) -> Iterator[str]:
    yield (
        f"listener {listener.name}: {len(listener.channels)} connections, "
        f"{sum(each.is_busy for each in listener.channels)} busy, {listener.refused} refused, "
        f"{listener.share.used} of {listener.share.limit} descriptors"
    )
    now = listener.loop.time()
    ranked = sorted(listener.channels, key=queued, reverse=True)
    for channel in ranked[:CHANNELS_MAX]:
        yield f"connection from {channel.host}: {of_channel(channel, now)}"


def queued(channel: Channel) -> tuple[int, int]:
    return len(channel.response_queue) + len(channel.out) + channel.outbox.queued_parts, int(channel.is_busy)


def of_channel(channel: Channel, now: float) -> str:
    last = channel.route.key if channel.route is not None else -1
    return (
        f"last request {api_name(last)}, quiet for {now - channel.last_active:.1f} s, "
        f"{'busy' if channel.is_busy else 'free'}, "
        f"{len(channel.response_queue)} responses wait for followers, "
        f"{channel.outbox.queued_parts} parts wait to be sent, "
        f"{channel.transport.get_write_buffer_size()} bytes in the transport"
    )


def api_name(key: int) -> str:
    return ApiKey(key).name if key in list(ApiKey) else "none"


def of_tasks() -> Iterator[str]:
    """Tasks, grouped by the line where they wait."""
    tasks = asyncio.all_tasks()
    places = Counter(place_of(task) for task in tasks)
    yield f"tasks: {len(tasks)}"
    for place, count in places.most_common(TASK_KINDS_MAX):
        yield f"{count} x {place}"


def place_of(task: asyncio.Task[Any]) -> str:
    """The coroutine of a task, and the line outside of asyncio where it waits."""
    coroutine: Any = task.get_coro()
    name, place = getattr(coroutine, "__qualname__", str(coroutine)), ""
    for _ in range(AWAITS_MAX):
        frame = getattr(coroutine, "cr_frame", None)
        if frame is None:
            break
        module = frame.f_globals.get("__name__", "?")
        if not place or not module.startswith("asyncio."):
            place = f" at {module}:{frame.f_lineno}"
        coroutine = getattr(coroutine, "cr_await", None)
    return f"{name}{place}"
