"""A program that keeps what it read, and how far it read, in a database of its own, until it is killed.

Arguments: address, source, number of partitions, file. Both go into one commit of the database, so that each
record is there once, without transactions of Kafka's. Prints a line for every commit.
"""

from __future__ import annotations

import sqlite3
import sys

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

BATCH = 7


def main(bootstrap: str, source: str, partitions: str, path: str) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE IF NOT EXISTS results (value TEXT)")
    database.execute("CREATE TABLE IF NOT EXISTS offsets (partition INTEGER PRIMARY KEY, next INTEGER)")
    known = dict(database.execute("SELECT partition, next FROM offsets"))
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "keeper", "enable.auto.commit": False})
    consumer.assign([TopicPartition(source, index, known.get(index, 0)) for index in range(int(partitions))])
    while True:
        try:
            found = consumer.consume(BATCH, 0.2)
        except KafkaException:
            continue
        keep(database, [message for message in found if message.error() is None])


def keep(database: sqlite3.Connection, messages: list[Message]) -> None:
    if not messages:
        return
    for message in messages:
        value, offset = message.value(), message.offset()
        assert value is not None and offset is not None
        database.execute("INSERT INTO results VALUES (?)", (value.decode(),))
        database.execute("INSERT OR REPLACE INTO offsets VALUES (?, ?)", (message.partition(), offset + 1))
    database.commit()
    print(len(messages), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
