"""KRaftVersionRecord: the control record that holds the version of the quorum's own protocol."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import Int16


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    version: Int16 = 0
    kraft_version: Int16 = 0
