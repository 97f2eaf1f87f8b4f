"""How many schemas the registry holds, for metrics, under the names of Confluent's registry.

In: a node. Out: families. The state is counted again only when its log has grown. Does not know: HTTP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from barnabas.registry.node import RegistryNode
from barnabas.schemas.model import SchemaType

PREFIX = "kafka_schema_registry"
NOT_COUNTED = -1


class SchemaCounts(Collector):
    """Numbers of versions. Since its version 1.0 the exporter drops `_created` from a name, and dashboards
    ask for what is left: such values have both names."""

    def __init__(self, node: RegistryNode) -> None:
        self._node = node
        self._counted_to = NOT_COUNTED
        self._created: Counter[str] = Counter()
        self._deleted: Counter[str] = Counter()

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        self._count()
        yield GaugeMetricFamily(
            f"{PREFIX}_registered_count", "Registered versions of schemas.", value=self._created.total()
        )
        for name, text, counts in (
            ("schemas", "Registered versions by type.", self._created),
            ("schemas_created", "Registered versions by type.", self._created),
            ("schemas_deleted", "Deleted versions by type, as far as they are kept.", self._deleted),
        ):
            family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=("schema_type",))
            for each in SchemaType:
                family.add_metric((each.lower(),), counts[each])
            yield family
        role = float(self._node.seat.is_primary)
        yield GaugeMetricFamily(f"{PREFIX}_master_slave_role", "1 if this node is the primary.", value=role)

    def _count(self) -> None:
        end = self._node.next_offset
        if end == self._counted_to:
            return
        created: Counter[str] = Counter()
        deleted: Counter[str] = Counter()
        for subject in self._node.state.subjects():
            for version in list(subject.versions.values()):
                counts = deleted if version.is_deleted else created
                counts[version.content.schema_type] += 1
        self._created, self._deleted, self._counted_to = created + deleted, deleted, end
