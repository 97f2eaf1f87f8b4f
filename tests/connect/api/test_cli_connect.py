"""The commands status, tail, explain and new of `barnabas connect`, on a running worker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.main import main
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from connect.connectors.worker import running_worker


def test_tasks_are_shown_with_counts_and_last_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lines.txt").write_text("one\ntwo\nthree\n")
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    lines = {
        "name": "lines",
        "connector.class": "FileStreamSource",
        "file": str(tmp_path / "lines.txt"),
        "topic": "lines",
    }
    copy = {
        "name": "copy",
        "connector.class": "FileStreamSink",
        "topics": "lines",
        "file": str(tmp_path / "copy.txt"),
        "value.converter": "org.apache.kafka.connect.converters.LongConverter",
    }

    def shown(*arguments: str) -> tuple[int, str]:
        code = main(["connect", *arguments, "--url", url])
        return code, capsys.readouterr().out

    def rows() -> dict[str, dict[str, Any]]:
        found = [json.loads(line) for line in shown("status", "--json")[1].splitlines()]
        return {each["connector"]: each for each in found}

    with Broker() as broker, running_worker(tmp_path, broker.bootstrap, lines, copy, listeners=url) as worker:
        wait_until(lambda: "The worker is ready" in worker.text(), 60)
        wait_until(lambda: rows()["copy"]["state"] == "FAILED", 60)
        wait_until(lambda: rows()["lines"].get("records_out") == 3, 60)
        code, text = shown("status")
        assert code == 1  # a task failed
        header, copied, read = text.splitlines()
        assert header.split()[:4] == ["CONNECTOR", "TASK", "TYPE", "STATE"]
        assert "FAILED" in copied and "VALUE_CONVERTER at lines-0 offset 0" in copied
        assert read.split()[:4] == ["lines", "0", "source", "RUNNING"]
        assert shown("status", "lines")[0] == 0
        assert "lines-0  RUNNING  in 3  out 3" in shown("tail", "lines", "--count", "1")[1]
        explained = shown("explain", "copy")[1]
        assert "Class: FileStreamSink" in explained and "in a thread of the worker" in explained
        assert main(["connect", "status", "nobody", "--url", url]) == 1
        assert "there is no connector nobody; there are: copy, lines" in capsys.readouterr().err
    assert main(["connect", "status", "--url", url]) == 1
    assert "cannot be reached" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["source", "sink"])
def test_a_new_connector_comes_with_a_test_that_passes(kind: str, tmp_path: Path) -> None:
    assert main(["connect", "new", "mine", "--kind", kind, "--folder", str(tmp_path)]) == 0
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in found.stdout, found.stdout
    assert main(["connect", "new", "mine", "--folder", str(tmp_path)]) == 1  # nothing is replaced
    assert main(["connect", "new", "no-name", "--folder", str(tmp_path)]) == 1


@pytest.mark.long
@pytest.mark.parametrize("kind", ["spark-source", "spark-sink"])
def test_a_new_connector_on_spark_comes_with_a_test_that_passes(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="needs the extra `spark`")
    test_a_new_connector_comes_with_a_test_that_passes(kind, tmp_path)
