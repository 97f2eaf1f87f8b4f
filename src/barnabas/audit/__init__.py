"""The audit: how many records of each topic passed each tier, compared in buckets of the records' own time.

`AuditCounter` counts what passes a tier, `barnabas audit` compares tiers (docs/audit.md).
"""

from barnabas.audit.core.tiers import CLUSTER, PRODUCER, consumer, mirror, sink, zone
from barnabas.audit.counters.audit_counter import AuditCounter, AuditSettings

__all__ = ["CLUSTER", "PRODUCER", "AuditCounter", "AuditSettings", "consumer", "mirror", "sink", "zone"]
