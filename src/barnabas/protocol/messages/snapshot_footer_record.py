"""SnapshotFooterRecord: the control record at the end of a snapshot."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import Int16


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    version: Int16 = 0
