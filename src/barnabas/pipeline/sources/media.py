"""Metadata of binary files, and rows of Avro files. Runs in Spark's Python workers.

In: Arrow batches of Spark's `binaryFile`. Out: Arrow batches in the columns of the raw zone. Width and height
come from the headers of PNG, GIF and JPEG; pictures are not decoded. Does not know: where files are.
"""

from __future__ import annotations

import hashlib
import io
import json
import mimetypes
import struct
from collections.abc import Iterator
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    import pyarrow as pa

NAMES = ("key", "value", "topic", "partition", "offset", "timestamp", "metadata")
ROWS_PER_BATCH = 10_000
MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"), (b"%PDF-", "application/pdf"), (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)  # fmt: skip
# JPEG segments that begin with the size of the picture.
JPEG_SIZES = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}


def described(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row for each file: its bytes, and its metadata as JSON."""
    for batch in batches:
        for row in batch.to_pylist():
            facts = facts_of(row["path"], row["modificationTime"], row["content"])
            yield raw_batch(row["path"], row["modificationTime"], [row["content"]], json.dumps(facts))


def avro_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row for each record, as JSON."""
    import fastavro

    for batch in batches:
        for row in batch.to_pylist():
            values: list[bytes] = []
            first = 1
            for record in fastavro.reader(io.BytesIO(row["content"])):
                values.append(json.dumps(record, default=as_json).encode())
                if len(values) == ROWS_PER_BATCH:
                    yield raw_batch(row["path"], row["modificationTime"], values, None, first)
                    first += len(values)
                    values = []
            if values:
                yield raw_batch(row["path"], row["modificationTime"], values, None, first)


def raw_batch(
    path: str, modified: datetime, values: list[bytes], metadata: str | None, first: int = 1
) -> pa.RecordBatch:
    import pyarrow as pa

    count = len(values)
    columns = [
        pa.nulls(count, pa.binary()),
        pa.array(values, pa.binary()),
        pa.repeat(pa.scalar(path), count),
        pa.repeat(pa.scalar(0, pa.int32()), count),
        pa.array(range(first, first + count), pa.int64()),
        pa.repeat(pa.scalar(modified, pa.timestamp("us", tz="UTC")), count),
        pa.repeat(pa.scalar(metadata, pa.string()), count),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(NAMES))


def facts_of(path: str, modified: datetime, content: bytes) -> dict[str, Any]:
    name = unquote(path.rpartition("/")[2])
    kind = media_type(name, content)
    width, height = dimensions(content, kind)
    return {
        "path": path,
        "name": name,
        "extension": name.rpartition(".")[2].lower() if "." in name else None,
        "media_type": kind,
        "size_bytes": len(content),
        "modified_at": modified.isoformat(),
        "sha256": hashlib.sha256(content).hexdigest(),
        "width": width,
        "height": height,
    }


def media_type(name: str, content: bytes) -> str:
    """By the first bytes; by the name where they are unknown."""
    for magic, kind in MAGIC:
        if content.startswith(magic):
            return kind
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def dimensions(content: bytes, kind: str) -> tuple[int | None, int | None]:
    try:
        if kind == "image/png":
            return struct.unpack(">II", content[16:24])
        if kind == "image/gif":
            return struct.unpack("<HH", content[6:10])
        if kind == "image/jpeg":
            return jpeg_dimensions(content)
    except (struct.error, IndexError):
        pass
    return None, None


def jpeg_dimensions(content: bytes) -> tuple[int | None, int | None]:
    at = 2
    while at + 9 < len(content):
        if content[at] != 0xFF:
            return None, None
        marker = content[at + 1]
        if marker in JPEG_SIZES:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return width, height
        at += 2 + int(struct.unpack(">H", content[at + 2 : at + 4])[0])
    return None, None


def as_json(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        import base64

        return base64.b64encode(value).decode()
    return str(value)
