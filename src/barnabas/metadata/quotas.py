"""Client quotas: limits for users, client ids, addresses, and combinations and defaults of them.

In: ClientQuotaRecord. Out: per entity a map of quota names to values.
Does not know: which quota wins for a connection, or how it is enforced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.metadata.changes import MapChanges
from barnabas.protocol.log_records.metadata import ClientQuotaRecord

# (type, name) pairs sorted by type; a name of None is the default entity of that type.
QuotaEntity = tuple[tuple[str, str | None], ...]
_EMPTY: Mapping[str, float] = {}


@dataclass(frozen=True, slots=True)
class QuotasImage:
    by_entity: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)


class QuotasDelta:
    __slots__ = ("entities", "image")

    def __init__(self, image: QuotasImage) -> None:
        self.image = image
        self.entities: dict[QuotaEntity, MapChanges[str, float]] = {}

    def replay(self, record: ClientQuotaRecord) -> None:
        entity = tuple(sorted(((part.entity_type, part.entity_name) for part in record.entity), key=_by_type))
        changes = self.entities.get(entity)
        if changes is None:
            changes = self.entities[entity] = MapChanges(self.image.by_entity.get(entity, _EMPTY))
        if record.remove:
            changes.remove(record.key)
        else:
            changes.set(record.key, record.value)

    def apply(self) -> QuotasImage:
        if not self.entities:
            return self.image
        merged = MapChanges(self.image.by_entity)
        for entity, changes in self.entities.items():
            values = changes.apply()
            if values:
                merged.set(entity, values)
            else:
                merged.remove(entity)
        return QuotasImage(merged.apply())


def _by_type(part: tuple[str, str | None]) -> str:
    return part[0]
