"""Bytes that are not a request: sizes, headers, bodies, versions and keys that are wrong."""

from __future__ import annotations

import random
import struct

from barnabas.protocol import ApiKey
from barnabas.protocol.apis import APIS, request_header_version

from ..frames import framed, request
from ..requests import batch, produce, versions
from ..talk import Talk, encode, scenario

SILENCE_S = 1.5
"""How long a connection is watched that should stay open and say nothing."""


@scenario
def sizes(talk: Talk) -> None:
    good = request(3, 9, 2, 1, encode(ApiKey.METADATA, 9, {"topics": []}))
    for size in (-1, -(2**31), 104_857_601, 2**31 - 1):
        talk.frame(f"size {size}", struct.pack(">i", size) + good)
    talk.frame("size 0", struct.pack(">i", 0))
    for size in (1, 4, 7, 8, 9):
        talk.frame(f"a frame of {size} bytes", framed(good[:size]))


@scenario
def unfinished_frames_are_waited_for(talk: Talk) -> None:
    good = framed(request(3, 9, 2, 1, encode(ApiKey.METADATA, 9, {"topics": []})))
    for cut in (1, 3, 4, 10, len(good) - 1):
        talk.frame(f"{cut} of {len(good)} bytes", good[:cut], patience=SILENCE_S)


@scenario
def keys_and_versions(talk: Talk) -> None:
    for key in (-1, 4, 5, 6, 7, 93, 200, 32767, -32768):
        for version in (0, 1):
            talk.frame(f"key {key} v{version}", framed(request(key, version, 1, 1, bytes(8))))
    for api in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.LIST_OFFSETS, ApiKey.CREATE_TOPICS):
        served = APIS[api].versions
        for version in (served.first - 1, served.last + 1, 99, -1, 32767):
            header = 2 if version > served.last else 1
            talk.frame(f"{api.name} v{version}", framed(request(api, version, header, 1, bytes(16))))


@scenario
def unknown_versions_of_api_versions(talk: Talk) -> None:
    for version in (5, 6, 99, 32767, -1):
        with_header = request(18, version, 2, 77, b"\x08interop\x041.0\x00")
        # The answer is in version 0 whatever was asked; how many APIs are in it depends on the broker.
        talk_frame_head(talk, f"ApiVersions v{version}", framed(with_header))


def talk_frame_head(talk: Talk, label: str, data: bytes) -> None:
    """Like `frame`, but only correlation id and error code of the answer are written down."""
    talk.frame(label, data)
    answer = talk.transcript[-1]["answer"]
    if "frame" in answer:
        answer["frame"] = answer["frame"][:12]


