"""EndTxnMarker: the value of a control record that ends a transaction."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import Int32


class EndTxnMarker(Message, versions="0"):
    coordinator_epoch: Int32 = 0
