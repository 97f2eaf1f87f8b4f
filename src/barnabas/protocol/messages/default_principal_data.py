"""DefaultPrincipalData: a principal as a broker forwards it inside an envelope."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import Bool, String


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    type: String = ""
    name: String = ""
    token_authenticated: Bool = False
