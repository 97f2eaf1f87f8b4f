"""Whether this broker counts for the audit: `barnabas.audit.counts.enable`.

In: the broker. Out: a counter to start, or None. Nothing of the audit is loaded where it is off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.audit.cluster_counter import ClusterCounter
    from barnabas.broker.broker import Broker


def counter_of(broker: Broker) -> ClusterCounter | None:
    """SettingsError if a setting of the counter is wrong."""
    if not broker.settings["barnabas.audit.counts.enable"]:
        return None
    from barnabas.audit.core.buckets import check_width
    from barnabas.broker.audit.cluster_counter import ClusterCounter
    from barnabas.settings.errors import invalid_value

    width_ms: int = broker.settings["barnabas.audit.counts.bucket.ms"]
    try:
        check_width(width_ms)
    except ValueError as error:
        raise invalid_value("barnabas.audit.counts.bucket.ms", str(width_ms), str(error)) from None
    return ClusterCounter(broker)
