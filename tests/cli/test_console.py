"""The console tools beyond the transcripts: new records, interrupts, pipes, files, missing topics."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.cli.frame import librdkafka
from barnabas.testing.ports import free_ports

from .children import Child, start
from .conftest import RunTool

TIMEOUT_S = 30.0


@pytest.fixture
def topic(broker: str, run_tool: RunTool, fresh_name: Callable[[], str]) -> str:
    name = fresh_name()
    run_tool("kafka-topics", "--bootstrap-server", broker, "--create", "--topic", name)
    return name


def produce(run_tool: RunTool, broker: str, topic: str, text: str, *more: str) -> None:
    ran = run_tool(
        "kafka-console-producer", "--bootstrap-server", broker, "--topic", topic, *more, input=text
    )
    assert ran.status == 0, ran.errors


def test_a_consumer_follows_and_an_interrupt_ends_it(
    broker: str, topic: str, run_tool: RunTool, children: list[Child]
) -> None:
    produce(run_tool, broker, topic, "first\n")
    server = ("--bootstrap-server", broker, "--topic", topic)
    child = start(children, "consume", *server, "--from-beginning")
    assert child.stdout is not None
    assert child.stdout.readline() == b"first\n"
    produce(run_tool, broker, topic, "second\n")
    assert child.stdout.readline() == b"second\n"
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=TIMEOUT_S)
    assert (output, errors, child.returncode) == (b"", b"Processed a total of 2 messages\n", 130)


def test_a_consumer_ends_when_the_reader_of_its_pipe_closes(
    broker: str, topic: str, run_tool: RunTool, children: list[Child]
) -> None:
    """As in `| head -1`, although no further record arrives."""
    produce(run_tool, broker, topic, "first\n")
    child = start(children, "consume", "--bootstrap-server", broker, "--topic", topic, "--from-beginning")
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.readline() == b"first\n"
    child.stdout.close()
    assert child.wait(TIMEOUT_S) == 0
    assert child.stderr.read() == b"Processed a total of 1 messages\n"


def test_an_interrupted_producer_has_sent_what_it_read(
    broker: str, topic: str, run_tool: RunTool, children: list[Child]
) -> None:
    child = start(children, "produce", "--bootstrap-server", broker, "--topic", topic, "--timeout", "1")
    assert child.stdin is not None
    child.stdin.write(b"typed\n")
    child.stdin.flush()
    seen = run_tool(
        "kafka-console-consumer",
        "--bootstrap-server",
        broker,
        "--topic",
        topic,
        "--from-beginning",
        "--max-messages",
        "1",
    )
    assert seen.lines == ["typed"]
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=TIMEOUT_S)
    assert (errors, child.returncode) == (b"", 130)


def test_a_consumer_reads_partitions_that_are_added(
    broker: str,
    topic: str,
    run_tool: RunTool,
    children: list[Child],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = (
        "import sys; from barnabas.cli.records import consume; consume.DISCOVERY_S = 0.0; "
        "from barnabas.cli.main import main; sys.exit(main())"
    )
    arguments = ["consume", "--bootstrap-server", broker, "--topic", topic, "--from-beginning"]
    child = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    children.append(child)
    assert child.stdout is not None
    produce(run_tool, broker, topic, "old\n")
    assert child.stdout.readline() == b"old\n"
    run_tool("kafka-topics", "--bootstrap-server", broker, "--alter", "--topic", topic, "--partitions", "12")
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    text = "".join(f"{number}:{number}\n" for number in range(20))
    ran = run_tool(
        "kafka-console-producer", "--bootstrap-server", broker, "--topic", topic, *keyed, input=text
    )
    assert ran.status == 0
    assert {child.stdout.readline() for _ in range(20)} == {b"%d\n" % number for number in range(20)}


def test_a_consumer_waits_for_a_missing_topic(
    broker: str, run_tool: RunTool, fresh_name: Callable[[], str]
) -> None:
    base = ("--bootstrap-server", broker, "--timeout-ms", "200")
    ran = run_tool("kafka-console-consumer", *base, "--include", f"{fresh_name()}.*")
    assert ran.status == 0
    assert "does not exist yet: waiting for it" in ran.errors
    assert ran.errors.endswith("Processed a total of 0 messages\n")


def test_without_librdkafka_a_group_is_refused_with_a_hint(
    broker: str, run_tool: RunTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(librdkafka, "is_installed", lambda: False)
    ran = run_tool("kafka-console-consumer", "--bootstrap-server", broker, "--topic", "t", "--group", "g")
    assert ran.status == 1
    assert ran.errors.startswith(
        "--group g: joining a group needs the package confluent-kafka (pip install confluent-kafka). "
        "Without --group this tool reads all partitions on its own"
    )


def test_whitelist_works_as_include(broker: str, topic: str, run_tool: RunTool) -> None:
    produce(run_tool, broker, topic, "x\n")
    base = ("--bootstrap-server", broker, "--from-beginning", "--max-messages", "1")
    ran = run_tool("kafka-console-consumer", *base, "--whitelist", topic)
    assert ran.lines == ["x"]
    assert "--whitelist is an old spelling: use --include" in ran.errors


def test_the_producer_fails_if_lines_are_not_written(run_tool: RunTool) -> None:
    base = ("--bootstrap-server", f"127.0.0.1:{free_ports(1)[0]}", "--topic", "t")
    ran = run_tool("kafka-console-producer", *base, input="lost\n")
    assert ran.status == 1
    assert "connection refused" in ran.errors


def test_a_record_that_is_too_large_for_the_topic_is_reported(
    broker: str, run_tool: RunTool, fresh_name: Callable[[], str]
) -> None:
    name = fresh_name()
    create = ("--create", "--topic", name, "--config", "max.message.bytes=100")
    run_tool("kafka-topics", "--bootstrap-server", broker, *create)
    ran = run_tool(
        "kafka-console-producer", "--bootstrap-server", broker, "--topic", name, input="x" * 500 + "\n"
    )
    assert ran.status == 1
    assert f"1 records for {name}-0 were not written: " in ran.errors


def test_a_last_line_without_a_line_end_is_sent(broker: str, topic: str, run_tool: RunTool) -> None:
    produce(run_tool, broker, topic, "one\r\ntwo")
    base = ("--bootstrap-server", broker, "--topic", topic, "--from-beginning", "--max-messages", "2")
    assert run_tool("kafka-console-consumer", *base).output == "one\ntwo\n"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_codec_are_read_back(broker: str, topic: str, codec: str, run_tool: RunTool) -> None:
    produce(run_tool, broker, topic, "a\nb\n", "--compression-codec", codec)
    base = ("--bootstrap-server", broker, "--topic", topic, "--from-beginning", "--max-messages", "2")
    assert run_tool("kafka-console-consumer", *base).lines == ["a", "b"]


def test_settings_come_from_files_and_options(
    broker: str, topic: str, run_tool: RunTool, tmp_path: Path
) -> None:
    reader = tmp_path / "reader.properties"
    reader.write_text("parse.key=true\nkey.separator=|\n")
    produce(
        run_tool, broker, topic, "k|v\n", "--reader-config", str(reader), "--command-property", "linger.ms=0"
    )
    shown = tmp_path / "formatter.properties"
    shown.write_text("print.key=true\nkey.separator=>\n")
    base = ("--bootstrap-server", broker, "--topic", topic, "--from-beginning", "--max-messages", "1")
    assert run_tool("kafka-console-consumer", *base, "--formatter-config", str(shown)).lines == ["k>v"]


def test_a_record_that_cannot_be_printed_is_skipped_only_if_asked(
    broker: str, topic: str, run_tool: RunTool
) -> None:
    produce(run_tool, broker, topic, "not a number\n12345678\n")
    base = ("--bootstrap-server", broker, "--topic", topic, "--from-beginning", "--max-messages", "2")
    strict = run_tool("kafka-console-consumer", *base, "--value-deserializer", "LongDeserializer")
    assert strict.status == 1
    assert f"cannot print the record at {topic}-0, offset 0: Size of data received" in strict.errors
    kind = run_tool(
        "kafka-console-consumer", *base, "--value-deserializer", "LongDeserializer", "--skip-message-on-error"
    )
    assert (kind.status, kind.lines) == (0, [str(int.from_bytes(b"12345678"))])


def test_an_unknown_security_protocol_is_refused(broker: str, run_tool: RunTool) -> None:
    base = ("--bootstrap-server", broker, "--topic", "t")
    ran = run_tool("kafka-console-consumer", *base, "--command-property", "security.protocol=TLS")
    assert (ran.status, ran.errors) == (
        1,
        "security.protocol=TLS is unknown: expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL\n",
    )
