"""Settings of an application of streams, under Kafka Streams' names.

In: an application id, bootstrap servers, settings as text. Out: checked values. Settings of clients
(`security.…`, `sasl.…`, `ssl.…`, `client.id`) go to the client, those of `spark.` to the session.
Does not know: plans.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from barnabas.plans.interpreter.records import Handler, fail, log_and_continue
from barnabas.plans.interpreter.task import Handlers
from barnabas.spark.basics.settings import ClientSettings, OptionError, client_settings
from barnabas.streams.spark.task_port import TaskSettings

GUARANTEES = {"at_least_once": False, "exactly_once": True, "exactly_once_v2": True}
RESETS = ("earliest", "latest")
HANDLERS: dict[str, Handler] = {"fail": fail, "continue": log_and_continue}
KAFKA_HANDLERS = {  # Kafka Streams' classes for the same
    "LogAndFailExceptionHandler": "fail",
    "LogAndContinueExceptionHandler": "continue",
    "LogAndFailProcessingExceptionHandler": "fail",
    "LogAndContinueProcessingExceptionHandler": "continue",
    "DefaultProductionExceptionHandler": "fail",
}
DESERIALIZATION = "deserialization.exception.handler"
PROCESSING = "processing.exception.handler"
PRODUCTION = "production.exception.handler"
MASTER = "spark.master"
HTTP = "http."  # settings of the service that answers interactive queries
OWN = {
    "processing.guarantee",
    "state.dir",
    "auto.offset.reset",
    "application.server",
    DESERIALIZATION,
    PROCESSING,
    PRODUCTION,
}


@dataclass(frozen=True, slots=True)
class StreamsSettings:
    tasks: TaskSettings
    handlers: Handlers
    offset_reset: str
    master: str
    spark: Mapping[str, str]

    @property
    def state_folder(self) -> Path:
        return Path(self.tasks.state_dir)


def streams_settings(application_id: str, servers: str, given: Mapping[str, str]) -> StreamsSettings:
    """Check the settings; OptionError names the one that is wrong."""
    if not application_id or "/" in application_id:
        raise OptionError(f"the application id is {application_id!r}: it must be a name without slashes")
    guarantee = given.get("processing.guarantee", "at_least_once")
    if guarantee not in GUARANTEES:
        raise OptionError(f"processing.guarantee is {guarantee!r}, it may be {', '.join(GUARANTEES)}")
    reset = given.get("auto.offset.reset", RESETS[0])
    if reset not in RESETS:
        raise OptionError(f"auto.offset.reset is {reset!r}, it may be {' or '.join(RESETS)}")
    spark = {name: value for name, value in given.items() if name.startswith("spark.")}
    client = client_of(servers, given, is_exactly_once=GUARANTEES[guarantee])
    folder = given.get("state.dir") or str(Path(tempfile.gettempdir()) / "kafka-streams")
    tasks = TaskSettings(application_id, client, str(Path(folder).absolute()), GUARANTEES[guarantee])
    handlers = Handlers(
        handler(given, DESERIALIZATION), handler(given, PROCESSING), handler(given, PRODUCTION)
    )
    return StreamsSettings(tasks, handlers, reset, spark.pop(MASTER, "local[*]"), spark)


def client_of(servers: str, given: Mapping[str, str], *, is_exactly_once: bool) -> ClientSettings:
    options = {
        f"kafka.{name}": value
        for name, value in given.items()
        if name not in OWN and not name.startswith(("spark.", HTTP))
    }
    isolation = "read_committed" if is_exactly_once else "read_uncommitted"
    return client_settings(
        {**options, "kafka.bootstrap.servers": servers, "kafka.isolation.level": isolation}
    )


def handler(given: Mapping[str, str], name: str) -> Handler:
    text = given.get(name) or given.get(f"default.{name}") or "fail"
    found = KAFKA_HANDLERS.get(text.rpartition(".")[2], text)
    if found not in HANDLERS:
        raise OptionError(f"{name} is {text!r}, it may be fail, continue or a class of Kafka Streams")
    return HANDLERS[found]
