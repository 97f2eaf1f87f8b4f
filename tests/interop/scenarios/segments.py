"""A log of several segments: fetched and looked up across their borders."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..requests import batch, fetch, produce
from ..talk import Talk, scenario

BATCHES = 9


def load(talk: Talk, name: str) -> None:
    for n in range(BATCHES):
        data = batch(*[b"x" * 100_000] * 4, time_ms=1_000 * (n + 1))
        answer = talk.silently(ApiKey.PRODUCE, 9, **produce(talk, name, data))
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == "NONE", answer


@scenario
def fetches_cross_borders(talk: Talk) -> None:
    name = talk.topic(segment_bytes="1048576")
    load(talk, name)
    for version in (4, 12, 18):
        for offset in range(BATCHES * 4 + 1):
            one = {"fetch_offset": offset, "partition_max_bytes": 1}
            talk.ask(f"one batch from {offset}", ApiKey.FETCH, version, **fetch(talk, {name: [one]}))
    sized = {"fetch_offset": 3, "partition_max_bytes": 900_000}
    answer = talk.silently(ApiKey.FETCH, 12, **fetch(talk, {name: [sized]}))
    batches = answer["responses"][0]["partitions"][0]["records"]
    talk.note("900000 bytes from 3", {"base_offsets": [each["base_offset"] for each in batches]})


@scenario
def times_are_found_in_every_segment(talk: Talk) -> None:
    name = talk.topic(segment_bytes="1048576")
    load(talk, name)
    for moment in [1_000 * n + shift for n in range(BATCHES + 2) for shift in (0, 1, 3, 4)] + [
        -1,
        -2,
        -3,
        -4,
        -5,
    ]:
        place = [{"name": name, "partitions": [{"partition_index": 0, "timestamp": moment}]}]
        talk.ask(f"timestamp {moment}", ApiKey.LIST_OFFSETS, 9, replica_id=-1, topics=place)
