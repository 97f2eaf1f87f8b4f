"""The pieces of files that documents show are read without a problem, and their options exist."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("yaml", reason="needs the extra `pipeline`")
pytest.importorskip("pyspark", reason="needs the extra `pipeline`")

import jsonschema
import yaml

from barnabas.engine.secrets import reference
from barnabas.pipeline.file.reading import read_pipeline
from barnabas.pipeline.file.shape import json_schema
from barnabas.pipeline.refined.zone import DEFAULT_SCHEDULE
from barnabas.pipeline.spec.model import TopicSource
from barnabas.spark.basics.settings import client_settings

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "pipelines.md"
EDITOR = jsonschema.Draft202012Validator(json_schema())
SHOP = ROOT / "examples" / "shop" / "pipeline.yaml"


def blocks() -> list[str]:
    pieces = DOCUMENT.read_text().split("```")
    found = [piece.removeprefix("yaml\n") for piece in pieces[1::2] if piece.startswith("yaml\n")]
    assert len(found) >= 8
    return ["\n".join(line for line in block.splitlines() if line.strip() != "…") for block in found]


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.strip().partition("\n")[0][:40])
def test_a_piece_of_a_file_in_the_document_is_read_as_part_of_the_example(block: str, tmp_path: Path) -> None:
    shown: dict[str, Any] = yaml.safe_load(block)
    whole = copy.deepcopy(yaml.safe_load(SHOP.read_text()))
    if "topic" in shown:  # a source without its name
        shown = {"sources": {"payments": {**whole["sources"]["payments"], **shown}}}
    for section, values in shown.items():
        if not isinstance(values, dict):
            whole[section] = values
            continue
        for name, value in values.items():
            there = whole.setdefault(section, {}).get(name)
            is_part = isinstance(there, dict) and isinstance(value, dict)
            whole[section][name] = {**there, **value} if is_part else value
    assert [each.message for each in EDITOR.iter_errors(whole)] == []
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(whole, sort_keys=False))
    pipeline = read_pipeline(file)
    for source in pipeline.sources:
        if isinstance(source, TopicSource):
            options = {name.lower(): reference(value) for name, value in source.settings.items()}
            client_settings({"kafka.bootstrap.servers": "localhost:9092", **options})


def test_the_document_names_the_default_schedule_of_refined_tables() -> None:
    assert DEFAULT_SCHEDULE == "*/5 * * * *"
    assert "by default every 5 minutes" in DOCUMENT.read_text()
