"""A conversation with one broker, written down so that two brokers' conversations can be compared.

In: requests as dicts, frames as bytes. Out: a transcript of labels and answers in which everything that may
differ between two right brokers (ids, ports, paths, wall-clock times, wording) is replaced by a name.
Does not know: which broker it talks to.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.protocol import NULL_UUID, ApiKey
from barnabas.protocol.apis import (
    request_class,
    request_header_version,
    response_class,
    response_header_version,
)

from .frames import ANSWER_TIMEOUT_S, Closed, Wire
from .plain import fill, plain

WORDS = {"error_message", "batch_index_error_message", "documentation"}
ADDRESSES = {"host", "port", "log_dir", "cluster_id", "broker_epoch", "finalized_features_epoch"}
SIZES = {"partition_size", "total_bytes", "usable_bytes"}
HOUR_MS = 3_600_000
SERVED_TIMEOUT_S = 20.0
PASSWORDS = {name: f"{name}-s3cret" for name in ("admin", "alice", "bob", "carol")}
MEMBER_IDS = {"member_id", "leader"}
GENERATED = re.compile(r"(.*?)([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_-]{22})")
"""A member id that the broker made: a client's or instance's name, if any, and a UUID in either spelling."""


def scenario(function: Callable[[Talk], None]) -> Callable[[Talk], None]:
    function.is_scenario = True  # type: ignore[attr-defined]
    return function


class Talk:
    """Asks, listens and writes down; `names` are the values that stand for something else."""

    def __init__(self, port: int, prefix: str) -> None:
        self.port = port
        self.prefix = prefix
        self.wire = Wire(port)
        self.transcript: list[dict[str, Any]] = []
        self.topic_ids: dict[str, bytes] = {}
        self._names: dict[tuple[str, Any], str] = {}
        self._user: str | None = None

    def close(self) -> None:
        self.wire.close()

    def reconnect(self) -> None:
        self.wire.close()
        self.wire = Wire(self.port)
        if self._user is not None:
            self._log_in(self._user)

    def become(self, user: str) -> None:
        """Talks on as this user, on another connection."""
        self._user = user
        self.reconnect()

    def _log_in(self, user: str) -> None:
        answer = self.silently(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
        assert answer["error_code"] == "NONE", answer
        login = f"\0{user}\0{PASSWORDS[user]}".encode()
        answer = self.silently(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=login)
        assert answer["error_code"] == "NONE", answer

    # Asking.

    def ask(self, label: str, api: ApiKey, version: int, **values: Any) -> dict[str, Any]:
        """Sends a request, writes down the answer, and returns it as it came."""
        return self.ask_bytes(label, api, version, encode(api, version, values))

    def ask_bytes(self, label: str, api: ApiKey, version: int, body: bytes) -> dict[str, Any]:
        answer = self.silently_bytes(api, version, body)
        self.note(f"{api.name} v{version}: {label}", answer)
        return answer

    def silently(self, api: ApiKey, version: int, **values: Any) -> dict[str, Any]:
        """The same, but nothing is written down."""
        return self.silently_bytes(api, version, encode(api, version, values))

    def silently_bytes(self, api: ApiKey, version: int, body: bytes) -> dict[str, Any]:
        try:
            sent = self.wire.send(api, version, request_header_version(api, version), body)
            frame = self.wire.receive()
        except Closed:
            self.reconnect()
            return {"connection": "closed"}
        return decode(api, version, frame, sent)

    def send_only(self, api: ApiKey, version: int, **values: Any) -> None:
        """For requests that have no answer."""
        with contextlib.suppress(Closed):
            self.wire.send(api, version, request_header_version(api, version), encode(api, version, values))

    def frame(self, label: str, data: bytes, patience: float = ANSWER_TIMEOUT_S) -> None:
        """Sends bytes on a connection of their own: is there an answer, silence, or is it closed?"""
        with Wire(self.port) as wire:
            try:
                wire.send_bytes(data)
                found: object = {"frame": wire.receive(patience).hex()}
            except Closed:
                found = {"connection": "closed"}
            except TimeoutError:
                found = {"connection": "silent"}
        self.note(label, found)

    def note(self, label: str, answer: Any) -> None:
        self.transcript.append({"request": label, "answer": self.neutral("", answer)})

    # Topics.

    def name(self, suffix: str) -> str:
        return f"{self.prefix}.{suffix}"

    def topic(self, suffix: str = "topic", partitions: int = 1, **configs: str) -> str:
        """Makes a topic and waits until it is served; `configs` with underscores for dots."""
        name = self.name(suffix)
        configs.setdefault("retention_ms", "-1")  # records with old timestamps stay
        wanted = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
        }
        answer = self.silently(ApiKey.CREATE_TOPICS, 7, topics=[wanted], timeout_ms=30_000)
        assert answer["topics"][0]["error_code"] == "NONE", answer
        self.learn(name, answer["topics"][0]["topic_id"])
        self.wait_until_served(name, partitions)
        return name

    def learn(self, name: str, topic_id: bytes) -> None:
        self.topic_ids[name] = topic_id
        self._names["topic_id", topic_id] = f"id of {name}"

    def wait_until_served(self, name: str, partitions: int) -> None:
        deadline = time.monotonic() + SERVED_TIMEOUT_S
        wanted = {
            "name": name,
            "partitions": [{"partition_index": n, "timestamp": -1} for n in range(partitions)],
        }
        while True:
            answer = self.silently(ApiKey.LIST_OFFSETS, 8, replica_id=-1, topics=[wanted])
            if all(p["error_code"] == "NONE" for t in answer["topics"] for p in t["partitions"]):
                return
            assert time.monotonic() < deadline, answer

    # Making two brokers' answers comparable.

    def neutral(self, field: str, value: Any) -> Any:
        """The value with everything replaced that may differ between two right brokers."""
        if isinstance(value, dict):
            return {name: self.neutral(name, each) for name, each in value.items()}
        if isinstance(value, list):
            value = [each for each in value if not is_own_setting(each)]
            return sorted((self.neutral(field, each) for each in value), key=sort_key)
        if isinstance(value, bytes):
            return self.named_uuid(value) if len(value) == 16 else value.hex()
        if value is None or isinstance(value, bool):
            return value
        if field in WORDS:
            return "<words>"
        if field in ADDRESSES:
            return f"<{field}>"
        if field in SIZES:
            return "<bytes>" if value > 0 else value
        if isinstance(value, int):
            return self.named_number(field, value)
        return self.named_member(value) if field in MEMBER_IDS else value

    def named_uuid(self, value: bytes) -> str:
        if value == NULL_UUID:
            return "null id"
        return self._names.get(("topic_id", value), "<id>")

    def named_number(self, field: str, value: int) -> Any:
        if "timestamp" in field or field.endswith("_time_ms"):
            return "<now>" if abs(value - time.time() * 1000) < HOUR_MS else value
        if (field == "producer_id" and value >= 0) or (field == "session_id" and value > 0):
            return self._names.setdefault((field, value), f"<{field} {self._count(field)}>")
        return value

    def named_member(self, value: str) -> str:
        made = GENERATED.fullmatch(value)
        if made is None:
            return value
        number = self._names.setdefault(("member_id", value), f"<member {self._count('member_id')}>")
        return made[1] + number

    def _count(self, field: str) -> int:
        return sum(1 for kind, _ in self._names if kind == field) + 1


def is_own_setting(value: Any) -> bool:
    """A setting that only we have."""
    return isinstance(value, dict) and str(value.get("name")).startswith(("barnabas.", "confluent."))


def sort_key(value: Any) -> str:
    """Lists are compared in the order of names and numbers: brokers answer in that of their hash tables."""
    if not isinstance(value, dict):
        return str(value)
    leading = [
        f"{value[name]:>012}" if isinstance(value[name], int) else str(value[name])
        for name in (
            "api_key",
            "name",
            "topic_name",
            "topic",
            "topic_id",
            "partition_index",
            "partition",
            "base_offset",
            "offset",
        )
        if name in value and value[name] is not None
    ]
    return "|".join(leading) + repr(value)


def encode(api: ApiKey, version: int, values: Mapping[str, Any]) -> bytes:
    return fill(request_class(api), values, version).encode(version)


def decode(api: ApiKey, version: int, frame: bytes, correlation_id: int) -> dict[str, Any]:
    got = int.from_bytes(frame[:4], "big", signed=True)
    assert got == correlation_id, f"the answer is to request {got}, not {correlation_id}"
    body = frame[4:]
    if response_header_version(api, version) == 1:
        assert body[0] == 0, "tagged fields in a response header"
        body = body[1:]
    return plain(response_class(api).decode(body, version), version)
