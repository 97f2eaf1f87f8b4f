"""A member of a group that gets nothing: is there a batch that cannot be read?

librdkafka says nothing of a batch whose records are none: it asks for the batch again and again. This looks
at the places where a member stands with our own client, which names the batch.
In: librdkafka's consumer. Out: the batches that cannot be read. Does not know: options, printing.
"""

import asyncio
from typing import Any

from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer, ConsumerSettings
from barnabas.client.core.errors import Unreachable
from barnabas.client.core.fetching import DamagedBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError

SILENCE_S = 2.0  # without a record, before somebody looks
LOOK_MS = 500
ASK_S = 5.0


async def unreadable_batches(member: Any, cluster: Cluster) -> list[DamagedBatch]:
    """Those that the member's partitions stand at."""
    found = []
    for where, offset in (await asyncio.to_thread(_positions, member)).items():
        reader = Consumer(cluster, ConsumerSettings(fetch_wait_ms_max=LOOK_MS))
        reader.assign({where: offset})
        try:
            await reader.poll(LOOK_MS)
        except DamagedBatch as error:
            found.append(error)
        except (KafkaError, Unreachable):
            continue  # the member hears of that itself
        finally:
            await reader.close()
    return found


async def skip(member: Any, damaged: DamagedBatch) -> None:
    """Go on behind the batch."""
    from confluent_kafka import TopicPartition as Place

    await asyncio.to_thread(member.seek, Place(*damaged.where, damaged.next_offset))


def _positions(member: Any) -> dict[TopicPartition, int]:
    """Where the member reads next, of the partitions that have more for it."""
    from confluent_kafka import KafkaException

    found = {}
    try:
        assigned = member.assignment()
        places = member.position(assigned)
        for place in places:
            low, high = member.get_watermark_offsets(place, ASK_S, cached=False)
            offset = place.offset
            if offset < 0:
                offset = member.committed([place], ASK_S)[0].offset
            if offset < 0:
                offset = low
            if offset < high:
                found[TopicPartition(place.topic, place.partition)] = offset
    except KafkaException:
        return {}  # the group is being rebalanced, or a broker is away
    return found
