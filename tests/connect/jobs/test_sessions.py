"""Sessions that cannot start: told, nothing left behind, and the next one starts."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

SCRIPT = textwrap.dedent(
    """
    import os, subprocess
    from barnabas.connect.jobs.sessions import WorkerSessions
    from barnabas.connect.plugins import RetriableError

    def java():
        found = subprocess.run(["pgrep", "-P", str(os.getpid()), "java"], capture_output=True, text=True)
        return len(found.stdout.split())

    shared = {"spark.master": "local[1]", "spark.ui.enabled": "false"}
    sessions = WorkerSessions({**shared, "spark.executor.memory": "1m"})
    for _ in range(2):
        try:
            sessions.open({})
        except RetriableError as error:
            print("told:", error)
        print("left:", java())
    sessions = WorkerSessions(shared)
    print("rows:", sessions.open({}).range(3).count())
    sessions.close()
    """
)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_session_that_cannot_start_is_told_and_leaves_no_java_behind() -> None:
    """Spark refuses the memory while its Java process runs; a master that is away ends in the same way."""
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=240, env=dict(os.environ)
    )
    lines = [line for line in found.stdout.splitlines() if line.startswith(("told:", "left:", "rows:"))]
    assert [line[:5] for line in lines] == ["told:", "left:", "told:", "left:", "rows:"], found.stderr[-3000:]
    assert "Spark does not start at local[1]" in lines[0] and "memory" in lines[0]
    assert (lines[1], lines[3], lines[4]) == ("left: 0", "left: 0", "rows: 3")
