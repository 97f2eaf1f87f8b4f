"""Finds the unreadable batches at which a member of a group is stuck.

librdkafka reports no error for a batch whose records cannot be decoded: it fetches the batch again and again.
This module reads at the positions of the member with our own client, which names the batch.
In: librdkafka's consumer. Out: the unreadable batches. Does not know: options, printing.
"""

import asyncio
from typing import Any

from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer, ConsumerSettings
from barnabas.client.core.errors import Unreachable
from barnabas.client.core.fetching import DamagedBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError

SILENCE_S = 2.0  # time without a record before the tool looks for unreadable batches
LOOK_MS = 500
ASK_S = 5.0


async def unreadable_batches(member: Any, cluster: Cluster) -> list[DamagedBatch]:
    """The unreadable batches at the positions of the member."""
    found = []
    for where, offset in (await asyncio.to_thread(_positions, member)).items():
        reader = Consumer(cluster, ConsumerSettings(fetch_wait_ms_max=LOOK_MS))
        reader.assign({where: offset})
        try:
            await reader.poll(LOOK_MS)
        except DamagedBatch as error:
            found.append(error)
        except (KafkaError, Unreachable):
            continue  # librdkafka reports this error itself
        finally:
            await reader.close()
    return found


async def skip(member: Any, damaged: DamagedBatch) -> None:
    """Move the position of the member behind the batch."""
    from confluent_kafka import TopicPartition as Place

    await asyncio.to_thread(member.seek, Place(*damaged.where, damaged.next_offset))


def _positions(member: Any) -> dict[TopicPartition, int]:
    """The member's positions in the partitions that have more records."""
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
        return {}  # the group rebalances, or a broker is unreachable
    return found
