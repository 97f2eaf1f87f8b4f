"""JAAS entries of a node: in a listener's settings, or in a JAAS file.

`listener.name.<l>.<m>.sasl.jaas.config` comes first, then the section `<l>.KafkaServer` of the file, then
`KafkaServer`. The file is `barnabas.jaas.file`, or the one that KAFKA_OPTS names.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.security.clients.jaas_file import Sections, entry_in, read_jaas_file
from barnabas.security.errors import SecuritySettingsError
from barnabas.security.sasl.jaas import JaasEntry, parse_jaas

if TYPE_CHECKING:
    from barnabas.settings import BrokerSettings
    from barnabas.settings.listener_settings import ListenerSettings

log = logging.getLogger("barnabas.logins")
SECTION = "KafkaServer"


class JaasEntries:
    def __init__(self, settings: BrokerSettings) -> None:
        self._path: str | None = settings["barnabas.jaas.file"]
        self._sections: Sections | None = None
        self._has_ignored = settings["sasl.jaas.config"] is not None

    def of(self, settings: ListenerSettings) -> JaasEntry | None:
        """The entry of a listener and a mechanism, if any. SecuritySettingsError if its text is wrong."""
        text = settings.own("sasl.jaas.config")
        if text is not None:
            try:
                return parse_jaas(text.value)
            except SecuritySettingsError as error:
                name = f"listener.name.{settings.listener}.{settings.mechanism}.sasl.jaas.config".lower()
                raise SecuritySettingsError(f"{name}: {error}") from None
        if self._has_ignored:
            self._has_ignored = False
            log.warning(
                "sasl.jaas.config without a listener and a mechanism is ignored: "
                "set listener.name.<listener>.<mechanism>.sasl.jaas.config"
            )
        if self._sections is None:
            self._sections = read_jaas_file(self._path)
        names = (f"{settings.listener.lower()}.{SECTION}", SECTION)
        return entry_in(self._sections, names, settings.mechanism)
