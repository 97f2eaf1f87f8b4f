"""The controller's decisions, command by command, in transcripts that a person can check."""

from pathlib import Path

import pytest

from controller.cluster import Cluster
from replication.transcript import replay

TRANSCRIPTS = Path(__file__).with_name("transcripts")


@pytest.mark.parametrize("name", sorted(path.stem for path in TRANSCRIPTS.glob("*.txt")))
def test_decisions_are_as_written_down(name: str) -> None:
    replay(TRANSCRIPTS / f"{name}.txt", Cluster().do)
