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

from barnabas.plans.interpreter.records import ErrorSink, Handler, fail, log_and_continue, nothing
from barnabas.plans.interpreter.task import Handlers
from barnabas.spark.basics.settings import ClientSettings, OptionError, client_settings
from barnabas.streams.dsl.optimizing import wanted
from barnabas.streams.run.error_records import DeadLetters, ProcessingLog, Sinks
from barnabas.streams.run.topologies import OPTIMIZATION, TopologyError, load_attribute
from barnabas.streams.spark.internal_topics import USUAL, Creation
from barnabas.streams.spark.purging import PURGE_S
from barnabas.streams.spark.renewing import METADATA_AGE_S
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
DEAD_LETTERS = "errors.dead.letter.queue.topic.name"
PROCESSING_LOG = "processing.log.topic"
PURGE_INTERVAL = "repartition.purge.interval.ms"
REPLICAS = "replication.factor"
TOPIC = "topic."  # settings of internal topics
METADATA_AGE = "metadata.max.age.ms"
RECORDING_LEVEL = "metrics.recording.level"
LEVELS = {"INFO": False, "DEBUG": True, "TRACE": True}  # whether stores and nodes are measured
MASTER = "spark.master"
HTTP = "http."  # settings of the service that answers interactive queries
OWN = {
    "processing.guarantee",
    "state.dir",
    "auto.offset.reset",
    "application.server",
    DEAD_LETTERS,
    PROCESSING_LOG,
    PURGE_INTERVAL,
    REPLICAS,
    METADATA_AGE,
    RECORDING_LEVEL,
    OPTIMIZATION,
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
    error_topics: tuple[str, ...] = ()  # created at the start where they are missing
    purge_s: float = PURGE_S
    creation: Creation = USUAL
    metadata_age_s: float = METADATA_AGE_S
    optimization: str = "none"

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
    level = given.get(RECORDING_LEVEL, "INFO")
    if level not in LEVELS:
        raise OptionError(f"{RECORDING_LEVEL} is {level!r}, it may be {', '.join(LEVELS)}")
    tasks = TaskSettings(
        application_id,
        client,
        str(Path(folder).absolute()),
        GUARANTEES[guarantee],
        measures_details=LEVELS[level],
    )
    sinks: list[ErrorSink] = []
    if DEAD_LETTERS in given:
        sinks.append(DeadLetters(given[DEAD_LETTERS]))
    if PROCESSING_LOG in given:
        sinks.append(ProcessingLog(given[PROCESSING_LOG], application_id))
    handlers = Handlers(
        handler(given, DESERIALIZATION),
        handler(given, PROCESSING),
        handler(given, PRODUCTION),
        sink=Sinks(sinks) if sinks else nothing,
    )
    error_topics = tuple(given[name] for name in (DEAD_LETTERS, PROCESSING_LOG) if name in given)
    master = spark.pop(MASTER, "local[*]")
    return StreamsSettings(
        tasks,
        handlers,
        reset,
        master,
        spark,
        error_topics,
        seconds_of(given, PURGE_INTERVAL, PURGE_S),
        creation_of(given),
        seconds_of(given, METADATA_AGE, METADATA_AGE_S),
        optimization_of(given.get(OPTIMIZATION, "none")),
    )


def optimization_of(text: str) -> str:
    """Check the value of `topology.optimization`."""
    try:
        wanted(text)
    except ValueError as error:
        raise OptionError(str(error)) from None
    return text


def client_of(servers: str, given: Mapping[str, str], *, is_exactly_once: bool) -> ClientSettings:
    options = {
        f"kafka.{name}": value
        for name, value in given.items()
        if name.removeprefix("default.") not in OWN and not name.startswith(("spark.", HTTP, TOPIC))
    }
    isolation = "read_committed" if is_exactly_once else "read_uncommitted"
    return client_settings(
        {**options, "kafka.bootstrap.servers": servers, "kafka.isolation.level": isolation}
    )


def seconds_of(given: Mapping[str, str], name: str, default_s: float) -> float:
    text = given.get(name, str(int(default_s * 1000)))
    if not text.isdecimal():
        raise OptionError(f"{name} is {text!r}: a number of milliseconds is needed")
    return int(text) / 1000


def creation_of(given: Mapping[str, str]) -> Creation:
    """Replicas and settings of internal topics."""
    text = given.get(REPLICAS, "-1")
    if text != "-1" and not (text.isdecimal() and 0 < int(text) < 2**15):
        raise OptionError(f"{REPLICAS} is {text!r}: a number of replicas is needed, or -1 for the brokers'")
    configs = {name.removeprefix(TOPIC): value for name, value in given.items() if name.startswith(TOPIC)}
    return Creation(int(text), configs)


def handler(given: Mapping[str, str], name: str) -> Handler:
    """Find a handler by a word, a class of Kafka Streams, or `module:name`: a function of the failure, or
    a class whose objects have `handle(failure)` or can be called."""
    text = given.get(name) or given.get(f"default.{name}") or "fail"
    found = KAFKA_HANDLERS.get(text.rpartition(".")[2], text)
    if found in HANDLERS:
        return HANDLERS[found]
    if ":" not in text:
        raise OptionError(
            f"{name} is {text!r}, it may be fail, continue, a class of Kafka Streams, or module:name"
        )
    try:
        own = load_attribute(text, "handler")
    except TopologyError as error:
        raise OptionError(f"{name}: {error}") from error
    judge = own() if isinstance(own, type) else own
    judge = getattr(judge, "handle", judge)
    if not callable(judge):
        raise OptionError(f"{name}: {text} can neither be called nor has it a method handle(failure)")
    found_handler: Handler = judge
    return found_handler
