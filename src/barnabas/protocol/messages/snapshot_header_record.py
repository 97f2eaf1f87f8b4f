"""SnapshotHeaderRecord: the control record at the start of a snapshot."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import Int16, Int64


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    version: Int16 = 0
    last_contained_log_timestamp: Int64 = 0
