"""The JAAS file of this process: a setting names it, or KAFKA_OPTS does for Kafka's JVM.

`KAFKA_OPTS=-Djava.security.auth.login.config=...` is read, so that scripts written for Kafka go on to work.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from barnabas.security.errors import SecuritySettingsError
from barnabas.security.sasl.jaas import JaasEntry, parse_jaas_file

OPTION = "-Djava.security.auth.login.config="
MODULES = {  # the end of a login module's name, by mechanism
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "GSSAPI": "Krb5LoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
}
Sections = dict[str, tuple[JaasEntry, ...]]


def read_jaas_file(path: str | None = None) -> Sections:
    """The sections of the file at `path`, or of the one that KAFKA_OPTS names. None of both: no sections."""
    path = path or path_in(os.environ.get("KAFKA_OPTS", ""))
    if not path:
        return {}
    try:
        return parse_jaas_file(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SecuritySettingsError(f"the JAAS file {path} cannot be read: {error.strerror}") from None
    except SecuritySettingsError as error:
        raise SecuritySettingsError(f"{path}: {error}") from None


def entry_in(sections: Sections, names: tuple[str, ...], mechanism: str) -> JaasEntry | None:
    """The mechanism's entry in the first of these sections that is there."""
    for name in names:
        if name in sections:
            wanted = MODULES.get(mechanism, "")
            return next((each for each in sections[name] if each.module.endswith(wanted)), None)
    return None


def path_in(options: str) -> str:
    """The JAAS file that options of a JVM name; the last one counts."""
    try:
        found = [each.removeprefix(OPTION) for each in shlex.split(options) if each.startswith(OPTION)]
    except ValueError:  # quotes that do not match: no text for a JVM
        found = []
    return found[-1] if found else ""
