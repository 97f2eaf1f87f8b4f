"""The log of decisions: who, from where, what, on what, allowed or denied, and by which rule.

In: every decision that a handler asked for. Out: lines of the logger `kafka.authorizer.logger`, in Kafka's
form: denied at INFO, allowed at DEBUG. The first denial of a caller on a resource is a line; more of them
within a while are counted, and one line says how many. Allowed requests are sampled. Counts for metrics.
Does not know: rules, requests.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.protocol import ApiKey
from barnabas.security.acls.vocabulary import Operation, ResourceType, word

if TYPE_CHECKING:
    from barnabas.security.acls.authorizer import Decision

log = logging.getLogger("kafka.authorizer.logger")
DENIALS_EVERY_S = 10.0  # at most one line for a caller and resource in this time
CALLERS_MAX = 1_000  # callers and resources with a line in that time; further ones are counted together
NAME_SHOWN_MAX = 300  # characters of a name in a line: requests may name anything
ALLOWED_EVERY = 100  # one of so many allowed decisions is a line

Denied = tuple[str, str, Operation, ResourceType, str]
Sink = Callable[[bool, str, str, Operation, ResourceType, str, str, str], None]


class DecisionLog:
    def __init__(self, time_s: Callable[[], float]) -> None:
        self._time_s = time_s
        self._window_until = 0.0
        self._repeated: dict[Denied, int] = {}  # lines that were left out since the window began
        self._others = 0
        self.allowed = 0
        self.denied = 0
        self.sink: Sink | None = None  # also gets every decision that becomes a line

    def note(
        self,
        decision: Decision,
        principal: str,
        host: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
        api: int,
    ) -> None:
        if decision.is_allowed:
            self.allowed += 1
            if self.allowed % ALLOWED_EVERY == 1 and (self.sink or log.isEnabledFor(logging.DEBUG)):
                self._write(logging.DEBUG, decision, principal, host, operation, resource, name, api)
            return
        self.denied += 1
        name = shown(name)
        if not log.isEnabledFor(logging.INFO) and self.sink is None:
            return
        now = self._time_s()
        if now >= self._window_until:
            self.summarize()
            self._window_until = now + DENIALS_EVERY_S
        key = (principal, host, operation, resource, name)
        known = self._repeated.get(key)
        if known is not None:
            self._repeated[key] = known + 1
        elif len(self._repeated) >= CALLERS_MAX:
            self._others += 1
        else:
            self._repeated[key] = 0
            self._write(logging.INFO, decision, principal, host, operation, resource, name, api)

    def summarize(self) -> None:
        """Say how many denials were left out."""
        for (principal, host, operation, resource, name), times in self._repeated.items():
            if times:
                log.info(
                    "Principal = %s was Denied operation = %s from host = %s on resource = %s:LITERAL:%s "
                    "%d more times within %d s",
                    *(principal, operation.name, host, word(resource), name, times, DENIALS_EVERY_S),
                )
        if self._others:
            log.info(
                "%d more requests of other callers were Denied within %d s", self._others, DENIALS_EVERY_S
            )
        self._repeated.clear()
        self._others = 0

    def _write(
        self,
        level: int,
        decision: Decision,
        principal: str,
        host: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
        api: int,
    ) -> None:
        name, principal = shown(name), shown(principal)
        request = word(ApiKey(api)) if api >= 0 else "-"
        log.log(
            level,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s "
            "with resourceRefCount = 1 based on rule %s",
            principal,
            "Allowed" if decision.is_allowed else "Denied",
            *(operation.name, host, word(resource), name, request, decision.reason),
        )
        if self.sink is not None:
            self.sink(
                decision.is_allowed, principal, host, operation, resource, name, request, decision.reason
            )


def shown(name: str) -> str:
    """A name as it may stand in a line: short, and without characters that would break the line."""
    if len(name) > NAME_SHOWN_MAX:
        name = f"{name[:NAME_SHOWN_MAX]}..."
    return name if name.isprintable() else ascii(name)
