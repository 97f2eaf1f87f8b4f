"""Quotas: the recent rate of a client, its limit, and its throttle time.

`rates` measures as Kafka does. `levels` finds the limit among the eight that may apply.
Does not know: clocks, connections.
"""

from barnabas.quotas.levels import Levels, Limit
from barnabas.quotas.rates import QuotaRate, TokenBucket, WindowedRate
from barnabas.quotas.recent_mean import RecentMean

__all__ = ["Levels", "Limit", "QuotaRate", "RecentMean", "TokenBucket", "WindowedRate"]
