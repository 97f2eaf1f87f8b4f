"""What real clients do while `record_golden` listens: a bit of everything, with one topic each."""

from __future__ import annotations

import time
from collections.abc import Callable

import confluent_kafka
import kafka
from confluent_kafka import admin as confluent_admin
from kafka.admin import KafkaAdminClient, NewPartitions, NewTopic

PATIENCE_S = 30


def confluent(bootstrap: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "client.id": "librdkafka"}
    admin = confluent_admin.AdminClient(settings)
    results = admin.create_topics([confluent_admin.NewTopic("rd", 2, 1, config={"retention.ms": "-1"})])
    results["rd"].result(PATIENCE_S)
    producer = confluent_kafka.Producer({**settings, "transactional.id": "rd-tx"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for number in range(5):
        producer.produce("rd", key=b"key", value=b"value %d" % number, partition=number % 2)
    producer.commit_transaction(PATIENCE_S)
    for protocol in ("classic", "consumer"):
        group = {"group.id": f"rd-{protocol}", "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**settings, **group})
        consumer.subscribe(["rd"])
        read = 0
        deadline = time.monotonic() + PATIENCE_S
        while read < 5 and time.monotonic() < deadline:
            message = consumer.poll(1)
            read += message is not None and message.error() is None
        consumer.commit(asynchronous=False)
        consumer.committed([confluent_kafka.TopicPartition("rd", 0)], PATIENCE_S)
        consumer.get_watermark_offsets(confluent_kafka.TopicPartition("rd", 0), PATIENCE_S)
        consumer.close()
    admin.list_topics(timeout=PATIENCE_S)
    admin.describe_cluster().result(PATIENCE_S)
    admin.list_consumer_groups().result(PATIENCE_S)
    admin.describe_consumer_groups(["rd-classic"])["rd-classic"].result(PATIENCE_S)
    topic = confluent_admin.ConfigResource(confluent_admin.ConfigResource.Type.TOPIC, "rd")
    admin.describe_configs([topic])[topic].result(PATIENCE_S)
    entry = confluent_admin.ConfigEntry(
        "retention.ms", "1000", incremental_operation=confluent_admin.AlterConfigOpType.SET
    )
    change = confluent_admin.ConfigResource(
        confluent_admin.ConfigResource.Type.TOPIC, "rd", incremental_configs=[entry]
    )
    admin.incremental_alter_configs([change])[change].result(PATIENCE_S)
    admin.create_partitions([confluent_admin.NewPartitions("rd", 3)])["rd"].result(PATIENCE_S)
    partition = confluent_kafka.TopicPartition("rd", 0, 1)
    admin.delete_records([partition])[partition].result(PATIENCE_S)
    admin.delete_consumer_groups(["rd-classic"])["rd-classic"].result(PATIENCE_S)
    admin.delete_topics(["rd"])["rd"].result(PATIENCE_S)


def kafka_python(bootstrap: str) -> None:
    settings = {"bootstrap_servers": bootstrap, "client_id": "kafka-python"}
    admin = KafkaAdminClient(**settings)
    admin.create_topics([NewTopic("py", 1, 1)])
    producer = kafka.KafkaProducer(**settings, enable_idempotence=False)
    producer.send("py", key=b"key", value=b"value").get(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        "py",
        **settings,
        group_id="py-group",
        auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE_S * 1000,
    )
    next(consumer)
    consumer.commit()
    consumer.close()
    admin.list_groups()
    admin.describe_cluster()
    admin.create_partitions({"py": NewPartitions(2)})
    admin.delete_topics(["py"])
    admin.close()


CONVERSATIONS: dict[str, Callable[[str], None]] = {"confluent-kafka": confluent, "kafka-python": kafka_python}
