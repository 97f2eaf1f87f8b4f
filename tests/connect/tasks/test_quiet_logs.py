"""Secrets of a task's settings are in no line of its log, whatever servers and errors say."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.connect.config.secrets import Redaction
from barnabas.connect.tasks.quiet_logs import FILTER
from barnabas.testing.broker import Broker
from connect.tasks.parts import MODULE, States, runner, until


def test_a_trace_with_a_password_of_the_task_is_logged_without_it(
    barnabas_broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tasks, states = runner(barnabas_broker.bootstrap, tmp_path), States()
    config = {
        "connector.class": f"{MODULE}:Recording",
        "name": "c",
        "topics": "nowhere",
        "task.class": "x",
        "flush.password": "hunter2hunter2",
        "errors.retry.timeout": "the password hunter2hunter2 is no number",
    }
    tasks.start("c", 0, config, "STARTED", states)
    try:
        until(lambda: states.last == "FAILED")
    finally:
        tasks.stop_all()
    assert "hunter2hunter2" in states.trace  # the herder hides it in the status
    assert "task c-0 failed" in caplog.text and "hunter2hunter2" not in caplog.text


def test_lines_of_other_threads_stay_as_they_are() -> None:
    assert Redaction({}, {"a.password": "secret1"}, {}).text("secret1") == "[hidden]"
    record = logging.LogRecord("n", logging.INFO, "f", 1, "with %s", ("secret1",), None)
    assert FILTER.filter(record) and record.getMessage() == "with secret1"
