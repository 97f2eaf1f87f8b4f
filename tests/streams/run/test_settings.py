"""Settings of an application: names that are refused or have no effect, and those of internal topics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.streams.spark.local import LocalApplication

from barnabas.client.admin.configs import ConfigAdmin, ConfigResource, ResourceType
from barnabas.client.blocking import run
from barnabas.spark.basics.settings import OptionError
from barnabas.sql.errors import SqlError
from barnabas.sql.running.settings import EngineSettings
from barnabas.streams import StreamsBuilder
from barnabas.streams.run.names import EFFECTIVE, WITHOUT_EFFECT, check_names
from barnabas.streams.run.settings import OWN, streams_settings
from barnabas.streams.spark.internal_topics import Creation, internal_topics
from barnabas.streams.spark.queries_of_plan import create_internal_topics
from barnabas.testing.broker import Broker

PAGE = Path(__file__).parents[3] / "docs" / "streams-running.md"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


@pytest.mark.parametrize(
    "name, meant",
    [
        ("proccessing.guarantee", "processing.guarantee"),
        ("processing.guarantees", "processing.guarantee"),
        ("auto.offsets.reset", "auto.offset.reset"),
        ("State.dir", "state.dir"),
        ("replication.facter", "replication.factor"),
        ("securty.protocol", "security.protocol"),
        ("sparc.master", "spark.master"),
    ],
)
def test_a_name_that_is_almost_one_with_an_effect_is_refused(name: str, meant: str) -> None:
    with pytest.raises(OptionError, match=f"there is no setting {name}: did you mean {meant}"):
        check_names({name: "x"})


def test_names_without_effect_are_told() -> None:
    given = ["num.stream.threads", "commit.interval.ms", "my.own.setting", "state.dir", "spark.ui.enabled"]
    assert check_names(given) == [
        "the setting commit.interval.ms has no effect here: each batch is committed",
        "the setting my.own.setting is not known and has no effect",
        "the setting num.stream.threads has no effect here: cores of Spark (spark.master)",
    ]
    assert check_names([*EFFECTIVE, "topic.segment.ms", "sasl.mechanism", "http.listeners"]) == []


def test_every_setting_is_known_and_documented() -> None:
    assert OWN <= EFFECTIVE
    text = PAGE.read_text()
    assert [name for name in EFFECTIVE if name.removeprefix("default.") not in text] == []
    assert [name for name in WITHOUT_EFFECT if f"`{name}`" not in text] == []


def counted(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    words = builder.stream(f"{name}-in", value=str).select_key(lambda key, value: value, key=str)
    words.group_by_key().count(store="counts").to_stream().to(f"{name}-out", value=int)
    return builder


def test_settings_of_topics_reach_changelogs_and_repartition_topics(broker: Broker, tmp_path: Path) -> None:
    given = {"topic.segment.ms": "123456", "topic.cleanup.policy": "delete", "replication.factor": "1"}
    settings = streams_settings("own-topics", broker.bootstrap, given)
    with LocalApplication(broker, counted("own-topics").build(), tmp_path) as application:
        existing = {"own-topics-in": 2}
        names = create_internal_topics(application.plan, existing, application.cluster, settings.creation)
        assert len(names) == 2
        for name in names:
            resource = ConfigResource(ResourceType.TOPIC, name)
            described = run(ConfigAdmin(application.cluster).describe_configs([resource]))[resource]
            found = {entry.name: entry.value for entry in described}
            assert found["segment.ms"] == "123456"
            assert found["cleanup.policy"] == "delete"
            topic = run(application.cluster.topics([name]))[name]
            assert [len(each.replicas) for each in topic.partitions.values()] == [1, 1]


def test_too_many_replicas_are_the_brokers_error(broker: Broker, tmp_path: Path) -> None:
    settings = streams_settings("too-many", broker.bootstrap, {"replication.factor": "3"})
    with (
        LocalApplication(broker, counted("too-many").build(), tmp_path) as application,
        pytest.raises(Exception, match=r"(?i)replication"),
    ):
        create_internal_topics(application.plan, {"too-many-in": 1}, application.cluster, settings.creation)
    with pytest.raises(OptionError, match=r"replication\.factor is '0'"):
        streams_settings("too-many", broker.bootstrap, {"replication.factor": "0"})


def test_settings_of_a_store_come_last() -> None:
    plan = counted("order").build()
    found = internal_topics(plan, {"order-in": 1}, {"cleanup.policy": "delete"})
    assert {each.settings["cleanup.policy"] for each in found} == {"delete"}


def test_sql_has_ksqldbs_names() -> None:
    def creation(**given: str) -> Creation:
        properties = {name.replace("_", "."): value for name, value in given.items()}
        return EngineSettings.of({"bootstrap.servers": "localhost:9092", **properties}).creation({})

    assert creation() == Creation(-1)
    assert creation(ksql_internal_topic_replicas="1") == Creation(-1)
    assert creation(ksql_internal_topic_replicas="3") == Creation(3)
    assert creation(ksql_internal_topic_replicas="3", ksql_streams_replication_factor="2") == Creation(2)
    assert creation(ksql_streams_topic_segment_ms="7").configs == {"segment.ms": "7"}
    with pytest.raises(SqlError, match=r"replication\.factor is 'many'"):
        creation(ksql_streams_replication_factor="many")
