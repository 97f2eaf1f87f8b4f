"""The formats of the console consumer: Kafka's default format, its log format, or no output.

In: properties of the formatter (Kafka's names). Out: bytes for each record. Does not know: where they go.
"""

from collections.abc import Callable, Mapping

from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.records.deserializers import Deserializer, deserializer, raw
from barnabas.cli.records.line_reader import is_true
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.core.share_fetching import ShareRecord
from barnabas.records.batch import TimestampType

AnyRecord = ConsumerRecord | ShareRecord
Formatter = Callable[[AnyRecord], bytes]

TIMESTAMP_NAMES = {TimestampType.CREATE_TIME: b"CreateTime", TimestampType.LOG_APPEND_TIME: b"LogAppendTime"}


class DefaultFormatter:
    """Prints timestamp, partition, offset, epoch, headers, key and value, each if its property is true."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def wanted(name: str, default: str = "false") -> bool:
            return is_true(properties.get(name, default))

        self._timestamp = wanted("print.timestamp")
        self._partition = wanted("print.partition")
        self._offset = wanted("print.offset")
        self._delivery = wanted("print.delivery")
        self._epoch = wanted("print.epoch")
        self._headers = wanted("print.headers")
        self._key = wanted("print.key")
        self._value = wanted("print.value", "true")
        self._separator = properties.get("key.separator", "\t").encode()
        self._line_end = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._key_reader = reader(properties, "key.deserializer")
        self._value_reader = reader(properties, "value.deserializer")
        self._headers_reader = reader(properties, "headers.deserializer", "header.deserializer")

    def __call__(self, record: AnyRecord) -> bytes:
        parts = []
        if self._timestamp:
            parts.append(b"%b:%d" % (TIMESTAMP_NAMES[record.timestamp_type], record.timestamp))
        if self._partition:
            parts.append(b"Partition:%d" % record.partition)
        if self._offset:
            parts.append(b"Offset:%d" % record.offset)
        if self._delivery:
            parts.append(delivery_text(record))
        if self._epoch:
            known = record.leader_epoch >= 0 and not isinstance(record, ShareRecord)  # as Kafka's tools do
            parts.append(b"Epoch:%d" % record.leader_epoch if known else b"Epoch:NOT_PRESENT")
        if self._headers:
            parts.append(self._header_text(record))
        if self._key:
            parts.append(self._read(self._key_reader, record.key))
        if self._value:
            parts.append(self._read(self._value_reader, record.value))
        return self._separator.join(parts) + self._line_end if parts else b""

    def _header_text(self, record: AnyRecord) -> bytes:
        pairs = (
            name.encode() + b":" + self._read(self._headers_reader, data) for name, data in record.headers
        )
        return self._headers_separator.join(pairs) or b"NO_HEADERS"

    def _read(self, convert: Deserializer, data: bytes | None) -> bytes:
        return self._null if data is None else convert(data)


def delivery_text(record: AnyRecord) -> bytes:
    return (
        b"Delivery:%d" % record.delivery_count if isinstance(record, ShareRecord) else b"Delivery:NOT_PRESENT"
    )


def reader(properties: Mapping[str, str], *names: str) -> Deserializer:
    for name in names:
        if name in properties:
            return deserializer(properties[name])
    return raw


def logging_format(record: AnyRecord) -> bytes:
    kind = TIMESTAMP_NAMES[record.timestamp_type].decode()
    key = "null" if record.key is None else record.key.decode("utf-8", "replace")
    value = "null" if record.value is None else record.value.decode("utf-8", "replace")
    size = 0 if record.value is None else len(record.value)
    return f"{kind}:{record.timestamp}, key:{key}, value:{value}, size:{size}\n".encode()


def no_format(record: AnyRecord) -> bytes:
    return b""


def formatter(class_name: str | None, properties: Mapping[str, str]) -> Formatter:
    """The formatter with a Java class name (None: the default)."""
    name = (class_name or "DefaultMessageFormatter").rpartition(".")[2].rpartition("$")[2]
    if name == "DefaultMessageFormatter":
        return DefaultFormatter(properties)
    if name == "LoggingMessageFormatter":
        return logging_format
    if name == "NoOpMessageFormatter":
        return no_format
    raise ToolError(
        f"--formatter {class_name}: this tool knows DefaultMessageFormatter, LoggingMessageFormatter "
        "and NoOpMessageFormatter"
    )
