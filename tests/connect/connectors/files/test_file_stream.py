"""FileStream as Apache Kafka has it: lines, offsets, texts."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from tests.connect.connectors.contexts import Offsets, started_sink, started_source

from barnabas.connect.connectors.files.file_stream_sink import FileStreamSinkConnector
from barnabas.connect.connectors.files.file_stream_source import FileStreamSourceConnector
from barnabas.connect.connectors.files.lines import LineCutter
from barnabas.connect.data import FLOAT64, INT64, OPTIONAL_STRING, Column, Records, struct
from barnabas.connect.plugins import ConnectError


def all_lines(data: bytes, sizes: int) -> list[str]:
    cutter, found = LineCutter(), []
    for start in range(0, len(data), sizes):
        cutter.feed(data[start : start + sizes])
        while (lines := cutter.pop(2)) is not None:
            found += lines.texts.to_pylist()
    return found


@pytest.mark.parametrize("sizes", [1, 2, 3, 7, 1000])
def test_lines_are_the_same_however_the_bytes_come(sizes: int) -> None:
    data = "a\nbä\r\n\nc\rd\x0b\u2028e\n".encode() + b"\xff!\nrest"
    assert all_lines(data, sizes) == ["a", "bä", "", "c", "d\x0b\u2028e", "�!"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_small_batches_of_a_large_piece_take_linear_time(end: bytes) -> None:
    cutter, count = LineCutter(), 0
    began = time.process_time()
    cutter.feed((b"x" * 38 + end) * 100_000)
    while (lines := cutter.pop(100)) is not None:
        count += len(lines.texts)
    assert count + cutter.bytes_waiting // 38 == 100_000
    assert time.process_time() - began < 0.3


def test_a_batch_has_a_line_at_least(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("one\ntwo\n")
    config = {"file": str(path), "topic": "t", "batch.size": "0"}
    task = started_source(FileStreamSourceConnector, config, Offsets())
    found = [records.values.pylist() for records in iter(task.poll, None)]
    assert found == [["one"], ["two"]]
    task.stop()


def test_standard_input_is_read_as_it_comes_and_waits_for_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as given, os.fdopen(writing, "wb", buffering=0) as typed:
        monkeypatch.setattr(sys, "stdin", given)
        task = started_source(FileStreamSourceConnector, {"topic": "t"}, Offsets())
        assert task.poll() is None  # a read would not return
        typed.write(b"one\ntwo\nth")
        first = task.poll()
        assert first is not None and first.values.pylist() == ["one", "two"]
        assert task.poll() is None
        typed.write(b"ree\n")
        second = task.poll()
        assert second is not None and second.values.pylist() == ["three"]
        task.stop()


def test_a_file_is_read_once_over_restarts(tmp_path: Path) -> None:
    path, offsets, found = tmp_path / "in.txt", Offsets(), []
    config = {"file": str(path), "topic": "t", "batch.size": "2"}
    written = []
    for round_ in range(5):
        task = started_source(FileStreamSourceConnector, config, offsets)
        with path.open("ab") as file:
            for number in range(3):
                written.append(f"zeile {round_} {number} ü€😀")
                file.write(f"{written[-1]}\nhalf".encode() if number == 2 else f"{written[-1]}\n".encode())
        while (records := task.poll()) is not None:
            assert len(records) <= 2
            found += records.values.pylist()
            offsets.store(records)
        written.append("half") if round_ < 4 else None
        with path.open("ab") as file:
            file.write(b"\n")
        task.stop()
    assert found == written
    [offset] = offsets.values()
    assert offset["bytes"] > offset["position"]


def test_ascii_offsets_are_those_of_apache(tmp_path: Path) -> None:
    path, offsets = tmp_path / "in.txt", Offsets()
    path.write_text("one\ntwo\n")
    task = started_source(FileStreamSourceConnector, {"file": str(path), "topic": "t"}, offsets)
    records = task.poll()
    assert records is not None and records.positions == [({"filename": str(path)}, {"position": 8})]
    task.stop()


def test_offsets_that_make_no_sense_are_refused() -> None:
    connector = FileStreamSourceConnector()
    for offset in ({}, {"position": "x"}, {"position": -1}, {"position": True}):
        with pytest.raises(ConnectError, match="position"):
            connector.alter_offsets({"file": "f"}, [({"filename": "f"}, offset)])
    with pytest.raises(ConnectError, match="filename"):
        connector.alter_offsets({"file": "f"}, [({"name": "f"}, {"position": 1})])
    assert connector.alter_offsets({"file": "f"}, [({"filename": "f"}, None)])


def test_the_sink_writes_what_java_would(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    task = started_sink(FileStreamSinkConnector, {"file": str(path)})
    schema = struct(a=INT64, b=OPTIONAL_STRING, c=FLOAT64)
    task.put(Records.of("t", Column.of([{"a": 1, "b": None, "c": 8.64e7}, None], schema)))
    task.put(Records.of("t", Column.of([{"a": 1, "b": [True, 0.0]}, "text"], None)))
    task.flush({})
    assert path.read_text() == "Struct{a=1,c=8.64E7}\nnull\n{a=1, b=[true, 0.0]}\ntext\n"
    task.stop()
