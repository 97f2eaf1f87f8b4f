"""An application as people run it: the command, Spark, interactive queries, metrics, a kill, a reset."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.spark_sessions import STARTS_FAST
from tests.streams.spark.local import KEEPS_OLD_RECORDS, LocalApplication

from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.engine.catalogue.metrics import metrics_text
from barnabas.engine.places.place import place_at
from barnabas.streams import StreamsBuilder
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

TOPOLOGY = """
from barnabas.streams import StreamsBuilder

def topology(application_id):
    builder = StreamsBuilder(application_id)
    words = builder.stream("lines", value=str).flat_map_values(str.split, value=str)
    words.group_by(lambda key, word: word, key=str).count(store="counts").to_stream().to("counts", value=int)
    return builder
"""
START_S_MAX = 180


def value_at(url: str) -> Any:
    try:
        with urllib.request.urlopen(url) as response:
            return json.load(response)["value"]
    except (urllib.error.URLError, OSError):
        return None


@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_application_runs_answers_survives_a_kill_and_stops(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(TOPOLOGY)
    builder = StreamsBuilder("words")
    builder.stream("lines", value=str)
    state = tmp_path / "state"
    with (
        Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as broker,
        LocalApplication(broker, builder.build(), state) as application,
    ):
        application.create("lines", "counts")
        command = [sys.executable, "-m", "barnabas", "streams", "run", "words:topology", "--port", "0"]
        command += ["--application-id", "words", "--bootstrap-server", broker.bootstrap]
        settings = {
            "processing.guarantee": "exactly_once_v2",
            "state.dir": str(state),
            "spark.master": "local[2]",
            **STARTS_FAST,
        }
        command += [f"--config={name}={value}" for name, value in settings.items()]
        running = subprocess.Popen(command, cwd=tmp_path)
        try:
            ready = state / "words" / "serving.json"

            def address() -> str:
                return str(json.loads(ready.read_text())["url"])

            def wait_for(word: str, count: int) -> None:
                def is_there() -> bool:
                    assert running.poll() is None
                    return ready.exists() and value_at(f"{address()}/stores/counts/keys/{word}") == count

                wait_until(is_there, START_S_MAX, f"{word} is counted {count} times")

            application.produce("lines", [(None, "to be or not to be", 1)])
            wait_for("be", 2)
            catalogue = Catalogue(place_at(str(state)))
            name = "kafka_streams_stream_task_metrics_process_total"
            wait_until(lambda: name in metrics_text(catalogue), 30, name)
            entry = catalogue.application("words")
            assert entry is not None
            [pid] = [program.pid for program in entry.programs if program.program == "streams"]
            os.kill(pid, signal.SIGKILL)
            application.produce("lines", [(None, "be", 2)])
            wait_for("be", 3)
        finally:
            running.send_signal(signal.SIGTERM)
            assert running.wait(60) == 0
        reset = [sys.executable, "-m", "barnabas", "streams", "reset", "--application-id", "words"]
        reset += ["--bootstrap-server", broker.bootstrap, f"--config=state.dir={state}"]
        told = subprocess.run(reset, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert "deleted topic words-counts-changelog" in told
        assert "deleted group words" in told
