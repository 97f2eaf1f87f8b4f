"""The settings of one listener, and of one SASL mechanism on it, with Kafka's precedence.

In: a node's settings, a listener's name, perhaps a mechanism. Out: the value of a setting X, the first found
of `listener.name.<l>.<m>.X`, `listener.name.<l>.X` and X. Both names are in lower case in a prefix.
Does not know: what the settings mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.settings.definitions import BROKER_ROWS
from barnabas.settings.names import LISTENER_PREFIX
from barnabas.settings.values import Password, to_text

if TYPE_CHECKING:
    from barnabas.settings.broker import BrokerSettings

CLIENT_PREFIXES = ("ssl.", "sasl.")


class ListenerSettings:
    """A view: it shows the settings that it was made of. Make another one when they change."""

    __slots__ = ("_prefix", "_values", "listener", "mechanism")

    def __init__(self, settings: BrokerSettings, listener: str, mechanism: str = "") -> None:
        self.listener = listener
        self.mechanism = mechanism
        self._values = settings.values
        self._prefix = f"{LISTENER_PREFIX}{listener.lower()}."

    def __getitem__(self, name: str) -> Any:
        """The value that holds here: of the mechanism, the listener, the node, or the default."""
        values = self._values
        found = values.get(f"{self._mechanism_prefix}{name}") if self.mechanism else None
        if found is None:
            found = values.get(f"{self._prefix}{name}")
        return values[name] if found is None else found

    def own(self, name: str) -> Any:
        """The value that is set with the longest prefix: for the mechanism if there is one, else for the
        listener. None if it is not set there."""
        return self._values.get(f"{self._mechanism_prefix if self.mechanism else self._prefix}{name}")

    def text(self, name: str) -> str | None:
        """The value as text, also of a password; None if it has none."""
        value = self[name]
        return value.value if isinstance(value, Password) else to_text(value)

    def client_properties(self) -> dict[str, str]:
        """The `ssl.*` and `sasl.*` settings of this listener in the names of Kafka's clients.

        A node that connects to this listener of another node is a client with these properties. Secrets are
        in plain text.
        """
        found = {}
        for name in BROKER_ROWS:
            if name.startswith(CLIENT_PREFIXES) and (text := self.text(name)) is not None:
                found[name] = text
        return found

    @property
    def _mechanism_prefix(self) -> str:
        return f"{self._prefix}{self.mechanism.lower()}."
