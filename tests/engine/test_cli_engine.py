"""barnabas engine: what people see of applications and queries."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="needs the extra `http`")

from barnabas.cli.main import main
from barnabas.engine.catalogue.catalogue import Catalogue, application_file
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.catalogue.statuses import ApplicationStatus, QueryState
from barnabas.engine.places.place import FolderPlace
from barnabas.engine.upgrades import QueryPlan, continue_plans

Engine = Callable[..., str]


@pytest.fixture
def engine(capsys: pytest.CaptureFixture[str]) -> Engine:
    """Runs the tool; its output, with errors if `status` says that it fails."""

    def run(*arguments: str, status: int = 0) -> str:
        assert main(["engine", *arguments], "barnabas") == status
        said = capsys.readouterr()
        return said.out if status == 0 else said.out + said.err

    return run


@pytest.fixture
def place(tmp_path: Path) -> FolderPlace:
    """A place with an application that runs on this host."""
    import socket

    found = FolderPlace(tmp_path)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "streaming.log").write_text("one\ntwo\nthree\n")
    now = time.time()
    programs = {"streaming": {"state": "running", "detail": "", "pid": 5, "restarts": 3}}
    status = ApplicationStatus("shop", "pipeline", "running", socket.gethostname(), 4, now, now, 2)
    status.logs, status.programs = str(logs), programs
    found.write(application_file("shop"), status.data())
    reporter = Reporter(found, "shop", "streaming")
    reporter.set_state("source/orders", QueryState.RUNNING)
    reporter.progress("source/orders", batch=7, rows_in=50, rows_out=40, lag=9, offsets={"orders": {"0": 50}})
    reporter.failed("view/revenue", "the store is away", state=QueryState.WAITING)
    reporter.flush()
    return found


def test_list_and_describe_show_every_query(place: FolderPlace, engine: Engine) -> None:
    lines = engine("list", "--place", place.root).splitlines()
    assert lines[0].split()[:4] == ["APPLICATION", "PROGRAM", "QUERY", "STATE"]
    assert lines[1].split()[:9] == [
        "shop",
        "streaming",
        "source/orders",
        "running",
        "7",
        "50",
        "40",
        "9",
        "3",
    ]
    assert "the store is away" in lines[2]
    rows = [json.loads(line) for line in engine("list", "--json", "--place", place.root).splitlines()]
    assert [row["query"] for row in rows] == ["source/orders", "view/revenue"]
    assert rows[0]["restarts"] == 3 and rows[0]["application_state"] == "running"
    text = engine("describe", "shop", "--place", place.root)
    assert "Epoch: 2" in text and 'Offsets: {"orders": {"0": 50}}' in text
    assert "Last error: the store is away" in text


def test_logs_stop_and_errors_name_what_is_there(place: FolderPlace, engine: Engine) -> None:
    assert engine("logs", "shop", "streaming", "--lines", "2", "--place", place.root) == "two\nthree\n"
    assert "has no program nothing" in engine("logs", "shop", "nothing", "--place", place.root, status=1)
    assert "there are shop" in engine("describe", "shoe", "--place", place.root, status=1)
    assert "still finishes" in engine("stop", "shop", "--wait", "0", "--place", place.root, status=1)
    assert Catalogue(place).is_stop_wanted("shop")
    assert "stop it first" in engine("forget", "shop", "--place", place.root, status=1)


def test_the_state_of_a_query_is_reset_after_a_question(place: FolderPlace, engine: Engine) -> None:
    continue_plans(place, "sums", [QueryPlan("totals", {"keys": []})])
    text = engine("reset", "sums", "totals", "--place", place.root, "--yes")
    assert "1 files deleted" in text
    assert "barnabas_engine_query_lag_rows" in engine("metrics", "--place", place.root)
