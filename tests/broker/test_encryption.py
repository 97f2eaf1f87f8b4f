"""Encryption at rest with real clients: nothing plain on the disk, restarts, compaction, lost keys."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.broker.node import StorageError
from barnabas.cli.main import main
from barnabas.storage.encryption import key_files
from barnabas.testing import apache
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

SECRET = b"a-secret-that-must-not-be-on-the-disk"
NAME = b"a-transactional-id-that-must-not-be-on-the-disk"
Start = Callable[..., Broker]


def master_key(byte: int) -> str:
    return base64.b64encode(bytes([byte]) * 32).decode()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A file with one master key."""
    path = tmp_path / "master.keys"
    path.write_text(f"v1={master_key(1)}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def started(tmp_path: Path, keys: Path) -> Iterator[Start]:
    """Start a broker on the same folder, again and again; with encryption unless told otherwise."""
    running: list[Broker] = []

    def start(*, encrypted: bool = True, **overrides: object) -> Broker:
        for each in running:
            each.stop()
        running.clear()
        settings = {
            "barnabas.encryption.enabled": "true" if encrypted else "false",
            "barnabas.encryption.key.file": str(keys),
            "log.cleaner.backoff.ms": "100",
            **{name.replace("_", "."): value for name, value in overrides.items()},
        }
        broker = Broker(tmp_path / "data", overrides=settings).start()
        running.append(broker)
        return broker

    yield start
    for each in running:
        each.stop()


def produce(broker: Broker, topic: str, count: int, *, prefix: bytes = SECRET, **configs: object) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, **configs})
    if "transactional.id" in configs:
        producer.init_transactions()
        producer.begin_transaction()
    for number in range(count):
        producer.produce(
            topic, prefix + b"-%d" % number, key=b"%s-key-%d" % (SECRET, number % 10), partition=0
        )
    assert producer.flush(30) == 0
    if "transactional.id" in configs:
        producer.abort_transaction()


def consume(broker: Broker, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "g", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None, f"nothing after {len(found)} records"
        assert message.error() is None, message.error()
        found.append(message.value())
    consumer.close()
    return found


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_settings(broker: Broker, folder: Path) -> Path:
    path = folder / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in broker.properties.items()))
    return path


def values(count: int, prefix: bytes = SECRET) -> list[bytes]:
    return [prefix + b"-%d" % number for number in range(count)]


