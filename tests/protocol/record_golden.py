"""Records golden frames: what real clients and Apache Kafka say to each other.

Run `python -m protocol.record_golden` in `tests/`. A proxy stands between the clients and an Apache Kafka
node that advertises the proxy's address, and keeps the first exchange of each API, version and client; the
versions that no client speaks are asked for with requests of our own. Writes `golden/*.json`.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from barnabas.protocol.apis import APIS, request_class, request_header_version
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.message import Message
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.testing.apache import ApacheKafka
from barnabas.testing.ports import free_ports

from .golden_requests import requests
from .golden_talk import CONVERSATIONS

GOLDEN = Path(__file__).parent / "golden"
FRAME_SIZE_MAX = 4000
"""Longer frames are left out: they repeat what shorter ones show."""


class Recording:
    """Exchanges by API and version, as hexadecimal text."""

    def __init__(self) -> None:
        self.exchanges: dict[tuple[int, int, str], tuple[bytes, bytes]] = {}
        self.speaker = "nobody"
        self.lock = threading.Lock()

    def keep(self, request: bytes, response: bytes) -> None:
        key, version = struct.unpack_from(">hh", request)
        if len(request) <= FRAME_SIZE_MAX and len(response) <= FRAME_SIZE_MAX:
            with self.lock:
                self.exchanges.setdefault((key, version, self.speaker), (request, response))

    def batch(self, speaker: str) -> bytes:
        """A record batch that this client has sent."""
        for (key, version, who), (request, _) in self.exchanges.items():
            if key == 0 and who == speaker:
                body = request[self.header_size(request) :]
                records = ProduceRequest.decode(body, version).topic_data[0].partition_data[0].records
                assert isinstance(records, bytes)
                return records
        raise LookupError(f"{speaker} has not produced")

    def header_size(self, request: bytes) -> int:
        key, version = struct.unpack_from(">hh", request)
        header_version = request_header_version(key, version)
        return len(RequestHeader.decode(request, header_version).encode(header_version))

    def save(self) -> None:
        for old in GOLDEN.glob("*.json"):
            old.unlink()
        for key, api in sorted(APIS.items()):
            found = [
                {"version": version, "from": speaker, "request": request.hex(), "response": response.hex()}
                for (k, version, speaker), (request, response) in sorted(self.exchanges.items())
                if k == key
            ]
            if found:
                text = ",\n".join(json.dumps(exchange) for exchange in found)
                (GOLDEN / f"{api.key.name.lower()}.json").write_text(f"[\n{text}\n]\n")


class Proxy:
    """Passes connections on to the node and tells the recording what it sees."""

    def __init__(self, port: int, target: int, recording: Recording) -> None:
        self.target = target
        self.recording = recording
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            node = socket.create_connection(("127.0.0.1", self.target))
            open_requests: dict[int, bytes] = {}
            threading.Thread(target=self.pump, args=(client, node, open_requests, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(node, client, open_requests, False), daemon=True).start()

    def pump(self, source: socket.socket, sink: socket.socket, pending: dict[int, bytes], asks: bool) -> None:
        for frame in frames(source):
            if asks:
                pending[struct.unpack_from(">i", frame, 4)[0]] = frame
            else:
                self.recording.keep(pending.pop(struct.unpack_from(">i", frame)[0]), frame)
            try:
                sink.sendall(struct.pack(">i", len(frame)) + frame)
            except OSError:
                break
        for end in (source, sink):
            end.close()


def frames(connection: socket.socket) -> Iterator[bytes]:
    """Frames without their sizes until the connection ends."""
    buffer = bytearray()
    while True:
        while len(buffer) >= 4 and len(buffer) >= 4 + (size := int.from_bytes(buffer[:4], "big")):
            yield bytes(buffer[4 : 4 + size])
            del buffer[: 4 + size]
        try:
            received = connection.recv(1 << 16)
        except OSError:
            return
        if not received:
            return
        buffer += received


def ask(port: int) -> Callable[[Message, int], bytes]:
    """A function that sends one request of a version and returns the body of the answer's frame."""

    def send(request: Message, version: int) -> bytes:
        key = request.schema.key
        assert key is not None
        assert type(request) is request_class(key)
        header = RequestHeader(
            request_api_key=key, request_api_version=version, correlation_id=version + 1, client_id="golden"
        )
        frame = header.encode(request_header_version(key, version)) + request.encode(version)
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            return next(frames(connection))

    return send


def main() -> None:
    recording = Recording()
    (port,) = free_ports(1)
    node = ApacheKafka(overrides={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"})
    with node:
        Proxy(port, node.port, recording)
        for speaker, conversation in CONVERSATIONS.items():
            recording.speaker = speaker
            conversation(f"127.0.0.1:{port}")
        recording.speaker = "barnabas"
        requests(ask(port), recording.batch("kafka-python"))
    recording.save()


if __name__ == "__main__":
    main()
