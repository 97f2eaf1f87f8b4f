"""Sources and sinks in threads against a broker: nothing lost, nothing twice where that is promised."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.connect.tasks.runner import TaskRunner
from barnabas.testing.broker import Broker
from connect.records_of import values_of
from connect.tasks.parts import MODULE, States, runner, seen, until


def read(bootstrap: str, topic: str, count: int, isolation: str = "read_committed") -> list[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "check",
            "isolation.level": isolation,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Message] = []
        until(lambda: len(found_more(consumer, found)) >= count)
        return found
    finally:
        consumer.close()


def found_more(consumer: Consumer, found: list[Message]) -> list[Message]:
    message = consumer.poll(1.0)
    if message is not None and message.error() is None:
        found.append(message)
    return found


def write(bootstrap: str, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value.encode(), key=b"k", partition=0, headers=[("h", b"1")])
    assert producer.flush(30) == 0


@pytest.fixture
def tasks(barnabas_broker: Broker, tmp_path: Path) -> Iterator[TaskRunner]:
    made = runner(barnabas_broker.bootstrap, tmp_path, offset_storage_topic="tasks-offsets")
    yield made
    made.stop_all()


def source_config(topic: str, **more: str) -> dict[str, str]:
    return {"connector.class": f"{MODULE}:Count", "name": topic, "topic": topic, "limit": "100", **more}


def sink_config(topic: str, **more: str) -> dict[str, str]:
    return {"connector.class": f"{MODULE}:Recording", "name": topic, "topics": topic, **more}


def test_a_source_goes_on_where_its_offsets_say(
    tasks: TaskRunner, barnabas_broker: Broker, barnabas_topic: str
) -> None:
    states = States()
    tasks.start("goes-on", 0, source_config(barnabas_topic, limit="50"), "STARTED", states)
    until(
        lambda: (
            bool(tasks.progress())
            and tasks.progress()[0].commits > 0
            and tasks.progress()[0].records_out == 50
        )
    )
    tasks.stop("goes-on", 0)
    assert [state for state, _ in states.told] == ["RUNNING", "UNASSIGNED"]
    tasks.start("goes-on", 0, source_config(barnabas_topic, limit="120"), "STARTED", states)
    until(lambda: tasks.progress()[0].records_out == 70)
    tasks.stop("goes-on", 0)
    values = [int(each.value()) for each in read(barnabas_broker.bootstrap, barnabas_topic, 120)]
    assert values == list(range(120))
    last = read_all_partitions(barnabas_broker.bootstrap, "tasks-offsets", b'["goes-on",{"counter":"c"}]')
    assert json.loads(last) == {"n": 120}


def read_all_partitions(bootstrap: str, topic: str, key: bytes) -> bytes:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check"})
    try:
        partitions = consumer.list_topics(topic).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        found = b""
        ends = {each: consumer.get_watermark_offsets(TopicPartition(topic, each))[1] for each in partitions}
        left = {each for each, end in ends.items() if end}
        while left:
            message = consumer.poll(5.0)
            assert message is not None, "the offset topic ends early"
            if message.key() == key:
                found = message.value()
            if message.offset() + 1 >= ends[message.partition()]:
                left.discard(message.partition())
        return found
    finally:
        consumer.close()


def test_a_broker_that_is_away_is_seen_and_the_source_goes_on_when_it_is_back(tmp_path: Path) -> None:
    with Broker() as broker:
        tasks = runner(broker.bootstrap, tmp_path, offset_storage_topic="away-offsets")
        states = States()
        try:
            tasks.start("away", 0, source_config("away", limit="100000", step="1"), "STARTED", states)
            until(lambda: tasks.progress()[0].records_out > 0)
            broker.stop()
            until(lambda: tasks.progress()[0].last_error is not None)
            [progress] = tasks.progress()
            assert "cannot connect" in str(progress.last_error) and progress.retries > 0
            broker.start()
            before = progress.commits
            until(lambda: progress.commits > before)
            assert states.last == "RUNNING"
        finally:
            tasks.stop_all()


def test_a_transform_that_fails_stops_the_task_or_skips_the_record(
    tasks: TaskRunner, barnabas_broker: Broker, barnabas_topic: str
) -> None:
    chain = {"transforms": "up", "transforms.up.type": f"{MODULE}:Upper"}
    states = States()
    config = source_config(barnabas_topic, prefix="a", limit="10", **chain)
    tasks.start("upper", 0, config, "STARTED", states)
    values = [each.value().decode() for each in read(barnabas_broker.bootstrap, barnabas_topic, 10)]
    assert values == [f"A{n}" for n in range(10)]
    tasks.stop("upper", 0)
    failing = States()
    broken = source_config(barnabas_topic, prefix="ba", limit="0", **chain)
    tasks.start("fails", 0, {**broken, "limit": "x"}, "STARTED", failing)
    until(lambda: failing.last == "FAILED")
    assert "invalid literal for int()" in failing.trace


def test_what_a_task_did_before_it_failed_is_committed(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    """Nothing was committed before: the interval is an hour."""
    worker = {"offset_storage_topic": "failing-offsets", "offset_flush_interval_ms": "3600000"}
    tasks = runner(barnabas_broker.bootstrap, tmp_path, **worker)
    source, sink = States(), States()
    try:
        config = source_config(barnabas_topic, limit="50")
        tasks.start("breaks", 0, {**config, "breaks.at": "30"}, "STARTED", source)
        until(lambda: source.last == "FAILED")
        assert "it broke" in source.trace
        tasks.start("keeps", 0, sink_config(barnabas_topic), "STARTED", sink)
        until(lambda: len(seen("keeps")["put"]) == 30)
        seen("keeps")["put fails"] = True
        tasks.stop("breaks", 0)
        tasks.start("breaks", 0, config, "STARTED", source)
        until(lambda: sink.last == "FAILED" and source.last == "RUNNING")
        assert "no space" in sink.trace
        until(lambda: tasks.progress()[0].records_out == 20)
        assert "no space" in str(tasks.progress()[1].last_error)
        tasks.stop("keeps", 0)
        tasks.start("keeps", 0, sink_config(barnabas_topic), "STARTED", sink)
        until(lambda: len(seen("keeps")["put"]) >= 50)
        assert [int(value) for _, _, value in seen("keeps")["put"]] == list(range(50))
    finally:
        tasks.stop_all()


def test_exactly_once_a_zombie_is_fenced_and_nothing_comes_twice(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    worker = {"offset_storage_topic": "exact-offsets", "exactly_once_source_support": "enabled"}
    first = runner(barnabas_broker.bootstrap, tmp_path, **worker)
    second = runner(barnabas_broker.bootstrap, tmp_path, **worker)
    old, new = States(), States()
    config = source_config(barnabas_topic, limit="100000", step="7")
    first.start("exact", 0, config, "STARTED", old)
    until(lambda: bool(first.progress()) and first.progress()[0].commits >= 3)
    second.start("exact", 0, {**config}, "STARTED", new)  # the first one is not told: a zombie
    until(lambda: old.last == "FAILED")
    assert "took over the transactional id workers-exact-0" in old.trace
    until(lambda: second.progress()[0].commits >= 3)
    second.stop_all()
    written = second.progress()
    found = read(barnabas_broker.bootstrap, barnabas_topic, 42)
    values = [int(each.value()) for each in found]
    assert values == list(range(len(values))), written


def test_a_sink_commits_what_it_put_and_goes_on_there(
    tasks: TaskRunner, barnabas_broker: Broker, barnabas_topic: str
) -> None:
    write(barnabas_broker.bootstrap, barnabas_topic, *map(str, range(20)))
    states = States()
    tasks.start("sinks", 0, sink_config(barnabas_topic), "STARTED", states)
    until(lambda: len(seen("sinks")["put"]) == 20)
    tasks.stop("sinks", 0)
    write(barnabas_broker.bootstrap, barnabas_topic, *map(str, range(20, 30)))
    tasks.start("sinks", 0, sink_config(barnabas_topic), "STARTED", states)
    until(lambda: len(seen("sinks")["put"]) >= 30)
    assert [value for _, _, value in seen("sinks")["put"]] == [str(n) for n in range(30)]
    assert len(seen("sinks")["closed"]) == 1


def test_max_poll_records_bounds_what_one_put_gets(
    tasks: TaskRunner, barnabas_broker: Broker, barnabas_topic: str
) -> None:
    write(barnabas_broker.bootstrap, barnabas_topic, *map(str, range(20)))
    config = {**sink_config(barnabas_topic), "consumer.override.max.poll.records": "6"}
    tasks.start("bounded", 0, config, "STARTED", States())
    until(lambda: len(seen("bounded")["put"]) == 20)
    assert max(seen("bounded")["sizes"]) == 6
    assert [value for _, _, value in seen("bounded")["put"]] == [str(n) for n in range(20)]
    states = States()
    wrong = {**config, "consumer.override.max.poll.records": "none"}
    tasks.start("wrong", 0, wrong, "STARTED", states)
    until(lambda: states.last == "FAILED")
    assert "max.poll.records is 'none'" in states.trace


def test_dead_letters_name_apaches_class_of_a_converter(
    tasks: TaskRunner, barnabas_broker: Broker, barnabas_topic: str
) -> None:
    write(barnabas_broker.bootstrap, barnabas_topic, "{broken")
    dead = f"{barnabas_topic}-dead"
    more = {
        "value.converter": "JsonConverter",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    tasks.start("named", 0, sink_config(barnabas_topic, **more), "STARTED", States())
    [letter] = read(barnabas_broker.bootstrap, dead, 1)
    found = dict(letter.headers())["__connect.errors.class.name"]
    assert found == b"org.apache.kafka.connect.json.JsonConverter"


def test_poison_goes_to_the_dead_letters_with_its_coordinates(
    tasks: TaskRunner, barnabas_broker: Broker, barnabas_topic: str
) -> None:
    write(barnabas_broker.bootstrap, barnabas_topic, "one", "poison", "errant", "two")
    dead = f"{barnabas_topic}-dead"
    config = sink_config(
        barnabas_topic,
        **{
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": dead,
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        },
    )
    tasks.start("letters", 0, config, "STARTED", States())
    until(lambda: len(seen("letters")["put"]) == 2)
    found = read(barnabas_broker.bootstrap, dead, 2)
    assert [each.value() for each in found] == [b"poison", b"errant"]
    headers = dict(found[0].headers())
    assert headers["h"] == b"1"
    assert headers["__connect.errors.offset"] == b"1"
    assert headers["__connect.errors.stage"] == b"VALUE_CONVERTER"
    assert dict(found[1].headers())["__connect.errors.stage"] == b"TASK_PUT"
    assert headers["__connect.errors.connector.name"] == b"letters"
    progress = tasks.progress()[0]
    assert (progress.skipped, progress.dead_letters) == (2, 2)
    assert "offset 2" in str(progress.last_error)


def test_dead_letters_have_a_topic_from_the_start_and_do_not_wait_for_a_commit(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    dead = f"{barnabas_topic}-dead"
    letters = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    tasks = runner(barnabas_broker.bootstrap, tmp_path, offset_flush_interval_ms="3600000")
    states = States()
    try:
        tasks.start("many", 0, sink_config(barnabas_topic, **letters), "STARTED", States())
        admin = AdminClient({"bootstrap.servers": barnabas_broker.bootstrap})
        until(lambda: dead in admin.list_topics(timeout=10).topics)
        write(barnabas_broker.bootstrap, barnabas_topic, *["poison"] * 1200)
        until(lambda: len(values_of(barnabas_broker.bootstrap, dead)) >= 1000)
        assert tasks.progress()[0].commits == 0
        letters["errors.deadletterqueue.topic.name"] = "other-dead"
        letters["errors.deadletterqueue.topic.replication.factor"] = "7"
        tasks.start("cannot", 0, sink_config(barnabas_topic, **letters), "STARTED", states)
        until(lambda: states.last == "FAILED")
        assert "topic other-dead cannot be created" in states.trace
    finally:
        tasks.stop_all()
    assert len(values_of(barnabas_broker.bootstrap, dead)) == 1200


def test_without_tolerance_the_error_names_the_record(
    tasks: TaskRunner, barnabas_broker: Broker, barnabas_topic: str
) -> None:
    write(barnabas_broker.bootstrap, barnabas_topic, "one", "poison")
    states = States()
    tasks.start("strict", 0, sink_config(barnabas_topic), "STARTED", states)
    until(lambda: states.last == "FAILED")
    assert f"{barnabas_topic}-0 offset 1" in states.trace
    assert "errors.tolerance=all" in states.trace


def test_records_that_put_refuses_for_a_moment_come_again(
    tasks: TaskRunner, barnabas_broker: Broker, barnabas_topic: str
) -> None:
    write(barnabas_broker.bootstrap, barnabas_topic, "one")
    tasks.start("again", 0, sink_config(barnabas_topic), "STARTED", States())
    until(lambda: len(seen("again")["put"]) == 1)
    seen("again")["retry"] = 3
    write(barnabas_broker.bootstrap, barnabas_topic, "two")
    until(lambda: len(seen("again")["put"]) == 2)
    assert seen("again")["retry"] == 0
    assert tasks.progress()[0].retries == 3


def test_after_a_flush_that_failed_records_come_again_from_where_reading_began(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    write(barnabas_broker.bootstrap, barnabas_topic, *map(str, range(5)))
    tasks = runner(barnabas_broker.bootstrap, tmp_path)
    tasks.start("rewinds", 0, sink_config(barnabas_topic), "STARTED", States())
    until(lambda: tasks.progress()[0].commits > 0)
    tasks.stop("rewinds", 0)
    write(barnabas_broker.bootstrap, barnabas_topic, "five", "six")
    seen("rewinds")["put"].clear()
    seen("rewinds")["flush fails"] = True
    tasks.start("rewinds", 0, sink_config(barnabas_topic), "STARTED", States())

    def put() -> list[str]:
        return [value for _, _, value in seen("rewinds")["put"]]

    until(lambda: put()[-1:] == ["six"] and tasks.progress()[0].commits > 0)
    tasks.stop_all()
    assert put() in (["five", "six"] * 2, ["five", "five", "six"])  # as they came, together or not


def test_a_paused_task_does_nothing_until_it_is_resumed(
    tasks: TaskRunner, barnabas_broker: Broker, barnabas_topic: str
) -> None:
    states = States()
    tasks.start("paused", 0, source_config(barnabas_topic), "PAUSED", states)
    until(lambda: states.last == "PAUSED")
    assert tasks.progress()[0].records_in == 0
    tasks.resume("paused", 0)
    until(lambda: tasks.progress()[0].records_out == 100)
    assert states.last == "RUNNING"


def test_two_tasks_share_partitions_and_hand_them_over_without_loss(
    tasks: TaskRunner, barnabas_broker: Broker
) -> None:
    barnabas_broker.create_topic("shared-by-tasks", partitions=2)
    producer = Producer({"bootstrap.servers": barnabas_broker.bootstrap})
    for n in range(40):
        producer.produce("shared-by-tasks", str(n).encode(), partition=n % 2)
    assert producer.flush(30) == 0
    one = tasks
    one.start("shared", 0, sink_config("shared-by-tasks"), "STARTED", States())
    until(lambda: len(seen("shared")["put"]) == 40)
    one.start("shared", 1, sink_config("shared-by-tasks"), "STARTED", States())
    until(lambda: all(each.partitions == 1 for each in one.progress()))
    for n in range(40, 80):
        producer.produce("shared-by-tasks", str(n).encode(), partition=n % 2)
    assert producer.flush(30) == 0
    until(lambda: len(seen("shared")["put"]) >= 80)
    assert sorted(int(value) for _, _, value in seen("shared")["put"]) == list(range(80))


def test_a_record_that_the_broker_refuses_is_left_out_where_errors_are_tolerated(
    barnabas_broker: Broker, tasks: TaskRunner
) -> None:
    admin = AdminClient({"bootstrap.servers": barnabas_broker.bootstrap})
    admin.create_topics([NewTopic("refusing", 1, 1, config={"max.message.bytes": "1000"})])[
        "refusing"
    ].result(30)
    states, strict = States(), States()
    config = source_config("refusing", big="15", limit="40")
    tasks.start("refused", 0, config, "STARTED", strict)
    until(lambda: strict.last == "FAILED")
    assert "cannot be written to refusing-0: MESSAGE_TOO_LARGE" in strict.trace
    tasks.start("left-out", 0, {**config, "prefix": "t", "errors.tolerance": "all"}, "STARTED", states)
    wanted = [f"t{n}" for n in range(40) if n != 15]
    until(
        lambda: (
            [each for each in values_of(barnabas_broker.bootstrap, "refusing") if each[0] == "t"] == wanted
        )
    )
    progress = next(each for each in tasks.progress() if each.connector == "left-out")
    assert progress.skipped == 1 and states.last == "RUNNING"
    assert progress.last_error is not None and progress.last_error.stage == "KAFKA_PRODUCE"


def test_a_topic_that_is_deleted_is_filled_and_read_again(barnabas_broker: Broker, tasks: TaskRunner) -> None:
    """Also by a sink whose offset the new topic reaches before it is read again."""
    bootstrap = barnabas_broker.bootstrap
    write(bootstrap, "deleted", "a", "b")
    more = {"consumer.override.metadata.max.age.ms": "200"}
    tasks.start("out-of-deleted", 0, sink_config("deleted", **more), "STARTED", States())
    until(lambda: [value for _, _, value in seen("out-of-deleted")["put"]] == ["a", "b"])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics(["deleted"])["deleted"].result(30)
    write(bootstrap, "deleted", "c", "d")
    until(lambda: [value for _, _, value in seen("out-of-deleted")["put"]][2:] == ["c", "d"])
