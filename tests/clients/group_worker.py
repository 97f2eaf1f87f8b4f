"""A member of a group as a process of its own, which can be paused and killed.

In: address, group, topic, way (see `groups.protocol`), file to write to. Out: a line a record processed,
before it is committed: partition, offset. Ends on SIGTERM.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from confluent_kafka import Consumer, KafkaException

PROTOCOLS = {
    "consumer": {"group.protocol": "consumer"},
    **{
        way: {
            "partition.assignment.strategy": way,
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 200,
        }
        for way in ("range", "roundrobin", "cooperative-sticky")
    },
}
BATCH = 20


def main(bootstrap: str, group: str, topic: str, way: str, output: str) -> None:
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 100,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
            **PROTOCOLS[way],
        }
    )
    consumer.subscribe([topic])
    with Path(output).open("a") as lines:
        lines.write("started\n")
        lines.flush()
        while not stopping:
            try:
                messages = [each for each in consumer.consume(BATCH, 0.1) if each.error() is None]
            except KafkaException:
                continue
            for message in messages:
                lines.write(f"{message.partition()} {message.offset()}\n")
            lines.flush()
            if messages:
                try:
                    consumer.commit(asynchronous=False)
                except KafkaException:
                    pass  # not a member any more, or the broker is away: others will process it again
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
