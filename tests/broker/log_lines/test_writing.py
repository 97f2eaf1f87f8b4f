"""Lines are split, rolled and bounded; a slow disk costs lines, not time."""

import json
import logging
import queue
from pathlib import Path

import pytest

from barnabas.broker.log_lines.forms import JSON, formatter
from barnabas.broker.log_lines.writing import BoundedQueueHandler, Places, writing
from barnabas.broker.process import places_of
from barnabas.settings import BrokerSettings
from barnabas.settings.one_machine import one_node_properties

LOGGERS = {
    "server": "barnabas.node",
    "controller": "barnabas.quorum.controller",
    "state-change": "state.change.logger",
    "kafka-request": "kafka.request.logger",
    "kafka-authorizer": "kafka.authorizer.logger",
    "log-cleaner": "barnabas.cleaner",
}


def test_each_file_gets_its_own_lines(tmp_path: Path) -> None:
    with writing(Places(tmp_path / "logs")):
        for file, name in LOGGERS.items():
            logging.getLogger(name).error("a line for %s", file)
    for file, name in LOGGERS.items():
        [line] = (tmp_path / "logs" / f"{file}.log").read_text().splitlines()
        assert line.endswith(f" ERROR a line for {file} ({name})")


def test_files_are_rolled_and_the_oldest_are_dropped(tmp_path: Path) -> None:
    with writing(Places(tmp_path, bytes_max=1000, files_max=3)):
        for number in range(100):
            logging.getLogger("barnabas.node").error("line %d %s", number, "x" * 100)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["server.log", "server.log.1", "server.log.2"]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    assert "line 99 " in (tmp_path / "server.log").read_text()


def test_a_line_can_be_an_object(tmp_path: Path) -> None:
    with writing(Places(tmp_path, JSON)):
        try:
            raise ValueError("why")
        except ValueError:
            logging.getLogger("barnabas.node").exception("it\nfailed: %s", 'a "quoted" word')
    [line] = (tmp_path / "server.log").read_text().splitlines()
    found = json.loads(line)
    assert found["message"] == 'it\nfailed: a "quoted" word'
    assert (found["level"], found["logger"]) == ("ERROR", "barnabas.node")
    assert found["exception"].endswith("ValueError: why")
    assert found["timestamp"].endswith("Z")


def test_kafkas_words_for_levels_stand_in_objects() -> None:
    record = logging.LogRecord("x", logging.WARNING, "x.py", 1, "text", None, None)
    assert json.loads(formatter(JSON).format(record))["level"] == "WARN"


def test_lines_that_do_not_fit_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    lines: queue.Queue[logging.LogRecord] = queue.Queue(2)
    handler = BoundedQueueHandler(lines)
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "text", None, None)
    for _ in range(5):
        handler.enqueue(record)
    assert handler.dropped == 3
    lines.get_nowait()
    with caplog.at_level(logging.WARNING):
        handler.enqueue(record)
    assert handler.dropped == 0
    assert "3 lines were not written" in caplog.text


def test_the_folder_comes_from_the_setting_or_from_kafka_opts() -> None:
    plain = one_node_properties(9092, 9093)
    environment = {"KAFKA_OPTS": "-Xmx1G -Dkafka.logs.dir=/from/opts -Dx=y"}
    settings = BrokerSettings.load(plain)
    assert places_of(settings, {}).folder is None
    assert places_of(settings, environment).folder == Path("/from/opts")
    settings = BrokerSettings.load(plain | {"barnabas.logs.dir": "/own", "barnabas.logs.format": "json"})
    assert places_of(settings, environment) == Places(Path("/own"), JSON)
