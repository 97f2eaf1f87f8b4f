"""Trials through TLS: produce, fetch, and connections that come and go.

In: brokers with a TLS listener beside the plain one. Out: one value for each row. The certificate has an
elliptic-curve key, as those of `barnabas certs`; both brokers choose TLS 1.3.
"""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from barnabas.security.tls.certificates import issue, new_authority
from bench import frames, generator
from bench.brokers import Contender
from bench.generator import LoadError, Plan
from bench.loads import BACKLOG, FETCH_BYTES_MAX, Produce, Scale, Trial, make_backlog

CONNECTIONS = 32  # that shake hands at the same time


@contextmanager
def stores() -> Iterator[Mapping[str, str]]:
    """Settings of a key store that both brokers read, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as folder:
        now = datetime.datetime.now(datetime.UTC)
        made = issue(new_authority("Bench", now), "broker", now, hosts=["localhost", "127.0.0.1"])
        path = Path(folder) / "broker.pem"
        path.write_bytes(made.key_pem + made.chain_pem)
        yield {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}


def fetch(broker: Contender, scale: Scale) -> dict[str, float]:
    """One consumer fetches from the first offset on, one request at a time, in a circle."""
    batch = frames.batch_of(139)
    records = scale.backlog_bytes // batch.size * batch.records
    step = max(1, FETCH_BYTES_MAX // batch.size) * batch.records
    content = b"".join(
        frames.fetch(BACKLOG, offset, FETCH_BYTES_MAX) for offset in range(0, max(1, records - step), step)
    )
    load = generator.run(broker.tls_port, content, Plan(1, 1, seconds=scale.seconds), tls=True)
    if load.bytes_in < load.requests * batch.size:
        raise LoadError(f"{broker.name} sent {load.bytes_in} bytes for {load.requests} fetches")
    return {"tls-fetch": load.bytes_in / load.seconds / 1e6}


def connections(broker: Contender, scale: Scale) -> dict[str, float]:
    found = generator.connect_again_and_again(
        broker.tls_port, frames.API_VERSIONS, CONNECTIONS, scale.seconds
    )
    return {"tls-connections": found}


PRODUCE = (
    Produce("tls-produce-880k", frames.batch_of(880, 1000), 1, 4, tls=True),
    Produce("tls-produce-15k", frames.batch_of(139), 1, 64, tls=True),
)
TRIALS = (
    *(Trial((each.row,), each.measure) for each in PRODUCE),
    Trial(("tls-fetch",), fetch, prepare=make_backlog),
    Trial(("tls-connections",), connections),
)
