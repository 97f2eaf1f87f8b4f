"""Prints a log segment or a snapshot: a line for each batch and, with `--deep-iteration`, for each record.

In: a `.log` or `.checkpoint` file. Out: Kafka's lines. A batch that fails its checksum is printed as invalid;
bytes that are no batch are counted. Does not know: options, other files.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.files.data_files import mapped
from barnabas.cli.files.record_decoders import Decoder, as_text
from barnabas.cli.frame.message_json import compact, to_json
from barnabas.protocol import KafkaError, Message
from barnabas.records.batch import BatchHeader, TimestampType, compute_crc, headers, increment_sequence
from barnabas.records.compression import Compression
from barnabas.records.control import ControlType, EndMarker, read_control
from barnabas.records.crc32c import Buffer
from barnabas.records.record import Record, iter_records

BYTES_MAX = 2**31 - 1
TIMESTAMP_NAMES = {TimestampType.CREATE_TIME: "CreateTime", TimestampType.LOG_APPEND_TIME: "LogAppendTime"}
CONTROL_NAMES = {
    ControlType.LEADER_CHANGE: "LeaderChange:",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}


@dataclass(frozen=True, slots=True)
class SegmentView:
    """The parts of a segment to print, and their form."""

    records: bool = False
    content: bool = False
    record_metadata: bool = True
    bytes_max: int = BYTES_MAX
    decode: Decoder = as_text


class SegmentDump:
    """The lines of one file; `gaps` holds pairs of neighbouring offsets that are not consecutive."""

    def __init__(self, path: Path, view: SegmentView) -> None:
        self.path = path
        self.view = view
        self.gaps: list[tuple[int, int]] = []
        self.position = 0
        self._last_offset: int | None = None

    def lines(self) -> Iterator[str]:
        with mapped(self.path) as whole:
            buffer = memoryview(whole)[: self.view.bytes_max]
            try:
                yield from self._batches(buffer)
            finally:
                size = len(buffer)
                buffer.release()
        if size > self.position and self.view.bytes_max == BYTES_MAX:
            yield f"Found {size - self.position} invalid bytes at the end of {self.path.name}"

    def _batches(self, buffer: memoryview) -> Iterator[str]:
        try:
            for position, header in headers(buffer):
                yield batch_line(header, position, compute_crc(buffer, position, header.size) == header.crc)
                if self.view.records:
                    yield from self._records(buffer, position, header)
                self.position = position + header.size
        except KafkaError:
            return  # `lines` reports the rest as invalid bytes

    def _records(self, buffer: Buffer, position: int, header: BatchHeader) -> Iterator[str]:
        try:
            controls = read_control(buffer, position=position) if header.is_control else []
            for index, record in enumerate(iter_records(buffer, position=position)):
                if self._last_offset is not None and record.offset != self._last_offset + 1:
                    self.gaps.append((self._last_offset, record.offset))
                self._last_offset = record.offset
                control = controls[index] if controls else None
                shown = control_text(control.control_type, control.content) if control else ""
                yield self._record_line(record, header, shown)
        except KafkaError as error:
            yield f"| the records of this batch cannot be read: {error.message}"

    def _record_line(self, record: Record, header: BatchHeader, control: str) -> str:
        parts = []
        if self.view.record_metadata:
            parts.append(f"{record_metadata(record, header)}{control}")
        if self.view.content and not header.is_control:
            key, payload = self.view.decode(record)
            parts += [] if key is None else [f"key: {key}"]
            parts += [] if payload is None else [f"payload: {payload}"]
        return f"| {' '.join(parts)}" if parts else ""


def batch_line(header: BatchHeader, position: int, is_valid: bool) -> str:
    horizon = header.delete_horizon_ms
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count} "
        f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {truth(header.is_transactional)} isControl: {truth(header.is_control)} "
        f"deleteHorizonMs: {optional(horizon)} position: {position} "
        f"{TIMESTAMP_NAMES[header.timestamp_type]}: {header.max_timestamp} size: {header.size} "
        f"magic: {header.magic} compresscodec: {codec_name(header.compression)} crc: {header.crc} "
        f"isvalid: {truth(is_valid)}"
    )


def record_metadata(record: Record, header: BatchHeader) -> str:
    sequence = header.base_sequence
    if sequence >= 0:
        sequence = increment_sequence(sequence, record.offset - header.base_offset)
    names = ",".join(name for name, _ in record.headers)
    return (
        f"offset: {record.offset} {TIMESTAMP_NAMES[header.timestamp_type]}: {record.timestamp} "
        f"keySize: {size_of(record.key)} valueSize: {size_of(record.value)} sequence: {sequence} "
        f"headerKeys: [{names}]"
    )


def control_text(kind: int, content: EndMarker | Message | None) -> str:
    if isinstance(content, EndMarker):
        name = "ABORT" if content.aborted else "COMMIT"
        return f" endTxnMarker: {name} coordinatorEpoch: {content.coordinator_epoch}"
    if content is None:
        return f" controlType: UNKNOWN({kind})"
    version: int = content.version  # type: ignore[attr-defined]
    return f" {CONTROL_NAMES[ControlType(kind)]} {compact(to_json(content, version))}"


def truth(value: bool) -> str:
    return "true" if value else "false"


def optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def codec_name(number: int) -> str:
    return (
        Compression(number).name.lower()
        if number in Compression.__members__.values()
        else f"unknown({number})"
    )


def size_of(data: bytes | None) -> int:
    return -1 if data is None else len(data)
