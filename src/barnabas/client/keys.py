"""Whether a topic holds records with keys: a look at the newest batch of each of its partitions.

In: a Cluster and a topic. Out: yes or no. A look, not a proof: it reads little and gives up soon.
"""

from barnabas.client.admin.offsets import FoundOffset, OffsetAdmin, OffsetSpec
from barnabas.client.consumer import Consumer, ConsumerSettings
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError

PARTITIONS_MAX = 100
RECORDS_BACK = 20
LOOK_MS = 2_000


async def has_keys(cluster: ClusterCore, topic: str, partitions: int) -> bool:
    wanted = [TopicPartition(topic, index) for index in range(min(partitions, PARTITIONS_MAX))]
    consumer = Consumer(cluster, ConsumerSettings(fetch_wait_ms_max=100, partition_fetch_bytes_max=65_536))
    try:
        admin = OffsetAdmin(cluster)
        first = await admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.EARLIEST), timeout_ms=LOOK_MS)
        last = await admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.LATEST), timeout_ms=LOOK_MS)
        positions = {}
        for topic_partition in wanted:
            start, end = first[topic_partition], last[topic_partition]
            if isinstance(start, FoundOffset) and isinstance(end, FoundOffset) and start.offset < end.offset:
                positions[topic_partition] = max(start.offset, end.offset - RECORDS_BACK)
        unread = set(positions)
        consumer.assign(positions)
        while unread:
            records = await consumer.poll(LOOK_MS)
            if any(record.key is not None for record in records):
                return True
            if not records:
                return False
            unread -= {TopicPartition(record.topic, record.partition) for record in records}
        return False
    except (KafkaError, ClientError):
        return False
    finally:
        await consumer.close()
