"""Kafka's dump tool and ours print the same, line for line, of every file that our broker leaves behind."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.cli.main import main
from barnabas.testing import Broker, apache

from .conftest import ALIKE
from .share_writing import SharePartition, make_topic
from .talk import Talk

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("java")]

WAIT_S_MAX = 30.0
KINDS = {
    "topic-0": ("--deep-iteration", "--print-data-log"),
    "__consumer_offsets-0": ("--offsets-decoder",),
    "__transaction_state-0": ("--transaction-log-decoder",),
    "__share_group_state-0": ("--share-group-state-decoder",),
    "__cluster_metadata-0": ("--cluster-metadata-decoder",),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What is left of a broker that was written to, read from, and stopped."""
    data = tmp_path_factory.mktemp("dumped") / "data"
    with Broker(data, overrides=ALIKE) as broker:
        broker.create_topic("topic", configs={"segment.bytes": 1_048_576, "index.interval.bytes": 500})
        write(broker.bootstrap)
        read(broker.bootstrap)
        share(broker.port)
    yield data


def share(port: int) -> None:
    with closing(Talk(port, "dumped")) as talk:
        topic_id = make_topic(talk, "shared", 2)
        state, deleted = (SharePartition(talk, "readers", topic_id, each) for each in range(2))
        state.initialize(start=-1)
        state.write(3, (4, 5, 2, 1), (9, 9, 0, 3), complete=1)
        state.read(leader_epoch=7)
        deleted.initialize(epoch=9, start=77)
        deleted.delete()


def write(bootstrap: str) -> None:
    for compression in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": compression, "linger.ms": 1})
        for number in range(400):
            producer.produce("topic", b"v" * 2_000, key=b"%d" % number, headers={"h": b"1"}, partition=0)
            producer.poll(0)
        assert producer.flush(WAIT_S_MAX) == 0
    for end in ("commit_transaction", "abort_transaction"):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"to-{end}"})
        producer.init_transactions(WAIT_S_MAX)
        producer.begin_transaction()
        producer.produce("topic", b"in a transaction", partition=0)
        assert producer.flush(WAIT_S_MAX) == 0
        getattr(producer, end)(WAIT_S_MAX)


def read(bootstrap: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    try:
        consumer.subscribe(["topic"])
        assert consumer.poll(WAIT_S_MAX) is not None
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def ours(*arguments: str) -> list[str]:
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        assert main(arguments, "kafka-dump-log") == 0
    printed.seek(0)
    return printed.read().splitlines()


def kafkas(*arguments: str) -> list[str]:
    done = apache.tool("org.apache.kafka.tools.DumpLogSegments", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", KINDS)
def test_both_tools_print_the_same_of_logs(name: str, folder: Path) -> None:
    logs = sorted((folder / name).glob("*.log"))
    assert logs
    arguments = (*KINDS[name], "--files", ",".join(map(str, logs)))
    assert ours(*arguments) == kafkas(*arguments)


@pytest.mark.parametrize("flags", [(), ("--verify-index-only",)], ids=["all", "verified"])
def test_both_tools_print_the_same_of_indexes_and_snapshots(flags: tuple[str, ...], folder: Path) -> None:
    files = [
        path
        for kind in ("index", "timeindex", "txnindex", "snapshot")
        for path in folder.glob(f"topic-0/*.{kind}")
    ]
    assert {path.suffix for path in files} == {".index", ".timeindex", ".txnindex", ".snapshot"}
    arguments = (*flags, "--files", ",".join(map(str, sorted(files))))
    assert ours(*arguments) == kafkas(*arguments)
