"""Traces of a node, if its settings ask for any.

In: settings, the node's reporters. Out: a `Tracing`, or None: then channels are ordinary ones. Does not know:
requests.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.reporters.reporting import Reporting
    from barnabas.broker.tracing.tracing import Tracing
    from barnabas.settings import BrokerSettings

log = logging.getLogger("barnabas.tracing")


def tracing_of(settings: BrokerSettings, reporting: Reporting) -> Tracing | None:
    ratio: float = settings["barnabas.traces.ratio"]
    uses_headers: bool = settings["barnabas.traces.headers"]
    if ratio <= 0 and not uses_headers:
        return None
    if not reporting.exports_spans:
        log.warning(
            "barnabas.traces.ratio and barnabas.traces.headers have no effect: no reporter of "
            "metric.reporters takes spans; add otlp"
        )
        return None
    from barnabas.broker.tracing.sampling import Sampling
    from barnabas.broker.tracing.tracing import Tracing

    per_second_max: int = settings["barnabas.traces.per.second.max"]
    sampling = Sampling(ratio, uses_headers=uses_headers, per_second_max=per_second_max, now_s=monotonic)
    tracing = Tracing(sampling)
    reporting.pop_spans = tracing.pop_spans
    return tracing
