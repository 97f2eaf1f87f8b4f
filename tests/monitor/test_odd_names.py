"""Groups, users and clients with odd names, and numbers without an end, in every outlet."""

from __future__ import annotations

import json
import math
import pickle
import re
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.broker.reporters.reporter import Snapshot
from barnabas.metrics import Kind, Registry, Sample, metric_of
from barnabas.metrics.exposition import Page
from barnabas.monitor.outlets.cloudwatch import documents
from barnabas.monitor.outlets.graphite import GraphiteOutlet
from barnabas.monitor.outlets.otlp import metrics_of
from barnabas.monitor.outlets.points import points
from barnabas.monitor.outlets.statsd import StatsdOutlet
from barnabas.runtime.pieces import at_once

ODD = (
    'say "x"', "it's", "a\nb", "a\r\nb\tc", "a;b=c,d|e#f:g~h", "grün", "読者", "back\\slash", " ", "\0",
    "x" * 2_000, "{a=\"b\"}", "a@b/c.d", "\u2028", "😀",
)  # fmt: skip
METRIC = metric_of("kafka.server", "Fetch", "byte-rate", Kind.GAUGE, "Bytes a second.")
VALUES = (1.5, math.inf, -math.inf, math.nan)


def snapshot() -> Snapshot:
    samples = [Sample(METRIC, (("client-id", name),), 1.5) for name in ODD]
    samples += [Sample(METRIC, (("client-id", f"v{index}"),), value) for index, value in enumerate(VALUES)]
    return Snapshot(1_000.0, 1.0, samples, labels={"cluster": "c", "node": "1"})


class Sent:
    def __init__(self) -> None:
        self.data: list[bytes] = []

    def send(self, data: Any) -> None:
        self.data += [data] if isinstance(data, bytes) else list(data)

    def close(self) -> None:
        return


def settings(**given: object) -> dict[str, object]:
    names = {
        "barnabas.metrics.dialect": "jmx",
        "barnabas.graphite.host": "127.0.0.1", "barnabas.graphite.port": 1,
        "barnabas.graphite.prefix": "production.kafka", "barnabas.graphite.protocol": "plaintext",
        "barnabas.graphite.tags": False,
        "barnabas.statsd.host": "127.0.0.1", "barnabas.statsd.port": 1,
        "barnabas.statsd.prefix": "", "barnabas.statsd.tags": "none",
    }  # fmt: skip
    return names | {f"barnabas.{name.replace('__', '.')}": value for name, value in given.items()}


def graphite(**given: object) -> bytes:
    outlet, sent = GraphiteOutlet(), Sent()
    outlet.configure(settings(**given))
    outlet._connection = sent  # type: ignore[assignment]
    outlet.report(snapshot())
    return b"".join(sent.data)


@pytest.mark.parametrize("has_tags", [False, True])
def test_graphite_gets_one_line_for_each_number(has_tags: bool) -> None:
    lines = graphite(graphite__tags=has_tags).decode().split("\n")[:-1]
    assert len(lines) == len(ODD) + 1
    for line in lines:
        path, value, time_s = line.split(" ")
        assert (float(value), time_s) == (1.5, "1000")
        assert path.startswith("production.kafka.")
        assert path.isprintable() and not re.search(r"\s", path)
        assert all(re.fullmatch(r"[^;=~]+=[^;~]+", tag) for tag in path.split(";")[1:])


def test_graphite_gets_only_numbers_in_pickles() -> None:
    data = graphite(graphite__protocol="pickle")
    [size] = struct.unpack("!L", data[:4])
    found = pickle.loads(data[4 : 4 + size])
    assert [value for _, (_, value) in found] == [1.5] * (len(ODD) + 1)


@pytest.mark.parametrize("tags", ["none", "datadog"])
def test_statsd_gets_one_line_for_each_number(tags: str) -> None:
    outlet, sent = StatsdOutlet(), Sent()
    outlet.configure(settings(statsd__tags=tags))
    outlet._datagrams = sent  # type: ignore[assignment]
    outlet.report(snapshot())
    lines = [each.decode() for each in sent.data]
    assert len(lines) == len(ODD) + 1
    for line in lines:
        name, _, rest = line.partition(":")
        assert name and rest.split("|")[:2] == ["1.5", "g"]
        assert line.isprintable() and len(line.split("|")) == (3 if tags == "datadog" else 2)


def test_cloudwatch_gets_dimensions_that_it_takes() -> None:
    given = points(snapshot())
    lines = [json.dumps(each, allow_nan=False) for each in documents(given, snapshot(), "n", None)]
    found = [json.loads(line) for line in lines]
    assert len(found) == len(ODD) + 1
    for each in found:
        [dimensions] = each["_aws"]["CloudWatchMetrics"][0]["Dimensions"]
        for name in dimensions:
            text = each[name]
            assert text.isascii() and text.isprintable() and text.strip() and len(text) <= 1024
    name = "clientId"
    assert len({each[name] for each in found}) == len(found)


def test_opentelemetry_gets_names_as_they_are() -> None:
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.resources import Resource

    from barnabas.monitor.outlets.otlp import SCOPE

    metrics = list(metrics_of(list(points(snapshot())), snapshot()))
    data = MetricsData([ResourceMetrics(Resource({}), [ScopeMetrics(SCOPE, metrics, "")], "")])
    encoded = MessageToDict(encode_metrics(data))
    [metric] = encoded["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    texts = {
        each["value"].get("stringValue", "")
        for point in metric["gauge"]["dataPoints"]
        for each in point["attributes"]
    }
    assert set(ODD) <= texts


def test_the_prometheus_page_is_read_back_as_it_was() -> None:
    registry = Registry()

    def rows() -> Iterator[tuple[tuple[tuple[str, str], ...], float]]:
        for each in snapshot().samples:
            assert isinstance(each.value, float)
            yield each.tags, each.value

    registry.add(METRIC, rows)
    text = "".join(at_once(page_text(Page(registry, "jmx"))))
    [family] = text_string_to_metric_families(text)
    found = {next(iter(each.labels.values())): each.value for each in family.samples}
    assert set(ODD) <= set(found)
    assert (found["v1"], found["v2"], math.isnan(found["v3"])) == (math.inf, -math.inf, True)


def page_text(page: Page) -> Any:
    return (yield from collected(page))


def collected(page: Page) -> Any:
    parts = []
    for part in page.parts():
        parts.append(part)
        yield
    return parts
