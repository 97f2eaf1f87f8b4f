"""Sources and sinks: bytes become values, values become bytes.

Negative timestamps are dropped, records that cannot be read or written go to the handlers of the task.
Does not know: what happens between.
"""

from __future__ import annotations

import struct
from typing import Any

from barnabas.plans.interpreter.functions import key_value_function
from barnabas.plans.interpreter.records import Change, Failure, Output, Record
from barnabas.plans.interpreter.task import Process, Task, builds
from barnabas.plans.nodes import Sink, Source
from barnabas.plans.serdes import FromBytes, ToBytes

_SIZE = struct.Struct(">I")


@builds(Source)
def source(task: Task, node: Source, forward: Process) -> Process:
    readers: dict[str, tuple[FromBytes, FromBytes]] = {}
    extract, name = node.timestamp_extractor, node.name

    def process(record: Any, _: Any, timestamp: int) -> None:
        task.node_name = name
        try:
            read_key, read_value = readers[task.topic]
        except KeyError:
            read_key = task.deserializer(node.key_serde, task.topic, True)
            read_value = task.deserializer(node.value_serde, task.topic, False)
            if node.carries_changes:
                read_value = change_reader(read_value)
            readers[task.topic] = read_key, read_value
        try:
            key = None if record.key is None else read_key(record.key)
            value = None if record.value is None else read_value(record.value)
        except Exception as error:
            failure = Failure("deserialization", name, task.topic, record, error)
            task.judge(failure, task.handlers.deserialization)
            return
        if extract is not None:
            timestamp = extract(record._replace(key=key, value=value), task.stream_time)
        if timestamp < 0:
            task.drop("negative timestamp")
            return
        if timestamp > task.stream_time:
            task.stream_time = timestamp
        task.timestamp = timestamp
        forward(key, value, timestamp)

    return process


@builds(Sink)
def sink(task: Task, node: Sink, forward: Process) -> Process:
    writers: dict[str, tuple[ToBytes, ToBytes]] = {}
    topic_of = None if isinstance(node.topic, str) else key_value_function(task, node.topic)
    fixed = node.topic if isinstance(node.topic, str) else ""
    name, partitioner = node.name, node.partitioner

    def process(key: Any, value: Any, timestamp: int) -> None:
        topic: str = fixed if topic_of is None else topic_of(key, value, timestamp)
        try:
            if topic not in writers:
                write = task.serializer(node.value_serde, topic, False)
                if node.carries_changes:
                    write = change_writer(write)
                writers[topic] = task.serializer(node.key_serde, topic, True), write
            write_key, write_value = writers[topic]
            key_data = None if key is None else write_key(key)
            value_data = None if value is None else write_value(value)
        except Exception as error:
            failed = task.record or Record(None, None, timestamp, task.headers, task.partition, task.offset)
            failure = Failure("production", name, task.topic or topic, failed, error)
            task.judge(failure, task.handlers.production)
            return
        partition = None if partitioner is None else partitioner(topic, key, value)
        task.outputs.append(Output(topic, key_data, value_data, timestamp, task.headers, partition))

    return process


def change_writer(write: ToBytes) -> ToBytes:
    """Changes in Kafka's bytes: the size of the new value, new, old, and a flag for which are there."""

    def to_bytes(change: Change) -> bytes:
        new = None if change.new is None else write(change.new)
        old = None if change.old is None else write(change.old)
        if new is not None and old is not None:
            return _SIZE.pack(len(new)) + new + old + (b"\x04" if change.is_latest else b"\x05")
        if new is not None:
            return new + (b"\x01" if change.is_latest else b"\x03")
        return (old or b"") + (b"\x00" if change.is_latest else b"\x02")

    return to_bytes


def change_reader(read: FromBytes) -> FromBytes:
    def from_bytes(data: bytes) -> Change:
        flag, body = data[-1], data[:-1]
        if flag in (4, 5):
            (size,) = _SIZE.unpack_from(body)
            return Change(read(body[4 : 4 + size]), read(body[4 + size :]), flag == 4)
        if flag in (1, 3):
            return Change(read(body), None, flag == 1)
        return Change(None, read(body), flag == 0)

    return from_bytes
