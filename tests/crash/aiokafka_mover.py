"""The same as `mover`, with aiokafka: moves records from one topic to another, exactly once, until killed.

Arguments: address, source, target, transactional id. Prints a line for every transaction it commits.
"""

from __future__ import annotations

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
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
            await asyncio.sleep(PAUSE_S)


async def work(bootstrap: str, source: str, target: str, name: str) -> None:
    """As a program does it that starts anew after every error it cannot handle."""
    consumer = AIOKafkaConsumer(
        source,
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
        await consumer.start()
        while True:
            found = await consumer.getmany(timeout_ms=PATIENCE_MS, max_records=BATCH)
            if not found:
                continue
            async with producer.transaction():
                for place, messages in found.items():
                    for message in messages:
                        await producer.send(target, message.value, partition=place.partition)
                offsets = {place: messages[-1].offset + 1 for place, messages in found.items()}
                await producer.send_offsets_to_transaction(offsets, name)
            print(sum(map(len, found.values())), flush=True)
    finally:
        await consumer.stop()
        await producer.stop()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
