"""Files of a directory, by a worker that is killed with kill -9: each row is in the topic once."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from barnabas.testing.waiting import wait_until
from connect.jobs.worker_processes import WorkerProcess

FILES, ROWS, KILLS = 40, 200, 2
SECONDS = 300.0


def write(folder: Path, number: int) -> None:
    """A file that appears as a whole, as the connector asks of its users."""
    rows = range(number * ROWS, (number + 1) * ROWS)
    beside = folder / f".{number}.csv"
    beside.write_text("n,text\n" + "".join(f"{n},row {n}\n" for n in rows))
    beside.rename(folder / f"{number:03}.csv")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("policy", ["MOVE", "DELETE", "NONE"])
def test_killed_workers_read_each_file_once(barnabas_broker: Any, tmp_path: Path, policy: str) -> None:
    topic = f"rows-{policy.lower()}"
    source, finished = tmp_path / "in", tmp_path / "done"
    source.mkdir()
    config = {
        "name": topic,
        "connector.class": "CsvDirectorySourceConnector",
        "topic": topic,
        "input.path": str(source),
        "cleanup.policy": policy,
        "finished.path": str(finished),
        "schema": "n BIGINT, text STRING",
        "batch.max.files": "5",
        "empty.poll.wait.ms": "100",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "1",
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
    }
    chosen, pause = random.Random(policy), threading.Event()

    def feed() -> None:
        for number in range(FILES):
            write(source, number)
            pause.wait(0.3 + chosen.random() * 0.4)

    consumer = Consumer(
        {
            "bootstrap.servers": barnabas_broker.bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    consumer.subscribe([topic])
    seen: list[int] = []

    def count() -> int:
        for one in consumer.consume(1000, 0.2):
            if one.error() is None:
                seen.append(orjson.loads(one.value())["n"])
        return len(seen)

    def more_than(number: int) -> Callable[[], bool]:
        return lambda: count() > number

    feeder = threading.Thread(target=feed)
    worker = WorkerProcess(
        tmp_path / "worker", barnabas_broker.bootstrap, group=f"directory-{policy.lower()}"
    )
    try:
        worker.create(config)
        feeder.start()
        for _ in range(KILLS):
            wait_until(more_than(len(seen)), SECONDS)
            pause.wait(chosen.random())
            worker.kill()
            worker.restart()
        wait_until(lambda: count() >= FILES * ROWS, SECONDS)
        worker.check()
        if policy != "NONE":
            wait_until(lambda: not list(source.glob("*.csv")), SECONDS)
    except BaseException:
        print(worker.text())
        raise
    finally:
        pause.set()
        if feeder.ident is not None:
            feeder.join()
        worker.stop()
    count()
    consumer.close()
    assert Counter(seen) == Counter(range(FILES * ROWS))
    names = [f"{number:03}.csv" for number in range(FILES)]
    assert sorted(each.name for each in source.glob("*.csv")) == (names if policy == "NONE" else [])
    if policy == "MOVE":
        assert sorted(each.name for each in finished.iterdir()) == names
