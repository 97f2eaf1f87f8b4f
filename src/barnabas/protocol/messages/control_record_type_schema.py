"""ControlRecordTypeSchema: the key of a control record."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import Int16


class ControlRecordTypeSchema(Message, versions="0"):
    type: Int16 = 0
