"""Produce: what is taken, what is refused, and with which code."""

from __future__ import annotations

import struct
import time

from barnabas.protocol import ApiKey
from barnabas.records.batch import compute_crc
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch

from ..members import group
from ..requests import BASE_TIME_MS, batch, fetch, produce, versions
from ..talk import Talk, scenario

PRODUCE, FETCH = ApiKey.PRODUCE, ApiKey.FETCH
DAY_MS = 86_400_000


def resealed(data: bytes, at: int, form: str, value: int) -> bytes:
    """The batch with one header field changed and the CRC made right again."""
    changed = bytearray(data)
    struct.pack_into(">" + form, changed, at, value)
    struct.pack_into(">I", changed, 17, compute_crc(changed, 0, len(changed)))
    return bytes(changed)


def whole(talk: Talk, label: str, topic: str) -> None:
    """What a reader of partition 0 sees now."""
    talk.ask(f"{label}: what was stored", FETCH, 12, **fetch(talk, {topic: [{}]}))


@scenario
def every_version_takes_records(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    for version in versions(PRODUCE):
        for acks in (1, -1):
            body = produce(talk, topic, {0: batch(b"a", b"b"), 1: batch(None, key=b"k")}, acks)
            talk.ask(f"two partitions, acks={acks}", PRODUCE, version, **body)
    whole(talk, "every version", topic)


@scenario
def without_acks_there_is_no_answer(talk: Talk) -> None:
    topic = talk.topic()
    for version in versions(PRODUCE):
        talk.send_only(PRODUCE, version, **produce(talk, topic, batch(b"quiet %d" % version), acks=0))
        body = produce(talk, topic, batch(b"loud"), acks=1)
        talk.ask("the next request with acks=1 is the one answered", PRODUCE, version, **body)
    whole(talk, "acks=0", topic)


@scenario
def an_error_without_acks_closes_the_connection(talk: Talk) -> None:
    topic = talk.topic()
    corrupt = bytearray(batch(b"x"))
    corrupt[-1] ^= 1
    for label, body in {
        "unknown topic": produce(talk, talk.name("missing"), batch(b"x"), acks=0),
        "corrupt": produce(talk, topic, bytes(corrupt), acks=0),
    }.items():
        talk.send_only(PRODUCE, 9, **body)
        talk.ask(f"behind acks=0 to {label}", ApiKey.API_VERSIONS, 99 - 95)
        talk.transcript[-1]["answer"] = {"closed": "connection" in talk.transcript[-1]["answer"]}


@scenario
def topics_and_partitions_that_are_not_there(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    for version in versions(PRODUCE):
        missing = produce(talk, talk.name("missing"), batch(b"x"), topic_id=b"0123456789abcdef")
        talk.ask("unknown topic", PRODUCE, version, **missing)
        for partition in (2, -1, 1 << 30):
            talk.ask(
                f"partition {partition} of 2",
                PRODUCE,
                version,
                **produce(talk, topic, {partition: batch(b"x")}),
            )
    talk.ask("no topic id", PRODUCE, 13, **produce(talk, topic, batch(b"x"), topic_id=bytes(16)))
    talk.ask("bad name", PRODUCE, 9, **produce(talk, "not a name", batch(b"x")))
    talk.ask("empty name", PRODUCE, 9, **produce(talk, "", batch(b"x")))
    mixed = produce(talk, topic, {0: batch(b"good"), 9: batch(b"bad")})
    talk.ask("one partition there, one not", PRODUCE, 9, **mixed)


@scenario
def acks_that_do_not_exist(talk: Talk) -> None:
    topic = talk.topic()
    for version in versions(PRODUCE):
        for acks in (2, -2, 100, -32768):
            talk.ask(f"acks={acks}", PRODUCE, version, **produce(talk, topic, batch(b"x"), acks))
    whole(talk, "bad acks", topic)


@scenario
def damaged_batches(talk: Talk) -> None:
    topic = talk.topic()
    good = batch(b"one", b"two", b"three")
    flipped = bytearray(good)
    flipped[-1] ^= 1
    wrong_crc = bytearray(good)
    wrong_crc[17] ^= 1
    damaged = {
        "a flipped bit in the records": bytes(flipped),
        "a wrong CRC": bytes(wrong_crc),
        "one byte missing": good[:-1],
        "half of it": good[: len(good) // 2],
        "only a header": good[:61],
        "sixty bytes": good[:60],
        "seventeen bytes": good[:17],
        "twelve bytes": good[:12],
        "one byte": good[:1],
        "one byte more": good + b"\0",
        "sixteen bytes more": good + bytes(16),
        "batch length 0": good[:8] + struct.pack(">i", 0) + good[12:],
        "batch length -1": good[:8] + struct.pack(">i", -1) + good[12:],
        "batch length 48": good[:8] + struct.pack(">i", 48) + good[12:],
        "batch length too long": good[:8] + struct.pack(">i", 1 << 30) + good[12:],
        "batch length 2^31-1": good[:8] + struct.pack(">i", 2**31 - 1) + good[12:],
        "four records declared, three there": resealed(good, 57, "i", 4),
        "two records declared, three there": resealed(good, 57, "i", 2),
        "zero records declared": resealed(good, 57, "i", 0),
        "-1 records declared": resealed(good, 57, "i", -1),
        "2^31-1 records declared": resealed(good, 57, "i", 2**31 - 1),
        "last offset delta 1 for three records": resealed(good, 23, "i", 1),
        "last offset delta 5 for three records": resealed(good, 23, "i", 5),
        "last offset delta -1": resealed(good, 23, "i", -1),
        "an empty batch": resealed(resealed(good[:61], 8, "i", 49), 57, "i", 0),
    }
    for label, data in damaged.items():
        talk.ask(label, PRODUCE, 9, **produce(talk, topic, data))
    whole(talk, "damaged", topic)


@scenario
def records_that_are_not_there(talk: Talk) -> None:
    topic = talk.topic()
    for version in versions(PRODUCE):
        talk.ask("no bytes", PRODUCE, version, **produce(talk, topic, b""))
    talk.ask("no topics", PRODUCE, 9, acks=-1, timeout_ms=1000, transactional_id=None, topic_data=[])
    talk.ask("no partitions", PRODUCE, 9, **produce(talk, topic, {}))


@scenario
def several_batches_at_once(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask("two batches", PRODUCE, 9, **produce(talk, topic, batch(b"a") + batch(b"b", b"c")))
    talk.ask("two batches, v3", PRODUCE, 3, **produce(talk, topic, batch(b"a") + batch(b"b", b"c")))
    talk.ask("the second is cut", PRODUCE, 9, **produce(talk, topic, batch(b"a") + batch(b"b")[:-1]))
    whole(talk, "several", topic)


@scenario
def old_formats(talk: Talk) -> None:
    topic = talk.topic()
    good = batch(b"x")
    # Message sets of magic 0 and 1: offset, size, crc, magic, attributes, (timestamp,) key, value.
    body0 = struct.pack(">bbii", 0, 0, -1, 1) + b"x"
    body1 = struct.pack(">bbqii", 1, 0, BASE_TIME_MS, -1, 1) + b"x"
    for magic, body in ((0, body0), (1, body1)):
        import zlib

        message = struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body
        for version in (3, 7, 9, 13):
            talk.ask(f"magic {magic}", PRODUCE, version, **produce(talk, topic, message))
    for magic in (0, 1, 3, -1, 127):
        changed = resealed(good, 16, "b", magic)
        talk.ask(f"a batch that says magic {magic}", PRODUCE, 9, **produce(talk, topic, changed))
    whole(talk, "old formats", topic)


@scenario
def sizes_over_the_limit(talk: Talk) -> None:
    topic = talk.topic(max_message_bytes="1000")
    fits = 1000 - len(batch(b"")) - 2
    for size in (fits, fits + 1, fits + 10, 5_000):
        talk.ask(f"{size - fits} bytes over", PRODUCE, 9, **produce(talk, topic, batch(b"x" * size)))
    two = batch(b"small") + batch(b"x" * 5_000)
    talk.ask("a small and a large batch", PRODUCE, 9, **produce(talk, topic, two))
    zipped = batch(b"x" * 50_000, compression=Compression.GZIP)
    talk.ask("large only when unpacked", PRODUCE, 9, **produce(talk, topic, zipped))
    default = talk.topic("default")
    talk.ask("over the default limit", PRODUCE, 9, **produce(talk, default, batch(b"x" * 1_100_000)))
    talk.ask("below the default limit", PRODUCE, 9, **produce(talk, default, batch(b"x" * 1_048_000)))


@scenario
def offsets_and_attributes_from_the_client(talk: Talk) -> None:
    topic = talk.topic()
    good = batch(b"a", b"b")
    cases = {
        "base offset 1000": struct.pack(">q", 1000) + good[8:],
        "base offset -5": struct.pack(">q", -5) + good[8:],
        "leader epoch 77": good[:12] + struct.pack(">i", 77) + good[16:],
        "append time flag": resealed(good, 21, "h", 8),
        "control flag": resealed(good, 21, "h", 32),
        "transactional flag": resealed(good, 21, "h", 16),
        "delete horizon flag": resealed(good, 21, "h", 64),
        "unused flags": resealed(good, 21, "h", 0x80),
        "compression 5": resealed(good, 21, "h", 5),
        "compression 7": resealed(good, 21, "h", 7),
    }
    for label, data in cases.items():
        talk.ask(label, PRODUCE, 9, **produce(talk, topic, data))
    sparse = build_batch(
        [Record(offset=0, timestamp=1, value=b"a"), Record(offset=5, timestamp=1, value=b"b")]
    )
    talk.ask("a gap between offsets", PRODUCE, 9, **produce(talk, topic, bytes(sparse)))
    late = build_batch([Record(offset=3, timestamp=1, value=b"a")], base_offset=0)
    talk.ask("offsets that start at 3", PRODUCE, 9, **produce(talk, topic, bytes(late)))
    talk.ask("unknown transactional id", PRODUCE, 9, **produce(talk, topic, good, transactional_id="t"))


@scenario
def payloads_that_do_not_unpack(talk: Talk) -> None:
    topic = talk.topic()
    for compression in ("gzip", "snappy", "lz4", "zstd"):
        data = resealed(batch(b"a", b"b"), 21, "h", Compression[compression.upper()])
        talk.ask(f"says {compression}, is not", PRODUCE, 9, **produce(talk, topic, data))


@scenario
def records_that_are_malformed_inside_a_good_batch(talk: Talk) -> None:
    topic = talk.topic()
    for at in (61, 63, 65, 70):
        data = bytearray(batch(b"aaaa", b"bbbb"))
        data[at] ^= 0x10
        changed = resealed(bytes(data), 57, "i", 2)
        talk.ask(f"byte {at} changed, the CRC right", PRODUCE, 9, **produce(talk, topic, changed))


@scenario
def every_compression(talk: Talk) -> None:
    topic = talk.topic()
    for compression in Compression:
        data = batch(b"abc" * 10, b"def", compression=compression)
        for version in versions(PRODUCE):
            talk.ask(f"{compression.name}", PRODUCE, version, **produce(talk, topic, data))
    whole(talk, "compressions", topic)


@scenario
def a_topic_with_a_compression_of_its_own(talk: Talk) -> None:
    for wanted in ("uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"):
        topic = talk.topic(wanted, compression_type=wanted)
        for compression in Compression:
            data = batch(b"abc", b"abc", b"abc", compression=compression)
            talk.ask(f"{compression.name} to {wanted}", PRODUCE, 9, **produce(talk, topic, data))
        whole(talk, wanted, topic)


@scenario
def timestamps(talk: Talk) -> None:
    append = talk.topic("append", message_timestamp_type="LogAppendTime")
    for compression in (Compression.NONE, Compression.GZIP):
        data = batch(b"a", b"b", time_ms=5, compression=compression)
        for version in versions(PRODUCE):
            talk.ask(f"append time, {compression.name}", PRODUCE, version, **produce(talk, append, data))
    whole(talk, "append time", append)

    now = int(time.time() * 1000)
    window = {"message_timestamp_before_max_ms": str(DAY_MS), "message_timestamp_after_max_ms": str(DAY_MS)}
    bounded = talk.topic("bounded", **window)
    for label, moment in {
        "now": now,
        "two days ago": now - 2 * DAY_MS,
        "in two days": now + 2 * DAY_MS,
        "no timestamp": -1,
        "negative": -1_000,
    }.items():
        for version in (3, 7, 8, 9, 13):
            talk.ask(label, PRODUCE, version, **produce(talk, bounded, batch(b"x", b"y", time_ms=moment)))
    free = talk.topic("free")
    for label, moment in {
        "zero": 0,
        "no timestamp": -1,
        "in ten days": now + 10 * DAY_MS,
        "2^62": 2**62,
    }.items():
        talk.ask(f"default limits: {label}", PRODUCE, 9, **produce(talk, free, batch(b"x", time_ms=moment)))
    lying = resealed(batch(b"x", b"y", time_ms=1_000), 35, "q", 999_999)
    talk.ask("a wrong max timestamp", PRODUCE, 9, **produce(talk, free, lying))
    talk.ask(
        "by time behind it",
        ApiKey.LIST_OFFSETS,
        7,
        replica_id=-1,
        topics=[{"name": free, "partitions": [{"partition_index": 0, "timestamp": 500_000}]}],
    )


@scenario
def a_compacted_topic_wants_keys(talk: Talk) -> None:
    topic = talk.topic(cleanup_policy="compact")
    for version in (3, 7, 8, 9, 13):
        talk.ask("no key", PRODUCE, version, **produce(talk, topic, batch(b"x")))
        talk.ask("a key", PRODUCE, version, **produce(talk, topic, batch(b"x", key=b"k")))
    mixed = build_batch([Record(timestamp=1, key=b"k", value=b"a"), Record(timestamp=1, value=b"b")])
    talk.ask("the second record has no key", PRODUCE, 9, **produce(talk, topic, bytes(mixed)))
    zipped = batch(b"x", compression=Compression.ZSTD)
    talk.ask("no key, compressed", PRODUCE, 9, **produce(talk, topic, zipped))
    talk.ask("empty key", PRODUCE, 9, **produce(talk, topic, batch(b"x", key=b"")))
    talk.ask("tombstone", PRODUCE, 9, **produce(talk, topic, batch(None, key=b"k")))


@scenario
def the_same_partition_twice_in_a_request(talk: Talk) -> None:
    topic = talk.topic()
    for version in (3, 9, 12, 13):
        body = produce(talk, topic, batch(b"first"))
        twice = dict(body["topic_data"][0])
        twice["partition_data"] = [
            {"index": 0, "records": batch(b"first")},
            {"index": 0, "records": batch(b"second")},
        ]
        talk.ask("the same partition twice", PRODUCE, version, **{**body, "topic_data": [twice]})
        talk.ask("the same topic twice", PRODUCE, version, **{**body, "topic_data": [twice, twice]})
    whole(talk, "twice", topic)


@scenario
def a_topic_setting_for_too_few_replicas(talk: Talk) -> None:
    topic = talk.topic(min_insync_replicas="2")
    for acks in (0, 1, -1):
        body = produce(talk, topic, batch(b"x"), acks)
        if acks == 0:
            talk.send_only(PRODUCE, 9, **body)
        else:
            talk.ask(f"acks={acks}", PRODUCE, 9, **body)
    whole(talk, "min.insync.replicas=2", topic)


@scenario
def internal_topics_are_not_for_clients(talk: Talk) -> None:
    group(talk)  # with the first group comes the topic of their offsets
    for name in ("__cluster_metadata", "__consumer_offsets", "__transaction_state"):
        talk.ask(name, PRODUCE, 9, **produce(talk, name, batch(b"x", key=b"k")))
