"""The sweep of delegation tokens: removes those that have expired."""

from __future__ import annotations

from barnabas.controller.context import Context
from barnabas.controller.decision import Decision
from barnabas.controller.delegation_tokens import is_expired
from barnabas.protocol import Message
from barnabas.protocol.log_records.metadata import RemoveDelegationTokenRecord

SWEPT_MAX = 1_000  # in one decision


def sweep_tokens(context: Context) -> Decision[int]:
    """Remove expired tokens; how many were removed."""
    removals: list[Message] = []
    for token in context.image.security.tokens.values():
        if is_expired(token, context.wall_ms):
            removals.append(RemoveDelegationTokenRecord(token_id=token.id))
            if len(removals) == SWEPT_MAX:
                break
    return Decision(len(removals), removals)
