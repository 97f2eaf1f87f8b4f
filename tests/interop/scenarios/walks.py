"""Random walks: long conversations that nobody thought of, the same ones with every broker."""

from __future__ import annotations

import random
from typing import Any

from barnabas.protocol import ApiKey

from ..requests import batch, fetch, produce
from ..talk import Talk, scenario
from .idempotence import new_producer

INT32_MAX = 2**31 - 1


@scenario
def producers_and_their_sequences(talk: Talk) -> None:
    """Four producers, three partitions; mostly the next batch, sometimes an old, early or doubled one."""
    rng = random.Random(1)
    name = talk.topic(partitions=3)
    producers = [new_producer(talk) for _ in range(4)]
    state: dict[tuple[int, int], tuple[int, int]] = {}
    for step in range(400):
        producer, partition = rng.randrange(4), rng.randrange(3)
        epoch, sequence = state.get((producer, partition), (0, rng.choice((0, 0, 0, INT32_MAX - 3))))
        kind = rng.choice(("next", "next", "next", "back", "ahead", "new epoch", "old epoch", "again"))
        count = rng.randint(1, 4)
        if kind == "back":
            sequence = max(0, sequence - rng.randint(1, 12))
        elif kind == "ahead":
            sequence = min(INT32_MAX, sequence + rng.randint(1, 5))
        elif kind == "new epoch":
            epoch, sequence = epoch + rng.randint(1, 2), rng.choice((0, 0, 1))
        elif kind == "old epoch":
            epoch = max(0, epoch - 1)
        elif kind == "again":
            sequence = max(0, sequence - count)
        values = [b"%d.%d" % (step, n) for n in range(count)]
        fields = {"producer_id": producers[producer], "producer_epoch": epoch, "base_sequence": sequence}
        body = produce(talk, name, {partition: batch(*values, **fields)})
        label = f"{step}: producer {producer}, partition {partition}, {kind}: {epoch}/{sequence}+{count}"
        answer = talk.ask(label, ApiKey.PRODUCE, 9, **body)
        if answer["responses"][0]["partition_responses"][0]["error_code"] == "NONE" and kind not in (
            "back",
            "again",
        ):
            state[producer, partition] = (epoch, (sequence + count) & INT32_MAX)
        if step % 50 == 49:
            asked = [{"name": name, "partition_indexes": [0, 1, 2]}]
            talk.ask(f"{step}: who writes", ApiKey.DESCRIBE_PRODUCERS, 0, topics=asked)


@scenario
def fetch_sessions(talk: Talk) -> None:
    """Two topics of three partitions, records now and then, sessions opened, changed, misused and closed."""
    rng = random.Random(2)
    names = [talk.topic("one", partitions=3), talk.topic("two", partitions=3)]
    sessions: list[list[int]] = []
    for step in range(300):
        for _ in range(rng.randrange(3)):
            place = {rng.randrange(3): batch(b"%d" % step)}
            talk.silently(ApiKey.PRODUCE, 9, **produce(talk, rng.choice(names), place))
        version = 12 if step < 150 else 17
        if step == 150:
            sessions.clear()
        kind = rng.choice(("use", "use", "use", "use", "open", "wrong epoch", "close", "none"))
        topics: dict[str, list[dict[str, Any]]] = {}
        for name in names:
            chosen = rng.sample(range(4), rng.randrange(4))
            if chosen:
                topics[name] = [
                    {
                        "partition": n,
                        "fetch_offset": rng.choice((0, 0, 1, 2, 5, 900)),
                        "partition_max_bytes": 500,
                    }
                    for n in chosen
                ]
        forget = {name: rng.sample(range(4), 1) for name in names if rng.random() < 0.2}
        if kind == "open" or not sessions:
            body = fetch(talk, topics, session_id=0, session_epoch=0)
            answer = brief(talk, f"{step}: open", version, body)
            if answer["session_id"]:
                sessions.append([answer["session_id"], 1])
            continue
        if kind == "none":
            brief(talk, f"{step}: no session", version, fetch(talk, topics))
            continue
        session = rng.choice(sessions)
        epoch = {"wrong epoch": session[1] + rng.choice((-1, 1, 7)), "close": -1}.get(kind, session[1])
        if kind == "wrong epoch" and epoch <= 0:
            continue
        body = fetch(talk, topics, session_id=session[0], session_epoch=epoch, forget=forget)
        answer = brief(talk, f"{step}: {kind}", version, body)
        if kind == "close":
            sessions.remove(session)
        elif answer["error_code"] == "NONE":
            session[1] += 1


