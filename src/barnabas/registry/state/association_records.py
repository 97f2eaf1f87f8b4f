"""Associations of subjects with resources, such as topics, made of their records.

In: ASSOC records. Out: associations by their key, by resource and by subject.
Does not know: which associations are allowed; `associating` decides that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from barnabas.registry.state.records import TENANT, Record, compact

STRONG = "STRONG"
WEAK = "WEAK"


class AssociationKey(NamedTuple):
    resource_name: str
    resource_namespace: str
    resource_type: str
    association_type: str
    subject: str


@dataclass(frozen=True, slots=True)
class Association:
    key: AssociationKey
    guid: str
    resource_id: str
    lifecycle: str
    frozen: bool
    create_ms: int
    update_ms: int

    def to_json(self) -> dict[str, Any]:
        return {
            "subject": self.key.subject,
            "guid": self.guid,
            "resourceName": self.key.resource_name,
            "resourceNamespace": self.key.resource_namespace,
            "resourceId": self.resource_id,
            "resourceType": self.key.resource_type,
            "associationType": self.key.association_type,
            "lifecycle": self.lifecycle,
            "frozen": self.frozen,
            "createTs": self.create_ms,
            "updateTs": self.update_ms,
        }

    def record(self) -> Record:
        key = self.key
        value = {
            "guid": self.guid,
            "tenant": TENANT,
            "resourceName": key.resource_name,
            "resourceNamespace": key.resource_namespace,
            "resourceId": self.resource_id,
            "resourceType": key.resource_type,
            "associationType": key.association_type,
            "subject": key.subject,
            "lifecycle": self.lifecycle,
            "frozen": self.frozen,
            "createTs": self.create_ms,
        }
        return Record(record_key(key), compact(value))

    def tombstone(self) -> Record:
        return Record(record_key(self.key), None)


def record_key(key: AssociationKey) -> bytes:
    return compact(
        {
            "keytype": "ASSOC",
            "tenant": TENANT,
            "resourceName": key.resource_name,
            "resourceNamespace": key.resource_namespace,
            "resourceType": key.resource_type,
            "associationType": key.association_type,
            "subject": key.subject,
            "magic": 0,
        }
    )


class Associations:
    def __init__(self) -> None:
        self._all: dict[AssociationKey, Association] = {}
        self._by_resource: dict[str, dict[AssociationKey, None]] = {}
        self._by_name: dict[str, dict[AssociationKey, None]] = {}
        self._by_subject: dict[str, dict[AssociationKey, None]] = {}

    def of_resource(self, resource_id: str) -> list[Association]:
        return self._found(list(self._by_resource.get(resource_id, ())))

    def of_resource_name(self, namespace: str, name: str) -> list[Association]:
        """A namespace of `-` stands for any."""
        keys = list(self._by_name.get(name, ()))
        return self._found(key for key in keys if namespace in (key.resource_namespace, "-"))

    def of_subject(self, subject: str) -> list[Association]:
        return self._found(list(self._by_subject.get(subject, ())))

    def _found(self, keys: Iterable[AssociationKey]) -> list[Association]:
        found = (self._all.get(key) for key in sorted(keys))
        return [each for each in found if each is not None]

    def apply(self, key: dict[str, Any], value: dict[str, Any] | None, timestamp_ms: int) -> None:
        names = ("resourceName", "resourceNamespace", "resourceType", "associationType", "subject")
        place = AssociationKey(*(str(key[name]) for name in names))
        earlier = self._all.pop(place, None)
        if earlier is not None:
            for index, name in self._indexes(earlier):
                index[name].pop(place, None)
                if not index[name]:
                    del index[name]
        if value is None:
            return
        association = Association(
            key=place,
            guid=str(value.get("guid") or ""),
            resource_id=str(value["resourceId"]),
            lifecycle=str(value.get("lifecycle") or WEAK),
            frozen=bool(value.get("frozen")),
            create_ms=int(value.get("createTs") or timestamp_ms),
            update_ms=timestamp_ms,
        )
        self._all[place] = association
        for index, name in self._indexes(association):
            index.setdefault(name, {})[place] = None

    def _indexes(self, association: Association) -> list[tuple[dict[str, dict[AssociationKey, None]], str]]:
        key = association.key
        return [
            (self._by_resource, association.resource_id),
            (self._by_name, key.resource_name),
            (self._by_subject, key.subject),
        ]
