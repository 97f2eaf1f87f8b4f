"""Apache Kafka's tool prints our files of transactions as it prints its own, after the same work."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Broker, apache
from barnabas.testing.apache import ApacheKafka

from .conftest import ALIKE
from .talk import Talk
from .transacting import Transacting

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("java")]

TOPIC = "ledger"
PARTITIONS = 2
STATES = "__transaction_state-0"
LOG = "00000000000000000000.log"


def work(port: int) -> None:
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
        for is_new in (True, False):
            left = Transacting(talk, "left" if is_new else "left-old", is_new=is_new)
            left.write(TOPIC, b"left open", partition=0)


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)


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
