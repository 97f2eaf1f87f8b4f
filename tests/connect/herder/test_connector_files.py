"""Connector files of standalone workers: properties, a flat map of JSON, and the body of POST /connectors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.connect.herder.errors import Refused
from barnabas.connect.herder.standalone import connector_file
from barnabas.connect.herder.states import Target

GIVEN = {"name": "c", "connector.class": "FileStreamSource"}


def read(folder: Path, data: bytes) -> tuple[str, dict[str, str | None], Target | None]:
    path = folder / "connector"
    path.write_bytes(data)
    return connector_file(path)


def test_values_of_json_become_texts_as_by_rest(tmp_path: Path) -> None:
    given = {**GIVEN, "tasks.max": 2, "errors.log.enable": True, "ratio": 1.5, "topic": None}
    name, config, target = read(tmp_path, json.dumps(given).encode())
    expected = {**GIVEN, "tasks.max": "2", "errors.log.enable": "true", "ratio": "1.5", "topic": None}
    assert (name, config, target) == ("c", expected, None)


def test_a_body_of_post_has_a_state(tmp_path: Path) -> None:
    body = {"name": "c", "config": {"connector.class": "FileStreamSource"}, "initial_state": "PAUSED"}
    assert read(tmp_path, json.dumps(body).encode()) == ("c", GIVEN, Target.PAUSED)


@pytest.mark.parametrize("code", ["utf-8", "latin-1"])
def test_properties_are_read_as_editors_and_as_java_write_them(tmp_path: Path, code: str) -> None:
    text = "name=c\nconnector.class=FileStreamSource\ntopic=Aufträge\nother=\\u00e4\n"
    _, config, _ = read(tmp_path, text.encode(code))
    assert config == {**GIVEN, "topic": "Aufträge", "other": "ä"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file names no connector"),
        (b"[1]", "the file names no connector"),
        (b'{"name": "c", "config": {"a": [1]}}', r"a must be a text, a number or a boolean, not \[1\]"),
        (b'{"name": "c", "config": {}, "initial_state": "SLEEPING"}', "initial_state must be one of RUNNING"),
    ],
)
def test_a_file_that_is_no_connector_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(Refused, match=message):
        read(tmp_path, data)
