"""The program that answers interactive queries of an application, beside the program that runs it.

Started by the supervisor with its settings as JSON in the first argument. It reads changelogs only, so it
needs no Spark, and a lookup does not wait for batches. Does not know: leases, upgrades.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

from barnabas.services.app import Service
from barnabas.services.hosting.process import main as serve
from barnabas.services.settings.listeners import Listener
from barnabas.services.settings.loading import load_settings
from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.streams.run.settings import HTTP, StreamsSettings, streams_settings
from barnabas.streams.run.topologies import load_plan
from barnabas.streams.views.http.service import streams_service
from barnabas.streams.views.state_view import StateView

PROGRAM = "serving"
VIEWS = "views"
READY = "serving.json"


def main(arguments: Mapping[str, object]) -> int:
    given = arguments["settings"]
    assert isinstance(given, dict)
    application_id = str(arguments["application_id"])
    settings = streams_settings(application_id, str(arguments["servers"]), given)
    plan = load_plan(str(arguments["topology"]), application_id, settings.optimization)
    folder = settings.state_folder / application_id
    address: list[str] = []

    def make(found: ServiceSettings) -> Service:
        address.append(found["advertised.listener"] or hostport(found.listeners[0]))
        return streams_service(
            lambda: StateView(plan, settings.tasks.client, folder=folder / VIEWS), lambda: address[-1]
        )

    def ready(listeners: tuple[Listener, ...]) -> None:
        partial = folder / f"{READY}.partial"
        partial.write_text(json.dumps({"url": str(listeners[0]), "pid": os.getpid()}))
        partial.replace(folder / READY)

    try:
        return serve(http_settings(settings, given), make, on_ready=ready, parent=os.getppid())
    finally:
        (folder / READY).unlink(missing_ok=True)


def http_settings(settings: StreamsSettings, given: Mapping[str, str]) -> ServiceSettings:
    overrides = {name.removeprefix(HTTP): value for name, value in given.items() if name.startswith(HTTP)}
    if "application.server" in given:
        overrides.setdefault("advertised.listener", given["application.server"])
    return load_settings("streams", overrides=overrides)


def hostport(listener: Listener) -> str:
    return f"{listener.host}:{listener.port}"


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
