"""Metadata of binary files, and rows of Avro files. Runs in Spark's Python workers.

In: Arrow batches of Spark's `binaryFile`. Out: Arrow batches in the columns of the raw zone. The kind of a
file comes from its first bytes (`filetype`), width and height from the headers of pictures (`imagesize`), as
a viewer shows them: pictures are not decoded. Does not know: where files are.
"""

from __future__ import annotations

import hashlib
import io
import json
import mimetypes
from collections.abc import Iterator
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    import pyarrow as pa

NAMES = ("key", "value", "topic", "partition", "offset", "timestamp", "metadata")
ROWS_PER_BATCH = 10_000


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
    """The media type by the first bytes; by the name where they are unknown."""
    import filetype

    found: str | None = filetype.guess_mime(content)
    return found or mimetypes.guess_type(name)[0] or "application/octet-stream"


def dimensions(content: bytes, kind: str) -> tuple[int | None, int | None]:
    """Width and height of a picture, rotated as its camera says."""
    if not kind.startswith("image/"):
        return None, None
    import imagesize

    width, height = imagesize.get(io.BytesIO(content))
    return (round(width), round(height)) if width > 0 and height > 0 else (None, None)


def as_json(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        import base64

        return base64.b64encode(value).decode()
    return str(value)
