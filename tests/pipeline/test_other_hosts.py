"""Two hosts with a lake behind a URL: each knows the runs of the other one."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("yaml", reason="needs the extra `pipeline`")
pytest.importorskip("duckdb", reason="needs the extra `pipeline`")

from barnabas.cli.main import main
from barnabas.engine.catalogue.catalogue import application_file
from barnabas.engine.catalogue.statuses import ApplicationStatus
from barnabas.engine.schedule import Job, Schedule
from barnabas.engine.timeline import Entry, Kind, State, Timeline
from barnabas.pipeline.file.reading import read_pipeline
from barnabas.pipeline.observe.other_hosts import runner_elsewhere
from barnabas.pipeline.run.start import copied_run, due_at_once
from barnabas.pipeline.spec.lake_lock import lake_lock, state_place
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.state_folder import logs_folder, state_folder

FILE = """
name: shared
lake: file://{lake}
sources:
  events:
    topic: {{bootstrap.servers: "localhost:9092", subscribe: events}}
    format: json
    schema: "id BIGINT, shop STRING"
    frequency: {{batch: "0 3 * * *"}}
staging:
  events: {{source: events}}
trusted:
  events: {{from: events}}
views:
  shops:
    from: trusted.events
    sql: SELECT shop, count(*) AS events FROM events GROUP BY shop
    keys: [shop]
    measures: {{events: count}}
    batch: "0 4 * * *"
"""
NIGHTLY = Job(Kind.SOURCE, "events", "0 3 * * *")


def host(tmp_path: Path, name: str) -> Pipeline:
    file = tmp_path / name / "pipeline.yaml"
    file.parent.mkdir()
    file.write_text(FILE.format(lake=tmp_path / "lake"))
    return read_pipeline(file)


def test_status_shows_the_runs_of_another_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = host(tmp_path, "one"), host(tmp_path, "two")
    ran = datetime(2026, 11, 19, 3, 0, tzinfo=UTC)
    with lake_lock(one, "run of it"), copied_run(one) as took_over:
        assert not took_over
        timeline = Timeline(state_folder(one))
        timeline.record(Entry(Kind.SOURCE, "events", "1", 1.0, 2.0, rows_in=1234))
        timeline.set_state(Kind.SOURCE, "events", State.WAITING, "the broker is away")
        Schedule(state_folder(one), [NIGHTLY]).done(NIGHTLY, ran)
        now = time.time()
        status = ApplicationStatus("shared", host="elsewhere", pid=7, started=now, updated=now)
        state_place(one).write(application_file("shared"), status.data())
        assert runner_elsewhere(one) == ""  # this host has it
    capsys.readouterr()
    assert two.file is not None
    assert main(["pipeline", "status", "--json", str(two.file)], "barnabas") == 0
    [line] = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert (line["name"], line["state"], line["detail"]) == ("events", "waiting", "the broker is away")
    assert (line["runs"], line["rows_in"]) == (1, 1234)
    assert main(["pipeline", "status", str(two.file)], "barnabas") == 0
    assert "shared: run by pid 7 on elsewhere, since" in capsys.readouterr().out

    with lake_lock(two, "run of it"), copied_run(two) as took_over:
        assert took_over
        assert Schedule(state_folder(two), [NIGHTLY]).ran(NIGHTLY) == ran
        # The store of views is a file of the other host.
        assert due_at_once(two, [], took_over=True) == ["view batch/shops"]
        elsewhere = replace(two, serving=replace(two.serving, store=f"duckdb:{tmp_path / 'views.db'}"))
        assert due_at_once(elsewhere, [], took_over=True) == ["view batch/shops"]
    with lake_lock(two, "run of it"), copied_run(two) as took_over:
        assert not took_over
    assert due_at_once(two, []) == []


def test_a_run_of_this_machine_that_died_is_not_shown_as_one_elsewhere(tmp_path: Path) -> None:
    one = host(tmp_path, "one")
    now = time.time()
    place = state_place(one)
    status = ApplicationStatus("shared", host="here", started=now, updated=now, logs=str(logs_folder(one)))
    place.write(application_file("shared"), status.data())
    assert runner_elsewhere(one) == ""
    status.logs, status.updated = "/another", now - 3600
    place.write(application_file("shared"), status.data())
    assert runner_elsewhere(one) == ""  # it has not reported for long
