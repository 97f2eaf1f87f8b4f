"""Parts and states as bytes, between the Spark applications and the serving process.

In: values of `views.parts`. Out: bytes, and back. A part is one Arrow IPC stream; the rest stands in the
metadata of its schema. Of a part in files only their names travel. Does not know: HTTP, the store.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from barnabas.pipeline.serving.http.answers import ipc
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.parts import BatchPart, PartFiles, PartRows, SpeedPart, TableVersion, ViewState

META = b"barnabas"


def pack_batch(part: BatchPart) -> bytes:
    meta = {
        "layout": part.layout.to_json(),
        "horizon": pack_position(part.horizon),
        "joined": dict(part.joined),
    }
    return pack(part.rows, meta)


def pack_speed(part: SpeedPart) -> bytes:
    meta = {
        "layout": part.layout.to_json(),
        "after": part.after,
        "upto": pack_position(part.upto),
        "joined_after": dict(part.joined_after),
        "joined": dict(part.joined),
    }
    return pack(part.rows, meta)


def unpack_batch(body: bytes) -> BatchPart:
    rows, meta = unpack(body)
    return BatchPart(Layout.from_json(meta["layout"]), unpack_position(meta["horizon"]), rows, meta["joined"])


def unpack_speed(body: bytes) -> SpeedPart:
    rows, meta = unpack(body)
    return SpeedPart(
        Layout.from_json(meta["layout"]),
        int(meta["after"]),
        unpack_position(meta["upto"]),
        rows,
        meta["joined_after"],
        meta["joined"],
    )


def pack_state(state: ViewState) -> dict[str, Any]:
    return {
        "view": state.view,
        "layout": state.layout.to_json(),
        "horizon": pack_position(state.horizon),
        "position": pack_position(state.position),
        "checked_at": state.checked_at.isoformat(),
        "oldest": state.oldest,
        "rows": state.rows,
        "fence": state.fence,
        "joined": dict(state.joined),
        "fence_joined": dict(state.fence_joined),
    }


def unpack_state(value: dict[str, Any]) -> ViewState:
    return ViewState(
        value["view"],
        Layout.from_json(value["layout"]),
        unpack_position(value["horizon"]),
        unpack_position(value["position"]),
        datetime.fromisoformat(value["checked_at"]),
        value["oldest"],
        value["rows"],
        value["fence"],
        value["joined"],
        value["fence_joined"],
    )


def pack_position(position: TableVersion) -> list[Any]:
    return [position.version, position.at.isoformat()]


def unpack_position(value: list[Any]) -> TableVersion:
    return TableVersion(int(value[0]), datetime.fromisoformat(value[1]))


def pack(rows: PartRows, meta: dict[str, Any]) -> bytes:
    if isinstance(rows, PartFiles):
        meta = meta | {"files": [rows.folder, list(rows.names), rows.num_rows]}
        rows = pa.table({})
    return ipc(rows.replace_schema_metadata({META: json.dumps(meta)}))


def unpack(body: bytes) -> tuple[PartRows, dict[str, Any]]:
    """ValueError for anything that is no part."""
    try:
        with pyarrow.ipc.open_stream(body) as reader:
            rows = reader.read_all()
        meta = json.loads((rows.schema.metadata or {})[META])
        if "files" in meta:
            folder, names, count = meta["files"]
            return PartFiles(str(folder), tuple(map(str, names)), int(count)), meta
        return rows.replace_schema_metadata(None), meta
    except (
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
        OSError,
        KeyError,
        ValueError,
        TypeError,
    ) as problem:
        raise ValueError(f"this is not a part of a view: {problem}") from None
