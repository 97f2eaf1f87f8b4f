"""Settings, topologies by name, and upgrades that keep or refuse the state."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.streams.spark.test_internal_topics import word_count

from barnabas.plans.interpreter.records import log_and_continue
from barnabas.plans.plan import Plan
from barnabas.plans.stores import StoreKind
from barnabas.spark.basics.settings import OptionError
from barnabas.streams.run.settings import streams_settings
from barnabas.streams.run.topologies import TopologyError, judge, load_plan, query_plan


def test_a_topology_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "from barnabas.plans.plan import Plan\n"
        "def topology(application):\n    return Plan((), application_id=application)\n"
        "fixed = Plan((), application_id='other')\n"
    )
    (tmp_path / "found_topology.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert load_plan("found_topology:topology", "shop") == Plan((), application_id="shop")
    with pytest.raises(TopologyError, match="built for the application 'other', not for 'shop'"):
        load_plan("found_topology:fixed", "shop")
    with pytest.raises(TopologyError, match="has no missing"):
        load_plan("found_topology:missing", "shop")
    with pytest.raises(TopologyError, match="give module:attribute"):
        load_plan("found_topology", "shop")


def test_a_store_that_changes_its_kind_is_refused_and_a_new_one_is_not() -> None:
    old, new = query_plan(word_count()).plan, query_plan(word_count(kind=StoreKind.WINDOW)).plan
    assert judge(old, new) == "store counts: kind was timestamped key value, is window"
    assert judge({"stores": {}}, old) == ""
    assert judge(old, {"stores": {}}) == ""
    assert replace(word_count(), application_id="b").application_id == "b"


def test_settings_have_kafkas_names() -> None:
    given = {
        "processing.guarantee": "exactly_once_v2",
        "state.dir": "/data",
        "default.deserialization.exception.handler": "org.apache.kafka.LogAndContinueExceptionHandler",
        "spark.master": "local[1]",
    }
    found = streams_settings("shop", "localhost:9092", given)
    assert found.tasks.is_exactly_once and found.tasks.client.is_read_committed
    assert (found.master, found.tasks.state_dir) == ("local[1]", "/data")
    assert found.handlers.deserialization is log_and_continue
    for name, value in (
        ("processing.guarantee", "once"),
        ("auto.offset.reset", "x"),
        ("processing.exception.handler", "y"),
    ):
        with pytest.raises(OptionError, match=name):
            streams_settings("shop", "localhost:9092", {name: value})
