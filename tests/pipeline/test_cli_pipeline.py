"""The commands that need no Spark, typed as a person would."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("yaml", reason="needs the extra `pipeline`")
pytest.importorskip("duckdb", reason="needs the extra `pipeline`")

from barnabas.cli.main import main
from barnabas.engine.lock import SUPERVISES, LakeLock
from barnabas.engine.timeline import Entry, Kind, State, Timeline
from barnabas.pipeline.demo.shop_file import TEXT
from barnabas.pipeline.file import plan
from barnabas.pipeline.file.reading import read_pipeline

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "shop" / "pipeline.yaml"


class Ran(NamedTuple):
    status: int
    output: str
    errors: str


Run = Callable[..., Ran]


@pytest.fixture
def run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """`run("plan")` in a folder with the shop's file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipeline.yaml").write_text(TEXT)

    def ran(*arguments: str, typed: str = "") -> Ran:
        capsys.readouterr()
        with (tmp_path / "typed").open("w+") as stdin:
            stdin.write(typed)
            stdin.seek(0)
            monkeypatch.setattr("sys.stdin", stdin)
            status = main(["pipeline", *arguments], "barnabas")
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return ran


def test_the_example_is_the_demo() -> None:
    assert EXAMPLE.read_text() == TEXT


def test_the_file_that_init_writes_is_valid(run: Run, tmp_path: Path) -> None:
    assert run("init", "new.yaml").status == 0
    assert run("validate", "new.yaml").output == "new.yaml: no problems: 1 source, 2 tables, 1 view\n"
    assert "exists already: --force replaces it" in run("init", "new.yaml").errors
    assert run("init", "new.yaml", "--force").status == 0


def test_validate_lists_all_problems(run: Run, tmp_path: Path) -> None:
    wrong = TEXT.replace("format: json", "format: jsn", 1).replace("from: payments", "from: paymnts", 1)
    (tmp_path / "pipeline.yaml").write_text(wrong)
    ran = run("validate")
    assert ran.status == 1
    assert "2 problems" in ran.errors
    assert "sources.payments.format" in ran.errors
    assert "trusted.payments.from" in ran.errors
    for command in ("plan", "run", "status", "report"):
        assert "2 problems" in run(command).errors


def test_a_missing_file_is_reported_in_one_line(run: Run, tmp_path: Path) -> None:
    ran = run("plan", "absent.yaml")
    assert (ran.status, ran.errors.count("\n")) == (1, 1)
    assert "absent.yaml does not exist: `barnabas pipeline init` writes one" in ran.errors


def test_plan_shows_what_a_run_would_change(run: Run, tmp_path: Path) -> None:
    assert "+ view fraud_alerts" in run("plan").output
    plan.apply(read_pipeline(tmp_path / "pipeline.yaml"), tmp_path / "lake" / "_barnabas")
    assert "Nothing to do" in run("plan").output
    (tmp_path / "pipeline.yaml").write_text(TEXT.replace("amount > 300", "amount > 500"))
    output = run("plan").output
    assert "~ refined suspicious" in output
    assert "! the next run recomputes it" in output


def test_a_lake_of_another_pipeline_is_refused(run: Run, tmp_path: Path) -> None:
    plan.apply(read_pipeline(tmp_path / "pipeline.yaml"), tmp_path / "lake" / "_barnabas")
    (tmp_path / "pipeline.yaml").write_text(TEXT.replace("name: shop", "name: other"))
    for command in (["plan"], ["run", "--once"], ["run"]):
        ran = run(*command)
        assert ran.status == 1
        assert "belongs to the pipeline 'shop', not to 'other'" in ran.errors


def test_a_second_run_is_refused_with_the_first_ones_pid(run: Run, tmp_path: Path) -> None:
    with LakeLock(tmp_path / "lake" / "_barnabas", "run pipeline.yaml"):
        for command in (["run"], ["run", "--once"], ["destroy", "--yes"]):
            assert "another run has this lake: pid" in run(*command).errors


