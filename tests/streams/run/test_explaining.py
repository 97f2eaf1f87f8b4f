"""A topology on the command line: text with the road of each step, a graph, Kafka Streams' description."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.main import main

TOPOLOGY = """
from barnabas.streams import StreamsBuilder

def topology(application_id):
    builder = StreamsBuilder(application_id)
    builder.stream("in").to("out")
    return builder
"""


def test_explain_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "explained.py").write_text(TOPOLOGY)
    for form, first in (("text", b"Topologies:"), ("dot", b"digraph"), ("kafka", b"Topologies:")):
        command = ["streams", "explain", "explained:topology", "--application-id", "words", "--as", form]
        assert main(command) in (0, None)
        assert capfdbinary.readouterr().out.startswith(first)
