"""Direct produce: appends the batches of a produce request without decoding it into objects.

In: a frame of any version. Out: its batches are staged, and the response in bytes waits for the tick or for
followers. Nearly all produce requests are handled here. The functions return False if the ordinary path must
handle the request: it is unusual, or a batch is refused. Then nothing has happened, or the batches before the
refused one are appended and `RequestContext.appended` has their offsets. The same code as for all produce
requests checks the batches (`Partition.append`).
Does not know: the layout of requests (`ProduceLayout`), how responses are sent.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from barnabas.broker.produce.pending_responses import respond_to_producer
from barnabas.broker.produce.producing import level_of
from barnabas.broker.produce.purgatory import CommittedResponse
from barnabas.broker.produce.verifying import Producer, verify_at_once
from barnabas.protocol import KafkaError
from barnabas.records.batch import BATCH_OVERHEAD, MAGIC, MAGIC_AT, NO_TIMESTAMP, TRANSACTIONAL_FLAG
from barnabas.records.plain_batch import PlainBatch, plain_batch
from barnabas.records.validation import validate_produce
from barnabas.replication.verification import ONGOING

if TYPE_CHECKING:
    from barnabas.broker.api.routes import Route
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.produce.purgatory import Wait
    from barnabas.broker.produce.tick import Tick
    from barnabas.broker.wire.channel import Channel
    from barnabas.protocol.produce_layout import Batches, Placed
    from barnabas.records.batch import BatchHeader
    from barnabas.replication.verification import Verification

ALL = -1  # acks: wait for every in-sync replica
FLAGS_AT = 22  # in a batch: the lower byte of the attributes
PRODUCER_AT = 43  # in a batch: id, epoch and first sequence number
_producer = struct.Struct(">qhi").unpack_from

Target = tuple["Partition", memoryview]
PreparedBatch = tuple[memoryview, "BatchHeader"]


def produce_directly(
    channel: Channel, route: Route, frame: memoryview, position: int, correlation_id: int
) -> bool:
    """Handle a request whose client id ends at `position`."""
    layout = route.layout
    assert layout is not None
    found = layout.find(frame, position)
    if found is None:
        channel.read_client(frame, position, route)
        batches = layout.read(frame, position)
        if batches is None:
            return False
        layout.remember(frame, batches)
        return produce_several(channel, route, batches, correlation_id)
    front, index, records = found
    if front.count > 1:
        batches = layout.read_behind(front, frame, index)
        return batches is not None and produce_several(channel, route, batches, correlation_id)
    partitions = channel.partitions
    topic = front.topic
    if isinstance(topic, str):
        partition = partitions.by_name.get((topic, index))
    else:
        partition = partitions.by_id.get((topic, index))
    acks = front.acks
    writable = channel.context.writable
    if writable is not None and (
        topic not in writable
        or (front.transactional_id is not None and (front.transactional_id,) not in writable)
    ):
        return False  # the ordinary path asks for the right
    if partition is None or not partition.is_leader or partition.is_internal:
        return False
    now_ms = channel.now_ms()
    append_time_ms = NO_TIMESTAMP
    if front.transactional_id is None and (plain := plain_batch(records, partition.rules, now_ms)):
        base_offset = append_plain(partition, channel.tick, records, plain, acks, now_ms)
    else:
        base_offset = -1
    if base_offset < 0:
        verification = None
        if front.transactional_id is not None:
            broker = channel.context.broker
            verification = verify(front.transactional_id, [(partition, records)], route.version, broker)
            if verification is None:
                return False
        header = None if partition.rules.header_suffices else bytes(records[:BATCH_OVERHEAD])
        try:
            base_offset, append_time_ms = partition.append(records, acks, route.version, now_ms, verification)
        except KafkaError:
            # Restore the batch: the ordinary path finds the same error and makes the response.
            if header is not None:
                records[:BATCH_OVERHEAD] = header
            return False
    if not acks:
        channel.tick.count(route)
        return True
    response = front.pack(
        front.size,
        correlation_id,
        front.start,
        index,
        base_offset,
        append_time_ms,
        partition.log.log_start_offset,
        front.end,
    )
    if acks == ALL and not partition.state.has_no_followers:
        waits = [(partition, base_offset)]
        channel.respond_when_committed(
            CommittedResponse(channel, route, correlation_id, response, waits, front.timeout_ms)
        )
        return True
    produced = channel.produced
    if produced.is_last and produced.route is route:
        produced.responses.append(response)
    else:
        respond_to_producer(channel, route, response)
    return True


def produce_several(channel: Channel, route: Route, batches: Batches, correlation_id: int) -> bool:
    """Handle a request with several batches, or the first one with its layout."""
    layout = route.layout
    assert layout is not None
    transactional_id, acks, timeout_ms, topics = batches
    if not ALL <= acks <= 1:
        return False
    writable = channel.context.writable
    if writable is not None and not (
        all(topic in writable for topic, _ in topics)
        and (transactional_id is None or (transactional_id,) in writable)
    ):
        return False
    partitions, version, tick = channel.partitions, route.version, channel.tick
    now_ms = channel.now_ms()
    targets: list[Target] = []
    plains: list[PlainBatch | None] = []
    are_plain = transactional_id is None
    for topic, of_topic in topics:
        places: Any = partitions.by_id if isinstance(topic, bytes) else partitions.by_name
        for index, records in of_topic:
            found = places.get((topic, index))
            if found is None or not found.is_leader or found.is_internal or not found.rules.header_suffices:
                return False
            plain = plain_batch(records, found.rules, now_ms) if transactional_id is None else None
            if plain is None:
                if records[FLAGS_AT] & TRANSACTIONAL_FLAG and transactional_id is None:
                    return False  # the ordinary path refuses the request as a whole
                are_plain = False
            targets.append((found, records))
            plains.append(plain)
    verification = None
    if transactional_id is not None:
        verification = verify(transactional_id, targets, version, channel.context.broker)
        if verification is None:
            return False
    prepared: list[PreparedBatch | None] = []
    if not are_plain:
        try:
            # As on the ordinary path, all batches are validated before one is appended. Validation may change
            # a batch; a second validation would change it in the same way.
            prepared = [
                None if plain else validate_produce(records, partition.rules, version, now_ms, partition)
                for (partition, records), plain in zip(targets, plains, strict=True)
            ]
        except KafkaError:
            return False
    placed: list[Placed] = []
    waits: list[Wait] = []
    for number, (partition, records) in enumerate(targets):
        plain = plains[number]
        append_time_ms = NO_TIMESTAMP
        base_offset = append_plain(partition, tick, records, plain, acks, now_ms) if plain else -1
        if base_offset < 0:
            batch = prepared[number] if prepared else None
            try:
                base_offset, append_time_ms = partition.append(
                    records, acks, version, now_ms, verification, batch
                )
            except KafkaError:
                channel.context.appended = placed
                return False
        placed.append((base_offset, append_time_ms, partition.log.log_start_offset))
        if acks == ALL and not partition.state.has_no_followers:
            waits.append((partition, base_offset))
    if not acks:
        channel.tick.count(route)
        return True
    response = layout.response(correlation_id, topics, placed)
    if waits:
        channel.respond_when_committed(
            CommittedResponse(channel, route, correlation_id, response, waits, timeout_ms)
        )
    else:
        respond_to_producer(channel, route, response)
    return True


def append_plain(
    partition: Partition, tick: Tick, records: memoryview, plain: PlainBatch, acks: int, now_ms: int
) -> int:
    """Stage a batch as `Partition.append` does. Returns its base offset, or -1 if nothing was done and the
    caller must use `Partition.append`."""
    if acks == ALL:
        in_sync = len(partition.state.isr)
        if in_sync < partition.min_insync_replicas and in_sync < partition.replica_count:
            return -1
    base_offset = partition.log.stage_plain(records, plain, partition.leader_epoch, now_ms)
    if base_offset < 0:
        return -1
    if not partition.is_dirty:
        partition.is_dirty = True
        tick.staged(partition)
    metrics = partition.metrics
    metrics.bytes_in += plain[0]
    metrics.messages_in += plain[3]
    metrics.produce_requests += 1
    return base_offset


def verify(transactional_id: str, targets: list[Target], version: int, broker: Broker) -> Verification | None:
    """Verify the batches of a transaction. Returns None if the ordinary path must ask the coordinator."""
    first = None
    for partition, records in targets:
        if not records[FLAGS_AT] & TRANSACTIONAL_FLAG or records[MAGIC_AT] != MAGIC:
            return None
        producer_id, epoch, sequence = _producer(records, PRODUCER_AT)
        if producer_id < 0:
            return None
        if first is None:
            first = producer_id, epoch
        elif first != (producer_id, epoch):
            return None
        known = partition.log.producers.get(producer_id)
        if known is None or known.txn_first_offset < 0 or known.producer_epoch != epoch:
            if len(targets) > 1:
                return None
            producer = Producer(transactional_id, producer_id, epoch)
            return verify_at_once(broker, producer, partition, sequence, level_of(version))
    return ONGOING
