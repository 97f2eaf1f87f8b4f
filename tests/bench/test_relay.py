"""The relay that a produce is compared with: every record passes all of its processes."""

from __future__ import annotations

from bench.generator import Plan

from bench import frames, generator, relay


def test_every_record_gets_one_response() -> None:
    load = frames.produce("latency", frames.batch_of(1), 2, acks=-1)
    with relay.relay() as port:
        found = generator.run(port, load.frames, Plan(1, 1, requests=500, seconds=60))
    assert found.requests == 500
    assert found.bytes_in == 500 * len(relay.ANSWER)
