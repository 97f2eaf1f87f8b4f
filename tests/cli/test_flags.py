"""Every flag of Kafka's tools is known, and every tool is in the documentation."""

import argparse
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from barnabas.cli.frame.parsing import ToolParser
from barnabas.cli.tools import BY_KAFKA_NAME, HIDDEN, TOOLS

FLAGS: dict[str, list[str]] = json.loads((Path(__file__).parent / "kafka_flags.json").read_text())
ROOT = Path(__file__).parents[2]


def known(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from known(command)


@pytest.mark.parametrize("name", sorted(FLAGS))
def test_flags_of_kafkas_tools_are_known(name: str) -> None:
    parser = ToolParser(prog=name)
    parser.strict = True
    parser.add_argument("--version")
    import_module(f"barnabas.cli.{BY_KAFKA_NAME[name].module}").add_arguments(parser)
    assert set(FLAGS[name]) <= {*known(parser), *parser.old_spellings}


@pytest.mark.parametrize(
    "tool", [tool for tool in TOOLS if tool.name not in HIDDEN], ids=lambda tool: tool.name
)
def test_tools_are_documented(tool: object) -> None:
    page = (ROOT / "docs" / "tools.md").read_text()
    assert f"`{tool.name}`" in page  # type: ignore[attr-defined]
    assert tool.kafka_name is None or f"`{tool.kafka_name}`" in page  # type: ignore[attr-defined]
