"""A batch that columns cannot take leaves the backend as it was; the interpreter takes it."""

from __future__ import annotations

import pytest
from tests.streams.columns.batches import part, plan

from barnabas.plans.interpreter.task import Task
from barnabas.plans.stores import MemoryBackend
from barnabas.streams import StreamsBuilder
from barnabas.streams.columns.logic import run_by_columns


def counted(builder: StreamsBuilder) -> None:
    builder.stream("in", value=str).group_by_key().count().to_stream().to("out")


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3"])
def test_a_value_that_is_no_text_is_left_to_the_interpreter(bad: bytes) -> None:
    backend = MemoryBackend()
    [subtopology] = plan(counted).subtopologies
    parts = [part("in", [(b"a", b"one", 1), (b"a", bad, 2)])]
    assert run_by_columns(lambda: Task(subtopology, backend, application_id="app"), parts) is None
    assert not backend.pages


def test_a_failure_while_state_is_written_fails_the_batch() -> None:
    class Full(MemoryBackend):
        def put_many(self, store: str, pages: object) -> None:
            raise OSError("no space left on device")

    [subtopology] = plan(counted).subtopologies
    parts = [part("in", [(b"a", b"one", 1)])]
    with pytest.raises(OSError, match="no space left"):
        run_by_columns(lambda: Task(subtopology, Full(), application_id="app"), parts)
