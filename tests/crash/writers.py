"""Writers that keep count of what the broker acknowledged, at which offset, and of what may be there."""

from __future__ import annotations

import threading
from typing import Any

from barnabas.protocol import ApiKey
from interop.frames import Closed, Wire
from interop.requests import batch
from interop.talk import decode, encode, request_header_version

PRODUCE, FETCH = ApiKey.PRODUCE, ApiKey.FETCH
VERSION = 9
IN_FLIGHT = 5
RETRY_S = 0.02
PADDING = bytes(5_000)
"""Keys of all sizes, so that segments roll."""


class RawWriter(threading.Thread):
    """Sends numbered records to one partition, five requests at a time, and never sends one twice.

    `acknowledged` maps offsets to numbers; `uncertain` are those whose answer never came: they may be stored.
    """

    def __init__(self, port: int, topic: str, partition: int, acks: int) -> None:
        super().__init__(daemon=True)
        self.port, self.topic, self.partition, self.acks = port, topic, partition, acks
        self.acknowledged: dict[int, int] = {}
        self.uncertain: set[int] = set()
        self.errors: list[str] = []
        self._stop_asked = threading.Event()
        self._next = 0

    def run(self) -> None:
        while not self._stop_asked.is_set():
            try:
                with Wire(self.port, timeout=10) as wire:
                    while not self._stop_asked.is_set():
                        self._send_some(wire)
            except (OSError, Closed):
                self._stop_asked.wait(RETRY_S)
        # what was on its way when the connection broke stays uncertain

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()

    def _send_some(self, wire: Wire) -> None:
        sent: list[tuple[int, int]] = []
        for _ in range(IN_FLIGHT):
            number, self._next = self._next, self._next + 1
            self.uncertain.add(number)
            body = encode(PRODUCE, VERSION, self._request(number))
            sent.append((wire.send(PRODUCE, VERSION, request_header_version(PRODUCE, VERSION), body), number))
        for correlation_id, number in sent:
            answer = decode(PRODUCE, VERSION, wire.receive(), correlation_id)
            partition = answer["responses"][0]["partition_responses"][0]
            if partition["error_code"] == "NONE":
                self.acknowledged[partition["base_offset"]] = number
            elif partition["error_code"] not in ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"):
                self.errors.append(partition["error_code"])
            if partition["error_code"] == "NONE":
                self.uncertain.discard(number)

    def _request(self, number: int) -> dict[str, Any]:
        records = batch(b"%d" % number, key=PADDING[: number % 5_000])
        partition = {"index": self.partition, "records": records}
        topic = {"name": self.topic, "partition_data": [partition]}
        return {"acks": self.acks, "timeout_ms": 10_000, "transactional_id": None, "topic_data": [topic]}


def stored(port: int, topic: str, partition: int, start: int = 0) -> list[tuple[int, int]]:
    """Offset and number of every record of a partition, by raw fetches up to the high watermark."""
    found: list[tuple[int, int]] = []
    with Wire(port) as wire:
        while True:
            position = found[-1][0] + 1 if found else start
            place = {"partition": partition, "fetch_offset": position, "partition_max_bytes": 1_000_000}
            body = {
                "max_bytes": 1_000_000,
                "session_epoch": -1,
                "topics": [{"topic": topic, "partitions": [place]}],
            }
            sent = wire.send(FETCH, 12, request_header_version(FETCH, 12), encode(FETCH, 12, body))
            answer = decode(FETCH, 12, wire.receive(), sent)["responses"][0]["partitions"][0]
            assert answer["error_code"] == "NONE", answer
            for one in answer["records"]:
                assert one["crc_is_right"]
                for record in one["records"]:
                    found.append((record["offset"], int(record["value"])))
            if position >= answer["high_watermark"]:
                return found
