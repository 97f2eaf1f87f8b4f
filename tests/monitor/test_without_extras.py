"""A broker runs without the packages of outlets and services, and says what to install."""

from __future__ import annotations

import asyncio
import importlib.metadata
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from barnabas.broker.metrics.applications import Application, Applications
from barnabas.broker.metrics.endpoint import serve_metrics
from barnabas.broker.metrics.metrics import Metrics
from barnabas.broker.reporters.loading import load_reporters
from barnabas.settings import SettingsError
from barnabas.settings.classes import check_classes

LOADED = """
import sys
import barnabas.broker.process, barnabas.broker.metrics.endpoint, barnabas.broker.metrics.applications
heavy = ("opentelemetry", "starlette", "uvicorn", "grpc", "google", "prometheus_client", "barnabas.monitor")
print(sorted({name for name in sys.modules if name.startswith(heavy)}))
"""
MISSING = """
import sys
sys.modules["opentelemetry"] = None
from barnabas.broker.reporters.loading import load_reporters
print(list(load_reporters(["otlp"], {})))
"""


def test_a_broker_imports_no_package_of_outlets() -> None:
    found = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_an_outlet_whose_packages_are_missing_is_named_and_left_out() -> None:
    found = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
    assert "otlp is not used" in found.stderr and "install barnabas[otlp]" in found.stderr


def test_unknown_and_broken_reporters_are_named_and_java_ones_need_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    names = ["org.apache.kafka.common.metrics.JmxReporter", "no.such:Reporter", "nobody"]
    assert list(load_reporters(names, {})) == []
    assert "no.such:Reporter is not used" in caplog.text
    assert "no installed package has an entry point 'nobody'" in caplog.text
    assert "JmxReporter" not in caplog.text


def test_jolokia_without_its_packages_says_what_to_install() -> None:
    def missing() -> Application:
        raise ImportError("No module named 'starlette'")

    async def run() -> tuple[int, str]:
        server = await serve_metrics(
            Metrics(), "127.0.0.1", 0, applications=Applications({"/jolokia": missing})
        )
        port = server.sockets[0].getsockname()[1]
        try:
            return await asyncio.to_thread(refused, f"http://127.0.0.1:{port}/jolokia/version")
        finally:
            server.close()

    def refused(url: str) -> tuple[int, str]:
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(url, timeout=30)
        with error.value as response:
            return response.code, response.read().decode()

    status, text = asyncio.run(run())
    assert status == 501 and "barnabas[http]" in text


def test_a_reporter_is_found_by_the_name_of_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    group = "barnabas.metric_reporters"
    installed = importlib.metadata.EntryPoint("mine", f"{__package__}.own_reporter:Remembering", group)

    def entry_points(**wanted: str) -> list[importlib.metadata.EntryPoint]:
        return [installed] if wanted == {"group": group, "name": "mine"} else []

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    assert check_classes("metric.reporters", ("mine", "otlp")) is None
    with pytest.raises(SettingsError):
        check_classes("metric.reporters", ("others",))
    [(name, reporter)] = load_reporters(["mine"], {"printer.prefix": "x"})
    assert name == "mine" and type(reporter).__name__ == "Remembering"
