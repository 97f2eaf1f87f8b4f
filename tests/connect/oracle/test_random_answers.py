"""Converters and transforms answer random questions as Apache's classes do.

The short lane replays recorded answers; `--long` asks Apache's classes anew, with other seeds. With
BARNABAS_RECORD=1 the recording is written anew.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.plugins import Kind, Plugins
from connect.oracle.questions import Questions
from connect.transforms.test_as_apache import answers as transformed
from connect.transforms.test_as_apache import comparable
from connect.worker_processes import apache_jars

HERE = Path(__file__).parent
RECORDED = HERE / "answers.json.gz"
SEED, COUNT = 1, 500
QUIET = "-Dorg.apache.logging.log4j.level=OFF"  # standard output is for answers
MORE_SEEDS, MORE_COUNT = (2, 3), 4000
PLUGINS = Plugins()


def asked(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers of Apache's classes."""
    path = ":".join(map(str, apache_jars().glob("*.jar")))
    command = [
        "java",
        "-Xmx400m",
        "-XX:TieredStopAtLevel=1",
        QUIET,
        "-cp",
        path,
        str(HERE / "ConnectOracle.java"),
    ]
    text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in questions)
    found = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True, timeout=300)
    return [json.loads(line) for line in found.stdout.decode().splitlines()]


def ours(question: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"header": of_header, "transform": of_transform}.get(question["op"], of_converter)(question)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def of_converter(question: dict[str, Any]) -> dict[str, Any]:
    reader, writer = (PLUGINS.load(question[each], Kind.CONVERTER)() for each in ("reader", "writer"))
    for each in (reader, writer):
        each.configure(question["settings"], False)
    read = reader.from_bytes("t", pa.array([question["data"].encode()], pa.binary()))
    for error in read.failures.values():
        raise error
    written = writer.to_bytes("t", read.parts[0].column)
    for error in written.failures.values():
        raise error
    [data] = written.data.to_pylist()
    return {"written": None if data is None else data.decode()}


def of_header(question: dict[str, Any]) -> dict[str, Any]:
    converter = PLUGINS.load(
        "org.apache.kafka.connect.storage.SimpleHeaderConverter", Kind.HEADER_CONVERTER
    )()
    converter.configure({})
    value, schema = converter.from_header("t", "h", question["data"].encode())
    written = converter.to_header("t", "h", value, schema)
    kind = None if schema is None else schema.type.name
    name = None if schema is None else schema.name
    return {"type": kind, "name": name, "written": None if written is None else written.decode()}


def of_transform(question: dict[str, Any]) -> dict[str, Any]:
    data = json.loads(question["data"])
    case = {
        "type": question["type"],
        "config": question["settings"],
        "schemas": question["schemas"],
        "schema": data["schema"] if question["schemas"] else None,
        "values": [data["payload"] if question["schemas"] else data],
    }
    return transformed(case)[0]


def alike(question: dict[str, Any], own: dict[str, Any], other: dict[str, Any]) -> bool:
    if question["op"] == "transform":
        return bool(comparable(own) == comparable(other))
    if "error" in other or "error" in own:
        return "error" in other and "error" in own
    if own == other or (question["op"] == "header" and own["type"] is None):
        return bool(own["written"] == other["written"])
    if question.get("writer", "").endswith("JsonConverter"):
        return bool(json.loads(own["written"]) == json.loads(other["written"]))
    return False


def wrong_answers(questions: list[dict[str, Any]], answers: list[dict[str, Any]]) -> list[Any]:
    assert len(questions) == len(answers)
    pairs = ((each, ours(each), answer) for each, answer in zip(questions, answers, strict=True))
    return [[each, own, answer] for each, own, answer in pairs if not alike(each, own, answer)]


def shown(wrong: list[Any]) -> str:
    return f"{len(wrong)} differ:\n" + "\n".join(json.dumps(each, ensure_ascii=False) for each in wrong[:12])


def test_random_questions_are_answered_as_recorded() -> None:
    answers = json.loads(gzip.decompress(RECORDED.read_bytes()))
    wrong = wrong_answers(Questions(SEED).all(COUNT), answers)
    assert not wrong, shown(wrong)


@pytest.mark.long
def test_apaches_classes_answer_other_questions_alike() -> None:
    if os.environ.get("BARNABAS_RECORD") == "1":
        found = asked(Questions(SEED).all(COUNT))
        RECORDED.write_bytes(gzip.compress(json.dumps(found, ensure_ascii=False).encode(), mtime=0))
    for seed in MORE_SEEDS:
        questions = Questions(seed).all(MORE_COUNT)
        wrong = wrong_answers(questions, asked(questions))
        assert not wrong, shown(wrong)