def brief(talk: Talk, label: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
    """Asks, and notes one line a partition: error, high watermark, offsets of the batches."""
    answer = talk.silently(ApiKey.FETCH, version, **body)
    lines = []
    for topic in answer["responses"]:
        name = topic.get("topic") or talk.named_uuid(topic["topic_id"])
        for part in topic["partitions"]:
            offsets = [each["base_offset"] for each in part["records"]]
            lines.append(
                f"{name} {part['partition_index']} {part['error_code']} {part['high_watermark']} {offsets}"
            )
    talk.note(label, {"error_code": answer["error_code"], "session_id": answer["session_id"], "lines": lines})
    return answer


@scenario
def timestamps_in_no_order(talk: Talk) -> None:
    """Batches whose timestamps go up and down, in several segments, compressed or not; times looked up."""
    rng = random.Random(3)
    for kind in ("CreateTime", "LogAppendTime"):
        name = talk.topic(
            kind, message_timestamp_type=kind, segment_bytes="1048576", index_interval_bytes="100"
        )
        for _ in range(60):
            start, count = rng.randrange(1_000, 50_000), rng.randint(1, 6)
            compression = rng.choice((0, 0, 1, 2, 3, 4))
            values = [rng.randbytes(rng.randrange(20_000)) for _ in range(count)]
            data = batch(*values, time_ms=start, compression=compression)
            talk.silently(ApiKey.PRODUCE, 9, **produce(talk, name, data))
        for _ in range(120):
            moment = rng.choice((rng.randrange(60_000), -1, -2, -3, -4))
            if moment == -3 and kind == "LogAppendTime":
                continue  # which batches share the last millisecond is a matter of luck
            place = [{"name": name, "partitions": [{"partition_index": 0, "timestamp": moment}]}]
            talk.ask(f"{kind}: {moment}", ApiKey.LIST_OFFSETS, 9, replica_id=-1, topics=place)
        for _ in range(60):
            place = {
                "fetch_offset": rng.randrange(250),
                "partition_max_bytes": rng.choice((1, 5_000, 50_000)),
            }
            answer = talk.silently(ApiKey.FETCH, 12, **fetch(talk, {name: [place]}))
            found = answer["responses"][0]["partitions"][0]
            first = found["records"][0]["base_offset"] if found["records"] else None
            seen = {"error_code": found["error_code"], "first": first, "end": found["high_watermark"]}
            talk.note(f"{kind}: from {place['fetch_offset']}", seen)


@scenario
def topics_come_and_go(talk: Talk) -> None:
    """Creating, growing, deleting and altering a handful of topics, right and wrong."""
    rng = random.Random(4)
    names = [talk.name(f"t{n}") for n in range(5)]
    settings = {
        "retention.ms": ("1000", "-1", "-2", "x"),
        "cleanup.policy": ("compact", "delete", "compact,delete", "none", ""),
        "segment.bytes": ("1048576", "100", "0"),
        "min.insync.replicas": ("1", "2", "0"),
        "message.timestamp.type": ("CreateTime", "LogAppendTime", "Never"),
        "unclean.leader.election.enable": ("true", "false", "perhaps"),
    }
    for step in range(300):
        name = rng.choice(names)
        kind = rng.choice(("create", "create", "delete", "grow", "alter", "alter", "describe"))
        if kind == "create":
            setting = rng.choice(list(settings))
            configs = (
                [{"name": setting, "value": rng.choice(settings[setting])}] if rng.random() < 0.5 else []
            )
            wanted = {"name": name, "num_partitions": rng.choice((1, 2, 3, 0, -1)), "replication_factor": 1}
            fields = {"topics": [{**wanted, "configs": configs}], "timeout_ms": 30_000}
            answer = talk.silently(ApiKey.CREATE_TOPICS, 7, validate_only=rng.random() < 0.2, **fields)
            if answer["topics"][0]["topic_id"] != bytes(16):
                talk.learn(name, answer["topics"][0]["topic_id"])
            talk.note(f"{step}: create {wanted} {configs}", answer)
        elif kind == "delete":
            fields = {"topics": [{"name": name}], "timeout_ms": 30_000}
            talk.ask(f"{step}: delete", ApiKey.DELETE_TOPICS, 6, **fields)
        elif kind == "grow":
            wanted = {"name": name, "count": rng.randint(1, 5), "assignments": None}
            only = rng.random() < 0.2
            label = f"{step}: grow to {wanted['count']}"
            talk.ask(
                label, ApiKey.CREATE_PARTITIONS, 3, topics=[wanted], timeout_ms=30_000, validate_only=only
            )
        elif kind == "alter":
            setting = rng.choice(list(settings))
            operation, value = rng.randrange(4), rng.choice(settings[setting])
            change = {
                "name": setting,
                "config_operation": operation,
                "value": None if operation == 1 else value,
            }
            resource = {"resource_type": 2, "resource_name": name, "configs": [change]}
            label = f"{step}: alter {setting} {operation} {value!r}"
            talk.ask(label, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
        else:
            settle(talk)
            resource = {"resource_type": 2, "resource_name": name, "configuration_keys": sorted(settings)}
            talk.ask(f"{step}: settings", ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource])
            fields = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
            talk.ask(f"{step}: metadata", ApiKey.METADATA, 12, **fields)


def settle(talk: Talk) -> None:
    """What was decided so far is visible once a topic made now is."""
    talk.topic(f"settled.{len(talk.transcript)}")
