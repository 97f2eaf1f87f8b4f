"""Values that clients pushed leave the page when their client has ended."""

import re
import struct

import pytest

from barnabas.broker.metrics import Metrics, client_store, otlp
from barnabas.broker.metrics.client_metrics import ClientMetrics
from barnabas.broker.metrics.client_store import LAST_VALUES_S, MISSED_PUSHES, ClientStore
from barnabas.broker.metrics.telemetry import TelemetryClient
from barnabas.metrics.dialects import DIALECTS
from barnabas.metrics.exposition import Page

INTERVAL_S = 60


def client(name: str, *, is_terminating: bool = False) -> TelemetryClient:
    return TelemetryClient(
        instance_id=name,
        client_id=name,
        software_name="s",
        software_version="1",
        host="127.0.0.1",
        push_interval_ms=INTERVAL_S * 1000,
        is_terminating=is_terminating,
    )


def length(data: bytes, field: int) -> bytes:
    return bytes([field << 3 | 2, len(data)]) + data


def payload(value: float) -> bytes:
    """MetricsData with one number."""
    point = length(b"\x21" + struct.pack("<d", value), 1)
    metric = length(b"connections", 1) + length(point, 5)
    return length(length(length(metric, 2), 2), 1)


def shown(store: ClientStore) -> list[str]:
    return [client.client_id for client, _ in store.values()]


def test_a_client_that_pushes_no_more_is_forgotten_after_some_intervals() -> None:
    now_s = [0.0]
    store = ClientStore(lambda: now_s[0])
    store.put(client("gone"), payload(1))
    store.put(client("stays"), payload(1))
    now_s[0] = MISSED_PUSHES * INTERVAL_S
    assert shown(store) == ["gone", "stays"]
    store.put(client("stays"), payload(2))
    now_s[0] += 1
    assert shown(store) == ["stays"]


def test_the_last_values_of_a_client_that_ends_stay_for_a_scrape_or_two() -> None:
    now_s = [0.0]
    store = ClientStore(lambda: now_s[0])
    store.put(client("ends", is_terminating=True), payload(1))
    now_s[0] = LAST_VALUES_S
    assert shown(store) == ["ends"]
    now_s[0] += 1
    assert shown(store) == []


def test_clients_are_bounded() -> None:
    store = ClientStore(lambda: 0.0)
    for number in range(client_store.CLIENTS_MAX + 1):
        store.put(client(str(number)), payload(1))
    found = shown(store)
    assert len(found) == client_store.CLIENTS_MAX
    assert "0" not in found


def named(name: str) -> bytes:
    point = length(b"\x21" + struct.pack("<d", 1.0), 1)
    return length(length(length(length(name.encode(), 1) + length(point, 5), 2), 2), 1)


def test_names_take_a_bounded_number_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_store, "CHARACTERS_MAX", 100)
    monkeypatch.setattr(client_store, "ALL_CHARACTERS_MAX", 150)
    store = ClientStore()
    store.put(client("a"), named("x" * 60) + named("y" * 60) + named("z" * 40))
    [(_, values)] = store.values()
    assert [name[0] for name, _, _ in values] == ["x", "z"]
    store.put(client("b"), named("x" * 60))
    assert shown(store) == ["b"]
    store.put(client("c"), named("x" * 60))
    store.put(client("b"), named("x" * 60))
    assert shown(store) == ["c", "b"]


def test_a_payload_of_many_fields_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "FIELDS_MAX", 15)
    assert len(list(otlp.points(payload(1)))) == 1
    with pytest.raises(ValueError, match="more than 15 fields"):
        list(otlp.points(payload(1) * 3))
    with pytest.raises(ValueError, match="more than 15 fields"):
        list(otlp.points(b"\x10\x01" * 16))


def with_attributes(*names: str, is_monotonic: bool = False) -> bytes:
    """MetricsData with one number that has attributes."""
    pairs = [length(length(name.encode(), 1) + length(length(b"x", 1), 2), 7) for name in names]
    point = length(b"\x21" + struct.pack("<d", 1.0) + b"".join(pairs), 1)
    kind = length(point + (b"\x18\x01" if is_monotonic else b""), 7 if is_monotonic else 5)
    return length(length(length(length(b"odd", 1) + kind, 2), 2), 1)


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_attributes_with_odd_names_leave_the_page_readable(dialect: str) -> None:
    """A client chooses them; one wrong name would make Prometheus refuse all metrics of the broker."""
    receiver, metrics = ClientMetrics(), Metrics()
    receiver.attach(metrics)
    together = (("é", "1st", "__name__", ""), ("a-b", "a.b", "A_B"), ('quote"', "line\n", "le", "metric"))
    for names in together:
        receiver.export_metrics(client("odd"), with_attributes(*names))
    receiver.export_metrics(client("odd"), with_attributes("a-b"))
    receiver.export_metrics(client("odd"), with_attributes("a.b"))
    receiver.export_metrics(client("odd"), with_attributes(is_monotonic=True))
    receiver.export_metrics(client("odd"), with_attributes())
    page = "".join(Page(metrics.registry, dialect).parts())
    lines = [line for line in page.splitlines() if line.startswith("barnabas_client_metrics_value{")]
    assert len(lines) == len(set(lines)) == len(together) + 1  # of the names that become one
    for line in lines:
        labels = re.findall(r'([^{},="]+)="(?:[^"\\]|\\.)*"', line)
        assert len(labels) == len(set(labels)), line
        assert all(re.fullmatch(r"[a-z][a-z0-9_]*", label) for label in labels), labels
        assert 'metric="odd"' in line
