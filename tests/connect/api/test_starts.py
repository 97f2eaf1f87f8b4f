"""Workers that start before their brokers, or with files that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.main import main
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from connect.connectors.worker import running_worker


def test_a_worker_waits_for_brokers_that_start_after_it(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with running_worker(tmp_path, f"127.0.0.1:{port}") as worker:
        wait_until(lambda: "the worker tries again" in worker.text(), 60, worker.text)
        with Broker(port=port):
            wait_until(lambda: "The worker is ready" in worker.text(), 60, worker.text)


def test_a_connector_file_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "worker.properties"
    with Broker() as broker:
        path.write_text(
            f"bootstrap.servers={broker.bootstrap}\noffset.storage.file.filename={tmp_path}/offsets\n"
            "listeners=http://127.0.0.1:0\n"
            "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
            "value.converter=org.apache.kafka.connect.storage.StringConverter\n"
        )
        assert main(["connect-standalone", str(path), str(tmp_path / "nope.properties")]) == 1
    said = capsys.readouterr()
    assert f"{tmp_path / 'nope.properties'}: No such file or directory\n" in said.out + said.err
