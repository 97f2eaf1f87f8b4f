"""Connectors of this room, by the names of Java."""

from __future__ import annotations

from barnabas.connect.plugins.known import Kind, Known

HERE = "barnabas.connect.connectors.files"
SPOOL = "com.github.jcustenborder.kafka.connect.spooldir"
PLUGINS = (
    Known(
        Kind.SOURCE,
        f"{HERE}.file_stream_source:FileStreamSourceConnector",
        ("org.apache.kafka.connect.file.FileStreamSourceConnector",),
    ),
    Known(
        Kind.SINK,
        f"{HERE}.file_stream_sink:FileStreamSinkConnector",
        ("org.apache.kafka.connect.file.FileStreamSinkConnector",),
    ),
    Known(Kind.SOURCE, f"{HERE}.tail_source:TailSourceConnector"),
    Known(Kind.SOURCE, f"{HERE}.directory_source:DirectorySourceConnector"),
    Known(
        Kind.SOURCE,
        f"{HERE}.directory_source:CsvDirectorySourceConnector",
        (f"{SPOOL}.SpoolDirCsvSourceConnector", f"{SPOOL}.SpoolDirSchemaLessCsvSourceConnector"),
    ),
    Known(
        Kind.SOURCE,
        f"{HERE}.directory_source:JsonDirectorySourceConnector",
        (f"{SPOOL}.SpoolDirJsonSourceConnector", f"{SPOOL}.SpoolDirSchemaLessJsonSourceConnector"),
    ),
    Known(
        Kind.SOURCE,
        f"{HERE}.directory_source:AvroDirectorySourceConnector",
        (f"{SPOOL}.SpoolDirAvroSourceConnector",),
    ),
    Known(
        Kind.SOURCE,
        f"{HERE}.directory_source:TextDirectorySourceConnector",
        (f"{SPOOL}.SpoolDirLineDelimitedSourceConnector",),
    ),
    Known(
        Kind.SOURCE,
        f"{HERE}.directory_source:BinaryDirectorySourceConnector",
        (f"{SPOOL}.SpoolDirBinaryFileSourceConnector",),
    ),
)
