"""Connectors of object stores and of HDFS-style folders, with Confluent's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from barnabas.connect.config import ConfigDef, ConfigError
from barnabas.connect.connectors.objects.object_settings import definitions, layout_of
from barnabas.connect.connectors.objects.object_sink import ObjectSinkTask
from barnabas.connect.plugins import ConnectError, Connector


class S3SinkConnector(Connector):
    KIND = "sink"
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("io.confluent.connect.s3.S3SinkConnector",)
    CONFIG: ClassVar[ConfigDef] = definitions(for_hdfs=False)
    task = ObjectSinkTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        """Settings that do not fit together are found before a task starts."""
        try:
            layout_of(self.CONFIG.parse(config))
        except ConfigError:
            return {}  # reported by name already
        except ConnectError as error:
            named = [name for name in self.CONFIG.keys if str(error).startswith(name)]
            return {named[0] if named else "format.class": [str(error)]}
        return {}


class HdfsSinkConnector(S3SinkConnector):
    JAVA_NAMES = (
        "io.confluent.connect.hdfs.HdfsSinkConnector",
        "io.confluent.connect.hdfs3.Hdfs3SinkConnector",
    )
    CONFIG = definitions(for_hdfs=True)
