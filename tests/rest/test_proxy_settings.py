"""Settings of the proxy reach its streams and tails."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.rest.application.from_settings import proxy_settings
from barnabas.rest.proxy import ProxySettings
from barnabas.services.settings.loading import load_settings


def made(given: Mapping[str, str]) -> ProxySettings:
    return proxy_settings(load_settings("rest", None, {"bootstrap.servers": "localhost:9092", **given}))


def test_without_settings_the_defaults_hold() -> None:
    assert made({}) == ProxySettings()


def test_every_setting_reaches_the_proxy() -> None:
    given = {
        "advertised.listeners": "https://proxy.example:443",
        "crn.authority.name": "shop.example",
        "api.v3.produce.rate.limit.enabled": "true",
        "api.v3.produce.rate.limit.max.requests.per.sec": "11",
        "api.v3.produce.rate.limit.max.bytes.per.sec": "12",
        "api.v3.produce.batch.maximum.entries": "13",
        "barnabas.stream.record.max.bytes": "1400",
        "streaming.connection.max.duration.ms": "15",
        "streaming.connection.max.duration.grace.period.ms": "16",
        "barnabas.stream.idle.ms": "17",
        "barnabas.stream.records.in.flight.max": "18",
        "barnabas.stream.bytes.in.flight.max": "19",
        "barnabas.tail.connections.max": "20",
        "barnabas.tail.keep.alive.ms": "21",
        "barnabas.tail.fetch.max.bytes": "22",
        "access.control.allow.origin": "https://page.example",
    }
    numbers = (11, 12, 13, 1400, 15, 16, 17, 18, 19, 20, 21, 22)
    expected = ProxySettings("https://proxy.example:443", "shop.example", *numbers, ("https://page.example",))
    assert made(given) == expected


def test_rates_count_only_where_they_are_enabled() -> None:
    assert made({"api.v3.produce.rate.limit.max.requests.per.sec": "11"}).produce_records_per_s == 0
