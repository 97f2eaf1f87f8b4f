"""Transactions in files: Apache Kafka's tool reads ours as its own, and folders move both ways."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.protocol import ApiKey
from barnabas.testing import Broker, apache
from barnabas.testing.apache import ApacheKafka
from barnabas.testing.broker import wait_until

from .conftest import ALIKE
from .talk import Talk
from .transacting import NOT_YET, Transacting

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("java")]

TOPIC = "ledger"
PARTITIONS = 2
STATES = "__transaction_state-0"
LOG = "00000000000000000000.log"


def work(port: int) -> tuple[Transacting, Transacting]:
    """Transactions of both flows, some committed, some aborted; two stay open."""
    with closing(Talk(port, "files")) as talk:
        for is_new in (True, False):
            producer = Transacting(talk, "new" if is_new else "old", is_new=is_new)
            for number, commit in enumerate((True, False, True, False)):
                for partition in range(PARTITIONS):
                    producer.write(
                        TOPIC, b"%d %s" % (number, b"kept" if commit else b"lost"), partition=partition
                    )
                producer.end(commit=commit, topics=(TOPIC,), partitions=PARTITIONS)
        left = Transacting(talk, "left", is_new=True), Transacting(talk, "left-old", is_new=False)
        for producer in left:
            producer.write(TOPIC, b"left open", partition=0)
        return left


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)


def finish(port: int, left: tuple[Transacting, Transacting]) -> None:
    """On the other broker: one that was left open is committed, the other aborted."""
    with closing(Talk(port, "files")) as talk:
        for producer, commit in zip(left, (True, False), strict=True):
            producer.talk = talk
            state = described(talk, producer.id)
            assert (state["transaction_state"], state["producer_id"], state["producer_epoch"]) == (
                "Ongoing",
                producer.producer_id,
                producer.epoch,
            )
            assert state["topics"] == [{"topic": TOPIC, "partitions": [0]}]
            producer.write(TOPIC, b"and went on", partition=0)
            producer.end(commit=commit, topics=(TOPIC,), partitions=PARTITIONS)


def described(talk: Talk, transactional_id: str) -> dict[str, Any]:
    """Once the coordinator has loaded it."""
    found: list[dict[str, Any]] = []

    def is_loaded() -> bool:
        answer = talk.silently(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[transactional_id])
        found[:] = answer["transaction_states"]
        return found[0]["error_code"] not in NOT_YET

    wait_until(is_loaded, 30)
    talk.wait_until_served(TOPIC, PARTITIONS)
    return found[0]


def read_committed(bootstrap: str, count: int) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([TOPIC])
    found: list[str] = []
    ends: set[int] = set()

    def is_read() -> bool:
        message = consumer.poll(0.5)
        if message is not None:
            if message.error() is None:
                found.append((message.value() or b"").decode())
                ends.discard(message.partition() or 0)
            else:
                ends.add(message.partition() or 0)
        return len(found) >= count and len(ends) == PARTITIONS

    wait_until(is_read, 60)
    consumer.close()
    return sorted(found)


KEPT = sorted(["0 kept", "2 kept"] * 2 * PARTITIONS)


def test_apache_kafka_goes_on_with_our_transactions(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data, overrides=ALIKE) as broker:
        create_topic(broker.bootstrap)
        left = work(broker.port)
        assert read_committed(broker.bootstrap, len(KEPT)) == KEPT
    with ApacheKafka(data) as kafka:
        finish(kafka.port, left)
        assert read_committed(kafka.bootstrap, len(KEPT) + 2) == sorted([*KEPT, "and went on", "left open"])


def test_we_go_on_with_transactions_of_apache_kafka(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ApacheKafka(data) as kafka:
        create_topic(kafka.bootstrap)
        left = work(kafka.port)
        kafka.stop()
    with Broker(data, overrides=ALIKE) as broker:
        finish(broker.port, left)
        assert read_committed(broker.bootstrap, len(KEPT) + 2) == sorted([*KEPT, "and went on", "left open"])


# What the tool prints


def dump(*flags: str, files: list[Path]) -> list[str]:
    done = apache.tool("org.apache.kafka.tools.DumpLogSegments", *flags, "--files", ",".join(map(str, files)))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def neutral(lines: list[str]) -> list[str]:
    """Without times and paths, and with names for producer ids, in the order that they come up."""
    names: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        return match[1] + names.setdefault(match[2], f"p{len(names)}")

    found = []
    for line in lines:
        text = re.sub(r"(/\S+/)(?=[^/\s]+\.(log|txnindex|snapshot))", "", line)
        text = re.sub(r'(\w*[pP]roducerId"?[:=]\s?)(\d+)', named, text)
        text = re.sub(r'(\w*[tT]ime\w*"?[:=]?\s?)\d{13}', r"\1<time>", text)
        found.append(re.sub(r"crc: \d+", "crc: <crc>", text))
    return found


@pytest.fixture(scope="module")
def folders(java: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The data of both brokers after the same work, stopped in peace."""
    ours, theirs = tmp_path_factory.mktemp("ours") / "data", tmp_path_factory.mktemp("theirs") / "data"
    with Broker(ours, overrides=ALIKE) as broker:
        create_topic(broker.bootstrap)
        work(broker.port)
    with ApacheKafka(theirs) as kafka:
        create_topic(kafka.bootstrap)
        work(kafka.port)
        kafka.stop()
    return {"ours": ours, "theirs": theirs}


def states(folder: Path) -> list[str]:
    """Records alone: how many share a batch, and the order of partitions, are a broker's own affair."""
    lines = dump("--transaction-log-decoder", files=[folder / STATES / LOG])
    return [
        re.sub(r'"partitionIds":\[([\d,]+)\]', lambda found: repr(sorted(found[1].split(","))), line)
        for line in lines
        if line.startswith("|")
    ]


def indexes(folder: Path) -> list[str]:
    files = [path for n in range(PARTITIONS) for path in sorted((folder / f"{TOPIC}-{n}").glob("*.txnindex"))]
    return dump(files=files)


def snapshots(folder: Path) -> list[str]:
    files = [path for n in range(PARTITIONS) for path in sorted((folder / f"{TOPIC}-{n}").glob("*.snapshot"))]
    return dump(files=files)


def logs(folder: Path) -> list[str]:
    return dump("--print-data-log", files=[folder / f"{TOPIC}-{n}" / LOG for n in range(PARTITIONS)])


@pytest.mark.parametrize("what", [states, indexes, snapshots, logs], ids=lambda what: what.__name__)
def test_the_tool_prints_our_files_as_those_of_apache_kafka(
    folders: dict[str, Path], what: Callable[[Path], list[str]]
) -> None:
    ours, theirs = neutral(what(folders["ours"])), neutral(what(folders["theirs"]))
    assert len(ours) > 4
    assert ours == theirs


def test_clients_transactions_are_in_the_log_of_states(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data, overrides=ALIKE) as broker:
        create_topic(broker.bootstrap)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "client"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(TOPIC, b"x", partition=0)
        producer.commit_transaction(30)
    shown = [re.search(r'"client".*"transactionStatus":(\d)', line) for line in states(data)]
    assert [found[1] for found in shown if found] == ["0", "1", "2", "4"]