def test_a_used_metrics_port_is_reported_in_one_line(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = run("run", "--metrics-port", str(taken.getsockname()[1]))
    assert ran.status == 1
    assert "metrics cannot be served on 127.0.0.1:" in ran.errors


def test_status_prints_lines_and_json(run: Run, tmp_path: Path) -> None:
    timeline = Timeline(tmp_path / "lake" / "_barnabas")
    timeline.record(Entry(Kind.SOURCE, "orders", "1", 10.0, 12.0, 100, 90, 4, 6))
    timeline.set_state(Kind.SOURCE, "orders", State.WAITING, "the broker is away")
    assert "waiting orders: the broker is away" in run("status").output
    [line] = run("status", "--json").output.splitlines()
    assert json.loads(line)["rows_out"] == 90


def test_lineage_goes_from_columns_of_views_to_columns_of_sources(run: Run, tmp_path: Path) -> None:
    ran = run("lineage")
    assert "view.fraud_alerts <- refined.suspicious" in ran.output
    assert "amount <- refined.suspicious.amount (aggregation)" in ran.output
    assert (tmp_path / "lineage.html").read_text().startswith("<!doctype html>")
    assert run("lineage", "--output", "picture.svg").status == 0
    assert (tmp_path / "picture.svg").read_text().startswith("<svg xmlns=")
    assert run("lineage", "--column", "view.fraud_alerts.largest").output == "source.payments.amount\n"
    assert (
        "there is no view.fraud_alerts.nothing"
        in run("lineage", "--column", "view.fraud_alerts.nothing").errors
    )
    events = [json.loads(line) for line in run("lineage", "--events").output.splitlines()]
    assert {event["job"]["name"] for event in events} >= {"shop.raw.orders", "shop.view.revenue"}


def test_a_report_can_be_written_before_anything_ran(run: Run, tmp_path: Path) -> None:
    ran = run("report", "--output", "page.html")
    assert (ran.status, ran.output) == (0, "page.html: written\n")
    assert "nothing came yet" in (tmp_path / "page.html").read_text()


def test_queries_before_anything_was_computed(run: Run, tmp_path: Path) -> None:
    assert "no view was computed yet" in run("query").errors
    ran = run("query", "revenue")
    assert ran.status == 1
    assert "revenue" in ran.errors
    assert "not both" in run("query", "revenue", "--sql", "SELECT 1").errors
    assert "requires an argument" not in run("query", "revenue", "--order", "-revenue").errors


def test_a_query_does_not_open_the_store_of_a_run(run: Run, tmp_path: Path) -> None:
    with LakeLock(tmp_path / "lake" / "_barnabas", f"{SUPERVISES}pipeline.yaml"):
        assert "the serving process is starting" in run("query", "revenue").errors
    assert not (tmp_path / "lake" / "_barnabas" / "serving.duckdb").exists()


def test_destroy_asks_first(run: Run, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    (lake / "_barnabas").mkdir(parents=True)
    ran = run("destroy", typed="no\n")
    assert (ran.status, lake.exists()) == (1, True)
    assert "Type the pipeline's name (shop) to go on" in ran.output
    assert run("destroy", typed="shop\n").status == 0
    assert not lake.exists()
    assert "nothing to delete" in run("destroy", "--yes").output


def test_destroy_refuses_a_folder_that_is_not_a_lake(run: Run, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "precious").touch()
    assert "is not the lake of a pipeline" in run("destroy", "--yes").errors
    assert (tmp_path / "lake" / "precious").exists()


def test_names_and_times_are_checked_before_spark_starts(run: Run) -> None:
    there = "there are payments, page_views, orders, customers"
    assert there in run("replay", "ordrs").errors
    ran = run("backfill", "orders", "--from", "yesterday", "--to", "2026-01-01")
    assert "--from yesterday: write a time as" in ran.errors
    ran = run("backfill", "orders", "--from", "2026-01-02", "--to", "2026-01-01")
    assert "is not before" in ran.errors
    assert "there is no table odrs: there are" in run("release", "odrs").errors


@pytest.mark.parametrize("command", ["frobnicate", ""])
def test_unknown_commands_are_refused(command: str, run: Run) -> None:
    ran = run(*([command] if command else []))
    assert ran.status == 1
    assert "init" in ran.errors
