"""A pipeline is an application of the engine: seen and stopped from any host."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra `pipeline`")
pytest.importorskip("duckdb", reason="needs the extra `pipeline`")

from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.pipeline import Pipeline, Serving
from barnabas.pipeline.run.start import programs_of, supervise
from barnabas.pipeline.spec.lake_lock import state_place
from barnabas.testing.waiting import wait_until


def test_a_running_pipeline_is_stopped_through_the_catalogue(tmp_path: Path) -> None:
    """Without sources there is no Spark to start: serving runs alone."""
    pipeline = Pipeline(name="empty", lake=str(tmp_path / "lake"), serving=Serving(port=0))
    run = threading.Thread(target=supervise, args=(pipeline,))
    catalogue = Catalogue(state_place(pipeline))

    def state() -> tuple[str, str]:
        entry = catalogue.application("empty")
        if entry is None:
            return "", ""
        return entry.status.state, str(entry.status.programs.get("serving", {}).get("state"))

    run.start()
    try:
        wait_until(lambda: state() == ("running", "running"), 60)
    finally:
        catalogue.request_stop("empty", "somebody")
        run.join()
    assert state() == ("stopped", "stopped")


def test_a_program_shows_no_token(tmp_path: Path) -> None:
    pipeline = Pipeline(name="empty", lake=str(tmp_path / "lake"))
    [serving] = programs_of(pipeline, tmp_path / "pipeline.yaml")
    assert serving.environment["BARNABAS_SERVING_TOKEN"] not in repr(serving)
