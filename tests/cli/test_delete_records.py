"""`delete-records` reports errors for each partition at once. (The transcripts test the rest.)"""

import json
from collections.abc import Callable
from pathlib import Path

from .conftest import RunTool


def test_an_offset_beyond_the_end_and_a_missing_topic_are_reported(
    broker: str, run_tool: RunTool, fresh_name: Callable[[], str], tmp_path: Path
) -> None:
    topic, nowhere = fresh_name(), fresh_name()
    server = ("--bootstrap-server", broker)
    run_tool("kafka-topics", *server, "--create", "--topic", topic)
    run_tool("kafka-console-producer", *server, "--topic", topic, input="a\nb\n")
    wanted = [{"topic": name, "partition": 0, "offset": 99} for name in (topic, nowhere)]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": wanted}))

    ran = run_tool("kafka-delete-records", *server, "--offset-json-file", str(file))

    assert ran.status == 0
    assert ran.lines[:2] == ["Executing records delete operation", "Records delete operation completed:"]
    assert ran.lines[2].startswith(f"partition: {topic}-0\terror: The offset lies outside the range")
    assert ran.lines[3] == f"partition: {nowhere}-0\terror: partition {nowhere}-0 does not exist"
    first = run_tool("kafka-get-offsets", *server, "--topic", topic, "--time", "earliest")
    assert first.lines == [f"{topic}:0:0"]
