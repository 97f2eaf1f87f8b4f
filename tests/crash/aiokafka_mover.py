"""The same as `mover`, with aiokafka: moves records from one topic to another, exactly once, until killed.

Arguments: address, source, target, transactional id. Prints a line for every transaction it commits.
"""

from __future__ import annotations

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka.errors import KafkaError

BATCH = 7
PATIENCE_MS = 200
PAUSE_S = 0.1


async def main(bootstrap: str, source: str, target: str, name: str) -> None:
    while True:
        try:
            await work(bootstrap, source, target, name)
        except (KafkaError, OSError) as error:
            print(f"again after {error!r}", file=sys.stderr, flush=True)
            # A program's back-off: nothing it could wait for, and who ends it kills it.
            await asyncio.sleep(PAUSE_S)


class Rebalances(ConsumerRebalanceListener):
    """While partitions change hands no transaction is open: what is read again was not committed."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self._is_held = False

    async def on_partitions_revoked(self, revoked: object) -> None:
        if not self._is_held:
            await self.lock.acquire()
            self._is_held = True

    async def on_partitions_assigned(self, assigned: object) -> None:
        if self._is_held:
            self._is_held = False
            self.lock.release()


async def work(bootstrap: str, source: str, target: str, name: str) -> None:
    """As a program does it that starts anew after every error it cannot handle."""
    rebalances = Rebalances()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        session_timeout_ms=1500,
        heartbeat_interval_ms=200,
    )
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    try:
        await producer.start()
        consumer.subscribe([source], listener=rebalances)
        await consumer.start()
        while True:
            async with rebalances.lock:
                await move(consumer, producer, target, name)
    finally:
        await consumer.stop()
        await producer.stop()


async def move(consumer: AIOKafkaConsumer, producer: AIOKafkaProducer, target: str, name: str) -> None:
    found = await consumer.getmany(timeout_ms=PATIENCE_MS, max_records=BATCH)
    if not found:
        return
    async with producer.transaction():
        for place, messages in found.items():
            for message in messages:
                await producer.send(target, message.value, partition=place.partition)
        offsets = {place: messages[-1].offset + 1 for place, messages in found.items()}
        await producer.send_offsets_to_transaction(offsets, name)
    print(sum(map(len, found.values())), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
