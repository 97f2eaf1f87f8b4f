"""The contract between connectors and the worker, and the discovery of plugins."""

from barnabas.connect.plugins.connector import SINK, SOURCE, Connector, TaskClass
from barnabas.connect.plugins.contexts import (
    ConnectorContext,
    OffsetReader,
    SinkContext,
    SinkOffsets,
    SourceContext,
    SourceOffset,
    SourcePartition,
    TaskContext,
    TransactionContext,
)
from barnabas.connect.plugins.decorators import frame_source, sink, source
from barnabas.connect.plugins.discovery import Plugins
from barnabas.connect.plugins.errors import (
    ConnectError,
    FencedError,
    PluginLoadError,
    RetriableError,
    UnknownPluginError,
)
from barnabas.connect.plugins.known import CONNECTORS, Kind, Known
from barnabas.connect.plugins.spark import Batch, Slice, SparkSink, SparkSource
from barnabas.connect.plugins.tasks import Positions, SinkTask, SourceTask

__all__ = [
    "CONNECTORS",
    "SINK",
    "SOURCE",
    "Batch",
    "ConnectError",
    "Connector",
    "ConnectorContext",
    "FencedError",
    "Kind",
    "Known",
    "OffsetReader",
    "PluginLoadError",
    "Plugins",
    "Positions",
    "RetriableError",
    "SinkContext",
    "SinkOffsets",
    "SinkTask",
    "Slice",
    "SourceContext",
    "SourceOffset",
    "SourcePartition",
    "SourceTask",
    "SparkSink",
    "SparkSource",
    "TaskClass",
    "TaskContext",
    "TransactionContext",
    "UnknownPluginError",
    "frame_source",
    "sink",
    "source",
]
