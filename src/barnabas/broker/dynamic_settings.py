"""Settings while running: the node's own under what the metadata sets, and who is told when they change.

In: committed configurations of all brokers and of this one. Out: `broker.settings`, always the ones in
force, so that who reads a setting when it is needed has nothing else to do; who built something from one
subscribes: `broker.dynamic.on_change(("log.cleaner.threads",), self.resize)`, called on the loop with the
settings before and after, once a change, when one of the names (also as `listener.name.<x>.<name>`) has
another value. Does not know: what the settings mean, which may change (`settings.broker_rules`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.settings.names import LISTENER_PREFIX, listener_base_name

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.metadata.configs import ConfigsImage
    from barnabas.settings import BrokerSettings

log = logging.getLogger("barnabas.settings")
Changed = Callable[["BrokerSettings", "BrokerSettings"], None]
Texts = Mapping[str, str]


class DynamicSettings:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._subscribers: list[tuple[frozenset[str], Changed]] = []
        # Called when settings of this broker are set to the values that they have: stores are read again.
        self.on_set_again: list[Callable[[], None]] = []
        # Each raises KafkaError for settings that this node could not put in force.
        self.checks: list[Callable[[BrokerSettings], Awaitable[None]]] = []

    def on_change(self, names: Iterable[str], changed: Changed) -> None:
        """Call `changed(before, after)` whenever the value of one of these settings changes."""
        self._subscribers.append((frozenset(names), changed))

    def apply(self, configs: ConfigsImage) -> bool:
        """Put in force what the metadata says; whether anything is different now."""
        broker = self._broker
        before = broker.settings
        secrets = broker.secrets
        default = secrets.opened("", configs.cluster_default)
        own = secrets.opened(str(broker.node_id), configs.broker(broker.node_id))
        if default == before.dynamic_default and own == before.dynamic_broker:
            for again in self.on_set_again:
                again()
            return False
        after = broker.settings = before.with_dynamic(default, own)
        for warning in after.warnings:
            if warning not in before.warnings:
                log.warning("%s", warning)
        names = different(before, after)
        for wanted, changed in self._subscribers:
            if not wanted.isdisjoint(names):
                try:
                    changed(before, after)
                except Exception:
                    broker.unexpected.note("putting settings in force:", ", ".join(sorted(wanted & names)))
        return True

    async def check(self, changes: Mapping[str, str | None]) -> None:
        """Raise KafkaError if this node could not put these changes of its own settings in force."""
        broker = self._broker
        if not self.checks:
            return
        configs = broker.image.configs
        default = broker.secrets.opened("", configs.cluster_default)
        own = {**broker.secrets.opened(str(broker.node_id), configs.broker(broker.node_id)), **changes}
        kept = {name: text for name, text in own.items() if text is not None}
        after = broker.settings.with_dynamic(default, kept)
        for each in self.checks:
            await each(after)


def different(before: BrokerSettings, after: BrokerSettings) -> set[str]:
    """The names of settings whose values differ. A setting of one listener counts as the setting."""
    found = set()
    old, new = before.values, after.values
    for name in old.keys() | new.keys():
        if old.get(name) != new.get(name):
            found.add(listener_base_name(name) if name.startswith(LISTENER_PREFIX) else name)
    return found
