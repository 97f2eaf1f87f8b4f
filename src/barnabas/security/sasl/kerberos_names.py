"""Kerberos principals and the rules that make them names of users (`sasl.kerberos.principal.to.local.rules`).

A rule is `DEFAULT`, or `RULE:[n:format](regex)s/from/to/g/L`: it applies to principals of n components whose
formatted text the expression matches as a whole. The first rule that applies counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.security.errors import AuthenticationFailed, SecuritySettingsError

SETTING = "sasl.kerberos.principal.to.local.rules"
_RULE = re.compile(
    r"RULE:\[(?P<count>\d+):(?P<format>[^\]]*)\]"
    r"(?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?"
    r"/?(?P<case>[LU])?"
)
# A backslash stands before a sign that belongs to a component's own name: such names are refused.
_NAME = re.compile(r"(?P<primary>[^/@\\]+)(?:/(?P<instance>[^/@\\]+))?(?:@(?P<realm>[^/@\\]+))?")


class KerberosName(NamedTuple):
    """A principal `primary[/instance][@realm]`."""

    primary: str
    instance: str = ""
    realm: str = ""

    def __str__(self) -> str:
        instance = f"/{self.instance}" if self.instance else ""
        return f"{self.primary}{instance}" + (f"@{self.realm}" if self.realm else "")


def parse_kerberos_name(text: str) -> KerberosName:
    """ValueError if the text is not a principal of one or two components."""
    found = _NAME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a Kerberos principal: expected primary[/instance][@REALM]")
    return KerberosName(found["primary"], found["instance"] or "", found["realm"] or "")


@dataclass(frozen=True, slots=True)
class Rule:
    component_count: int
    format: str
    match: re.Pattern[str] | None
    replaced: re.Pattern[str] | None
    replacement: str
    replaces_all: bool
    case: str

    def apply(self, parts: tuple[str, ...]) -> str | None:
        """The user, or None if the rule does not apply. `parts`: realm and components."""
        if len(parts) - 1 != self.component_count:
            return None
        text = re.sub(r"\$(\d)", lambda found: parts[int(found[1])], self.format)
        if self.match is not None and self.match.fullmatch(text) is None:
            return None
        if self.replaced is not None:
            text = self.replaced.sub(self.replacement, text, count=0 if self.replaces_all else 1)
        return text.lower() if self.case == "L" else text.upper() if self.case == "U" else text


class LocalNames:
    """The rules of a listener, in order. None is DEFAULT: the primary, if the realm is the default one."""

    def __init__(self, rules: Iterable[Rule | None], default_realm: str) -> None:
        self._rules = tuple(rules)
        self._default_realm = default_realm

    def user_of(self, name: KerberosName) -> str:
        """The name of the user. AuthenticationFailed if no rule applies, or if its result is not a name."""
        if not name.realm and not name.instance:
            return name.primary
        parts = (name.realm, name.primary, *((name.instance,) if name.instance else ()))
        for rule in self._rules:
            if rule is None:
                user = name.primary if name.realm == self._default_realm else None
            else:
                user = rule.apply(parts)
            if user is None:
                continue
            if re.search("[/@]", user):
                raise _refused(f"the result of the rule for {name} is {user!r}, with a / or @ in it")
            return user
        raise _refused(f"no rule of {SETTING} applies to {name}")


def _refused(reason: str) -> AuthenticationFailed:
    return AuthenticationFailed(
        "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI",
        reason,
    )


def parse_rules(texts: Iterable[str], default_realm: str) -> LocalNames:
    """SecuritySettingsError names the rule that is wrong."""
    return LocalNames([_parse_rule(text.strip()) for text in texts if text.strip()], default_realm)


def _parse_rule(text: str) -> Rule | None:
    if text == "DEFAULT":
        return None
    found = _RULE.fullmatch(text)
    if found is None:
        raise SecuritySettingsError(
            f"{SETTING}: {text!r} is not a rule; expected DEFAULT or RULE:[n:format](regex)s/from/to/g/L"
        )
    count = int(found["count"])
    if any(int(index) > count for index in re.findall(r"\$(\d)", found["format"])):
        raise SecuritySettingsError(f"{SETTING}: the format of {text!r} names a component beyond {count}")
    try:
        match = re.compile(found["match"]) if found["match"] is not None else None
        replaced = re.compile(found["from"]) if found["from"] is not None else None
        to = _replacement(found["to"] or "")
        if replaced is not None:
            replaced.sub(to, "")  # finds groups that are not there
    except (re.error, IndexError) as error:
        raise SecuritySettingsError(f"{SETTING}: the expression in {text!r} is wrong: {error}") from None
    return Rule(count, found["format"], match, replaced, to, found["all"] is not None, found["case"] or "")


def _replacement(text: str) -> str:
    """Java's `$1` as Python's reference; everything else stands for itself."""
    return re.sub(r"\$(\d)", r"\\g<\1>", text.replace("\\", "\\\\"))
