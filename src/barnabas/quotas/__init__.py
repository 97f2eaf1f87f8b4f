"""Quotas: how much a client did of late, which limit is its own, and how long it must wait.

`rates` measures as Kafka does, `levels` finds the limit among the eight that may apply.
Nothing here looks at a clock or knows a connection.
"""

from barnabas.quotas.levels import Levels, Limit
from barnabas.quotas.rates import QuotaRate, TokenBucket, WindowedRate

__all__ = ["Levels", "Limit", "QuotaRate", "TokenBucket", "WindowedRate"]
