"""The JSON Schema of the file: editors accept what a run accepts, and mark what it refuses."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic", reason="needs the extra `pipeline`")
pytest.importorskip("jsonschema", reason="needs the extra `schemas`")

import jsonschema
import yaml

from barnabas.cli.main import main
from barnabas.pipeline.file.reading import FileProblems, read_text
from barnabas.pipeline.file.shape import PipelineShape, json_schema
from barnabas.pipeline.file.template import TEMPLATE
from barnabas.pipeline.file.writing import document
from pipeline.test_file_reading import GOOD

SHOP = (Path(__file__).parents[2] / "examples" / "shop" / "pipeline.yaml").read_text()
JUDGE = jsonschema.Draft202012Validator(json_schema())


def accepts(values: Any) -> bool:
    return bool(JUDGE.is_valid(values))


@pytest.mark.parametrize("text", [GOOD, TEMPLATE, SHOP], ids=["good", "template", "shop"])
def test_files_that_run_are_accepted_by_editors(text: str) -> None:
    assert [each.message for each in JUDGE.iter_errors(yaml.safe_load(text))] == []
    assert accepts(document(read_text(text)))


def test_the_command_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "schema"], "barnabas") == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(found)
    assert found == json_schema()
    # Each name of each section has a text that an editor shows.
    sections = [found, *found["$defs"].values()]
    names = {name: each for section in sections for name, each in section.get("properties", {}).items()}
    assert {"bootstrap.servers", "from", "snapshot_below", "connections"} <= set(names)
    assert [name for name, each in names.items() if not each.get("description")] == []


def paths(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from paths(value, (*path, key))


def test_names_and_kinds_that_editors_refuse_are_refused_by_the_reader() -> None:
    """A misspelt name, or a value of another kind, anywhere in the file."""
    base, chance, refused = yaml.safe_load(GOOD), random.Random(7), 0
    for path in chance.sample(list(paths(base)), 60):
        for change in ("name", "value"):
            values = copy.deepcopy(base)
            place = values
            for key in path[:-1]:
                place = place[key]
            if change == "name" and isinstance(place, dict):
                place[f"{path[-1]}_"] = place.pop(path[-1])
            else:
                place[path[-1]] = chance.choice([[["a"]], {"a": {"b": 1}}])
            if accepts(values):
                continue
            refused += 1
            with pytest.raises(FileProblems) as caught:
                read_text(yaml.safe_dump(values, sort_keys=False))
            top = str(path[0])
            found = [each for each in caught.value.problems if each.path.startswith(top) or top == "name"]
            assert found and all(each.line for each in caught.value.problems), (path, change)
    assert refused > 50


def test_one_problem_does_not_hide_another() -> None:
    """Each value that cannot be read is reported, wherever it is, and none twice."""
    with pytest.raises(FileProblems) as caught:
        read_text(
            "name: [a]\nlake: b\nsources:\n"
            "  x: {topic: {bootstrap.servers: {a: 1}, subscribe: y}, lateness: soon, schema: {dl: a}}\n"
            "  y: {table: {url: 'jdbc:sqlite:x', connections: 0, tabel: a}}\n"
            "trusted: {x: {rules: [{not_nul: a}, 5, {range: 7}], mask: {a: [1], b: last4}}}\n"
            "lineage: {url: 'ftp://x', token: hunter2}\n"
        )
    found = [f"{each.line} {each.path}: {each.message}" for each in caught.value.problems]
    assert len(found) == len(set(found)) and "hunter2" not in str(caught.value)
    assert set(found) >= {
        "1 name: must be a single value, this is a list",
        "4 sources.x.topic.bootstrap.servers: must be a single value, this is names with values",
        "4 sources.x.schema: has no schema",
        "5 sources.y.table.connections: is 0, it must be from 1 to 128",
        "5 sources.y.table.table: is missing",
        "5 sources.y.table.tabel: is unknown here",
        "6 trusted.x.rules[0]: is not a rule",
        "6 trusted.x.rules[1]: must hold names with values, this is a single value",
        "6 trusted.x.rules[2]: range cannot be understood",
        "6 trusted.x.mask.a: must be a single value, this is a list",
        "7 lineage.url: is 'ftp'",
        "7 lineage.token: holds a secret",
    }
    assert "did you mean table?" in str(caught.value)


def test_every_section_of_the_shape_is_read_into_the_pipeline() -> None:
    """A name of the shape that the reader forgets would be accepted, and do nothing."""
    text = (
        GOOD
        + "lineage: {url: 'http://localhost:5000', token: '${env:KEY}', timeout: 2 seconds}\naudit: true\n"
    )
    again = document(read_text(text))
    assert set(again) == set(PipelineShape.model_fields)
    assert again["lineage"] == {
        "url": "http://localhost:5000",
        "endpoint": "api/v1/lineage",
        "token": "${env:KEY}",
        "timeout": "2 seconds",
    }