@scenario
def bodies_cut_short(talk: Talk) -> None:
    """Every API, every version: the body ends too early."""
    bodies = {
        ApiKey.PRODUCE: lambda v: encode(ApiKey.PRODUCE, v, produce(talk, "t", batch(b"x"))),
        ApiKey.FETCH: lambda v: encode(ApiKey.FETCH, v, {"topics": [{"topic": "t", "partitions": [{}]}]}),
        ApiKey.LIST_OFFSETS: lambda v: encode(ApiKey.LIST_OFFSETS, v, {"topics": [{"name": "t"}]}),
        ApiKey.CREATE_TOPICS: lambda v: encode(ApiKey.CREATE_TOPICS, v, {"topics": [{"name": "t"}]}),
        ApiKey.DELETE_TOPICS: lambda v: encode(ApiKey.DELETE_TOPICS, v, {"topic_names": ["t"]}),
        ApiKey.INIT_PRODUCER_ID: lambda v: encode(ApiKey.INIT_PRODUCER_ID, v, {"transactional_id": None}),
        ApiKey.DESCRIBE_CONFIGS: lambda v: encode(ApiKey.DESCRIBE_CONFIGS, v, {"resources": [{}]}),
    }
    for api, body in bodies.items():
        for version in (versions(api)[0], versions(api)[-1]):
            whole = body(version)
            for missing in (1, len(whole) // 2, len(whole)):
                cut = request(
                    api, version, request_header_version(api, version), 1, whole[: len(whole) - missing]
                )
                talk.frame(f"{api.name} v{version}, {missing} of {len(whole)} bytes missing", framed(cut))


@scenario
def bodies_with_more_behind(talk: Talk) -> None:
    for api, version in ((ApiKey.METADATA, 9), (ApiKey.METADATA, 1), (ApiKey.LIST_OFFSETS, 7)):
        body = encode(api, version, {"topics": []}) + b"behind"
        talk.ask_bytes("six bytes more", api, version, body)


@scenario
def unknown_tags_are_skipped(talk: Talk) -> None:
    body = encode(ApiKey.METADATA, 9, {"topics": []})
    assert body.endswith(b"\x00")
    talk.ask_bytes("an unknown tag", ApiKey.METADATA, 9, body[:-1] + b"\x01\x63\x03abc")
    talk.ask_bytes("a tag cut short", ApiKey.METADATA, 9, body[:-1] + b"\x01\x63\x09abc")
    talk.ask_bytes("tags out of order", ApiKey.METADATA, 9, body[:-1] + b"\x02\x63\x01a\x05\x01b")
    talk.ask_bytes("the same tag twice", ApiKey.METADATA, 9, body[:-1] + b"\x02\x63\x01a\x63\x01b")


@scenario
def nulls_and_lengths_that_are_not_allowed(talk: Talk) -> None:
    cases = {
        "a null topic name": (3, 1, struct.pack(">ih", 1, -1)),
        "a name of -2 bytes": (3, 1, struct.pack(">ih", 1, -2)),
        "a name longer than the frame": (3, 1, struct.pack(">ih", 1, 32767) + b"abc"),
        "-2 topics": (3, 1, struct.pack(">i", -2)),
        "2^31-1 topics": (3, 1, struct.pack(">i", 2**31 - 1)),
        "a million topics": (3, 1, struct.pack(">i", 1_000_000)),
        "null topics in version 0": (3, 0, struct.pack(">i", -1)),
        "a name that is not UTF-8": (3, 1, struct.pack(">ih", 1, 2) + b"\xff\xfe"),
        "null topics to create": (19, 2, struct.pack(">i", -1) + struct.pack(">ib", 1000, 0)),
        "null topics to fetch": (1, 4, struct.pack(">iiiibi", -1, 0, 0, 0, 0, -1)),
        "a long varint": (3, 9, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        "2^31 topics": (3, 9, b"\x80\x80\x80\x80\x08\x00"),
        "a boolean of 7": (3, 4, struct.pack(">ib", 0, 7)),
    }
    for label, (key, version, body) in cases.items():
        header = 2 if key == 3 and version >= 9 else 1
        talk.frame(label, framed(request(key, version, header, 1, body)))
        answer = talk.transcript[-1]["answer"]
        if "frame" in answer:
            answer["frame"] = "an answer"


@scenario
def headers_that_are_wrong(talk: Talk) -> None:
    body = encode(ApiKey.METADATA, 9, {"topics": []})
    plain = struct.pack(">hhi", 3, 9, 1)
    talk.frame("no client id", framed(plain + struct.pack(">h", -1) + b"\x00" + body))
    talk.frame("client id of -2 bytes", framed(plain + struct.pack(">h", -2) + b"\x00" + body))
    talk.frame("client id longer than the frame", framed(plain + struct.pack(">h", 9999) + b"\x00" + body))
    talk.frame("client id that is not UTF-8", framed(plain + struct.pack(">h", 2) + b"\xff\xfe\x00" + body))
    talk.frame("an unknown tag in the header", framed(plain + struct.pack(">h", 0) + b"\x01\x63\x01x" + body))
    talk.frame(
        "a tag cut short in the header", framed(plain + struct.pack(">h", 0) + b"\x01\x63\x7fx" + body)
    )
    for entry in talk.transcript:
        if "frame" in entry["answer"]:
            entry["answer"]["frame"] = "an answer"


@scenario
def garbage(talk: Talk) -> None:
    rng = random.Random(20)
    for size in (4, 8, 16, 64, 256):
        for number in range(4):
            noise = rng.randbytes(size)
            talk.frame(f"{size} random bytes in a frame, number {number}", framed(noise))
    talk.frame("an HTTP request", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    talk.frame("a TLS hello", bytes.fromhex("16030100c8010000c40303") + bytes(190))
    talk.frame("zeros", bytes(64))
