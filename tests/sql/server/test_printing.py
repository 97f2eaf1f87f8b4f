"""PRINT: formats guessed from bytes, lines in ksqlDB's form."""

from __future__ import annotations

import asyncio
import struct

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.producer import NewRecord, Producer
from barnabas.sql.server.printing.guessing import NO_DATA, Guess
from sql.server.running import running

TIME_MS = 1_704_067_200_000  # 2024-01-01


def test_formats_are_known_better_with_each_record() -> None:
    values = Guess(is_key=False)
    assert str(values) == NO_DATA
    assert values.show(struct.pack(">i", 7)) == "7"
    assert str(values) == "KAFKA_INT"
    texts = Guess(is_key=False)
    assert texts.show(b'{"a": 1}') == '{"a":1}'
    assert str(texts) == "JSON or KAFKA_STRING or KAFKA_BIGINT or KAFKA_DOUBLE"
    assert texts.show(b"plain words") == "plain words"
    assert str(texts) == "KAFKA_STRING"
    assert texts.show(None) == "<null>"
    assert Guess(is_key=False).show(b"\xff\xfe\x01") == "\\xFFFE01"


def test_windowed_keys_show_their_window() -> None:
    keys = Guess(is_key=True)
    assert keys.show(b"alice" + struct.pack(">q", TIME_MS)) == f"[alice@{TIME_MS}/-]"
    sessions = Guess(is_key=True)
    data = b"bob" + struct.pack(">qq", TIME_MS + 5, TIME_MS)
    assert sessions.show(data) == f"[bob@{TIME_MS}/{TIME_MS + 5}]"


def test_records_are_printed_as_lines(broker: str) -> None:
    async def produce() -> None:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            await Admin(cluster).create_topic(NewTopic("clicks", 1, 1))
            async with Producer(cluster) as producer:
                records = [NewRecord(None, b"k", b'{"a":%d}' % n, timestamp_ms=TIME_MS) for n in range(4)]
                await producer.send_all("clicks", records)

    asyncio.run(produce())
    with running(broker, "print_") as server:

        def printed(text: str) -> list[str]:
            return server.post("/query-stream", {"sql": text}).text.splitlines()

        assert printed("PRINT clicks FROM BEGINNING LIMIT 1;") == [
            "Key format: KAFKA_STRING",
            "Value format: JSON or KAFKA_STRING",
            'rowtime: 2024/01/01 00:00:00.000 Z, key: k, value: {"a":0}, partition: 0',
        ]
        every_second = printed("PRINT 'clicks' FROM BEGINNING INTERVAL 2 LIMIT 2;")
        assert [line.partition("value: ")[2][:7] for line in every_second[2:]] == ['{"a":0}', '{"a":2}']
        missing = server.post("/query-stream", {"sql": "PRINT click;"})
        assert missing.status_code == 400 and "Did you mean clicks?" in missing.json()["message"]