def test_nothing_plain_is_on_the_disk_and_a_restart_reads_all(started: Start, tmp_path: Path) -> None:
    broker = started()
    broker.create_topic("orders", configs={"internal.segment.bytes": 20_000, "index.interval.bytes": 500})
    for part in range(4):
        produce(broker, "orders", 250, **{"batch.size": 2000, "enable.idempotence": part % 2 == 0})
    produce(broker, "orders", 10, **{"transactional.id": NAME.decode()})

    assert consume(broker, "orders", 1000) == 4 * values(250)
    broker = started()
    assert consume(broker, "orders", 1000) == 4 * values(250)
    broker.stop()

    found = files_of(tmp_path / "data")
    kinds = {path.suffix for path in found}
    assert {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"} <= kinds
    for path, content in found.items():
        assert SECRET not in content and NAME not in content, path
        numbered = path.name[:20].isdigit() and path.suffix in {
            ".log",
            ".index",
            ".timeindex",
            ".txnindex",
            ".snapshot",
        }
        # The storage tool writes the first snapshot of the metadata log, with the voters, without keys.
        if content and numbered:
            assert content.startswith(b"\xba\xb5"), path


def test_large_fetches_are_decrypted_in_pieces(started: Start) -> None:
    broker = started()
    broker.create_topic("large")
    prefix = SECRET * 1000
    produce(broker, "large", 100, prefix=prefix, **{"linger.ms": 50, "compression.type": "none"})

    assert consume(broker, "large", 100) == values(100, prefix)


def test_plain_and_encrypted_segments_lie_side_by_side(started: Start, tmp_path: Path) -> None:
    broker = started(encrypted=False)
    broker.create_topic("mixed")
    produce(broker, "mixed", 5)
    broker = started()
    produce(broker, "mixed", 5)
    broker = started(encrypted=False)
    produce(broker, "mixed", 5)

    assert consume(broker, "mixed", 15) == 3 * values(5)
    broker.stop()
    segments = sorted((tmp_path / "data/mixed-0").glob("*.log"))
    assert [SECRET in path.read_bytes() for path in segments] == [True, False, True]


def test_compaction_of_encrypted_segments_keeps_them_encrypted(started: Start, tmp_path: Path) -> None:
    broker = started()
    broker.create_topic(
        "compacted",
        configs={
            "cleanup.policy": "compact",
            "internal.segment.bytes": 20_000,
            "min.cleanable.dirty.ratio": 0.01,
        },
    )
    for _ in range(4):
        produce(broker, "compacted", 300, **{"batch.size": 1000})
    folder = tmp_path / "data/compacted-0"

    def is_clean() -> bool:
        checkpoint = tmp_path / "data/cleaner-offset-checkpoint"
        return checkpoint.exists() and "compacted 0 " in checkpoint.read_text()

    wait_until(is_clean)
    last = consume(broker, "compacted", 10)[-10:]
    assert len(last) == 10
    broker.stop()
    assert all(SECRET not in content for content in files_of(folder).values())
    kept = started()
    assert len(consume(kept, "compacted", 10)) == 10


def test_keys_are_rotated_without_rewriting_segments(started: Start, tmp_path: Path, keys: Path) -> None:
    broker = started()
    broker.create_topic("orders")
    produce(broker, "orders", 5)
    broker.stop()
    data = tmp_path / "data"
    first = sorted((data / "orders-0").glob("*.log"))[0]
    before = first.read_bytes()

    keys.write_text(f"v1={master_key(1)}\nv2={master_key(2)}\n")
    settings = write_settings(broker, tmp_path)
    assert main(["storage", "rotate-keys", "-c", str(settings), "--data-keys"]) == 0
    keys.write_text(f"v2={master_key(2)}\n")
    stored = json.loads((data / "encryption-keys.json").read_text())
    assert [(each["number"], each["master"]) for each in stored["keys"]] == [(1, "v2"), (2, "v2")]

    broker = started()
    produce(broker, "orders", 5)
    assert consume(broker, "orders", 10) == 2 * values(5)
    assert first.read_bytes() == before
    second = sorted((data / "orders-0").glob("*.log"))[1]
    assert (before[15], second.read_bytes()[15]) == (1, 2)  # the number of the data key


def test_dump_log_needs_the_key(
    started: Start,
    tmp_path: Path,
    keys: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = started()
    broker.create_topic("orders")
    produce(broker, "orders", 5)
    broker.stop()
    settings = write_settings(broker, tmp_path)
    folder = tmp_path / "data/orders-0"
    names = [f"00000000000000000000{kind}" for kind in (".log", ".index", ".timeindex")]
    command = ["dump-log", "--print-data-log", "--files", ",".join(str(folder / name) for name in names)]

    assert main(command) == 1
    assert "is encrypted: name the node's server.properties with --config" in capsys.readouterr().err
    assert main([*command, "--config", str(settings)]) == 0
    assert f"payload: {SECRET.decode()}-4" in capsys.readouterr().out
    monkeypatch.setenv("BARNABAS_MASTER_KEYS", keys.read_text().strip())
    assert main(command) == 0
    monkeypatch.setenv("BARNABAS_MASTER_KEYS", f"v2={master_key(2)}")
    assert main(command) == 1
    assert "master key 'v1' is not in the environment variable" in capsys.readouterr().err

    assert main(["storage", "info", "-c", str(settings)]) == 0
    assert f"{tmp_path}/data: data key 1, wrapped with master key v1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda keys, data: keys.write_text(f"v2={master_key(2)}\n"),
            r"master key 'v1' is not in .*master.keys",
        ),
        (
            lambda keys, data: keys.write_text(f"v1={master_key(2)}\n"),
            r"master key 'v1' in .* is another key",
        ),
        (lambda keys, data: keys.unlink(), r"cannot read the master keys of .*master.keys: No such file"),
        (
            lambda keys, data: keys.write_text("v1=abc"),
            r"the key 'v1' is not 'id=key' with a key of 32 bytes",
        ),
        (lambda keys, data: (data / "encryption-keys.json").unlink(), r"encryption-keys.json is missing"),
    ],
)
def test_a_node_without_its_key_refuses_to_start_and_touches_nothing(
    started: Start, tmp_path: Path, keys: Path, change: Callable[[Path, Path], object], reason: str
) -> None:
    broker = started()
    broker.create_topic("orders")
    produce(broker, "orders", 5)
    broker.stop()
    data = tmp_path / "data"
    change(keys, data)
    before = files_of(data)

    for encrypted in (True, False):
        with pytest.raises(StorageError, match=reason):
            started(encrypted=encrypted)

    assert files_of(data) == before


def test_keys_from_the_environment(started: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEYS", f"a={master_key(1)},b={master_key(2)}")
    settings = {"barnabas_encryption_key_provider": "env", "barnabas_encryption_key_variable": "MY_KEYS"}
    broker = started(**settings)
    broker.create_topic("orders")
    produce(broker, "orders", 5)

    assert consume(started(**settings), "orders", 5) == values(5)


def test_a_damaged_segment_is_an_error_of_its_partition_alone(started: Start, tmp_path: Path) -> None:
    broker = started()
    for topic in ("good", "bad"):
        broker.create_topic(topic)
        produce(broker, topic, 5)
    broker.stop()
    path = next((tmp_path / "data/bad-0").glob("*.log"))
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)

    broker = started()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "check.crcs": True})
    consumer.assign([TopicPartition("bad", 0, 0)])
    message = consumer.poll(15)
    assert message is not None
    assert message.error() is not None
    consumer.close()
    assert consume(broker, "good", 5) == values(5)


def test_key_files_show_no_key(started: Start, tmp_path: Path) -> None:
    started().stop()
    text = (tmp_path / "data/encryption-keys.json").read_text()
    assert master_key(1) not in text
    assert "wrapped=b''" in repr(key_files.WrappedKey(1, "v1", b""))


@pytest.mark.java
@pytest.mark.slow
def test_apache_kafka_refuses_the_folder_and_touches_nothing(
    java: None, started: Start, tmp_path: Path
) -> None:
    broker = started()
    broker.create_topic("orders")
    produce(broker, "orders", 5)
    broker.stop()
    settings = write_settings(broker, tmp_path)
    before = files_of(tmp_path / "data")

    done = apache.tool("kafka.Kafka", str(settings))

    assert done.returncode != 0
    assert {
        path: content for path, content in files_of(tmp_path / "data").items() if path in before
    } == before
    shown = apache.tool("kafka.tools.StorageTool", "info", "-c", str(settings))
    assert "1-encrypted-by-barnabas" in shown.stdout + shown.stderr
