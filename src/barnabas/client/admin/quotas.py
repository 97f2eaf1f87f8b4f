"""Client quotas: limits for users, client ids and IP addresses, each by name or as the default of all.

In: a Cluster; entities as a mapping from kind (`user`, `client-id`, `ip`) to a name, None for the default.
Out: the limits of each entity by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.client.admin.part import AdminPart
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from barnabas.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"


class Match(IntEnum):
    """How a part of an entity is asked for."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


@dataclass(frozen=True, slots=True)
class QuotaEntry:
    entity: dict[str, str | None]
    values: dict[str, float]


class QuotaAdmin(AdminPart):
    async def describe_quotas(
        self, parts: Mapping[str, tuple[Match, str | None]], *, strict: bool = True
    ) -> list[QuotaEntry]:
        """Quotas of the entities that have these parts (`strict`: and no others)."""
        request = DescribeClientQuotasRequest(
            components=[
                DescribeClientQuotasRequest.ComponentData(entity_type=kind, match_type=match, match=name)
                for kind, (match, name) in parts.items()
            ],
            strict=strict,
        )
        response = await self.ask(request, DescribeClientQuotasResponse)
        return [
            QuotaEntry(
                {part.entity_type: part.entity_name for part in entry.entity},
                {each.key: each.value for each in entry.values},
            )
            for entry in response.entries or ()
        ]

    async def alter_quotas(
        self,
        entity: Mapping[str, str | None],
        changes: Mapping[str, float | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set limits of one entity; None removes one."""
        nested = AlterClientQuotasRequest.EntryData
        request = AlterClientQuotasRequest(
            entries=[
                nested(
                    entity=[
                        nested.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()
                    ],
                    ops=[
                        nested.OpData(key=key, value=value or 0.0, remove=value is None)
                        for key, value in changes.items()
                    ],
                )
            ],
            validate_only=validate_only,
        )
        await self.ask(request, AlterClientQuotasResponse, results=lambda response: response.entries)
