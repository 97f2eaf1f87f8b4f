"""The name in a certificate as Java prints it (RFC 2253), and rules that shorten it to a user name.

In: a certificate; the text of `ssl.principal.mapping.rules`. Out: `CN=alice,OU=clients,O=Rig`, and `alice`.
A rule is `RULE:pattern/replacement/[LU]`; its pattern is a Java regular expression that must match the whole
name. `DEFAULT` keeps the name. The first rule that matches wins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.security.errors import AuthenticationFailed, SecuritySettingsError

if TYPE_CHECKING:
    from cryptography import x509

SETTING = "ssl.principal.mapping.rules"
# The types that Java's RFC 2253 names have; all others are written as an OID with a hex value.
SHORT_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
ESCAPED = set(',=+<>#;"\\')
DEFAULT_RULE = "DEFAULT"
# Backslashes escape any character of a pattern or a replacement, a slash too.
RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)", re.DOTALL)
GROUP = re.compile(r"\$(\d+)|\\(.)", re.DOTALL)


def subject_name(certificate: x509.Certificate) -> str:
    """The subject, most specific part first."""
    return ",".join(
        "+".join(attribute_text(each) for each in part) for part in reversed(certificate.subject.rdns)
    )


def attribute_text(attribute: x509.NameAttribute[str | bytes]) -> str:
    short = SHORT_NAMES.get(attribute.oid.dotted_string)
    if short is None or not isinstance(attribute.value, str):
        return f"{attribute.oid.dotted_string}=#{der_text(attribute)}"
    return f"{short}={escaped(attribute.value)}"


def escaped(value: str) -> str:
    inner = value.strip(" ")
    text = "".join("\\" + char if char in ESCAPED else char for char in inner)
    before = len(value) - len(value.lstrip(" "))
    after = len(value) - len(inner) - before
    return "\\ " * before + text + "\\ " * after


def der_text(attribute: x509.NameAttribute[str | bytes]) -> str:
    """The value in DER, as hex."""
    kind = attribute._type.value
    value = attribute.value
    if isinstance(value, bytes):
        data = value
    else:
        data = value.encode({28: "utf-32-be", 30: "utf-16-be"}.get(kind, "utf-8"))
    size = bytes([len(data)])
    if len(data) > 127:
        length = len(data).to_bytes((len(data).bit_length() + 7) // 8, "big")
        size = bytes([0x80 | len(length)]) + length
    return (bytes([kind]) + size + data).hex()


@dataclass(frozen=True, slots=True)
class Rule:
    pattern: re.Pattern[str] | None  # None: DEFAULT
    replacement: str
    case: str  # L, U or nothing

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        found = self.pattern.fullmatch(name)
        if found is None:
            return None
        result = GROUP.sub(lambda part: part_of(found, part), self.replacement)
        return {"L": result.lower, "U": result.upper}.get(self.case, lambda: result)()


def part_of(found: re.Match[str], part: re.Match[str]) -> str:
    if part[2] is not None:
        return part[2]
    number = int(part[1])
    return (found[number] or "") if number <= found.re.groups else part[0]


class MappingRules:
    """All rules of a listener."""

    __slots__ = ("_rules", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._rules = parse_rules(text)

    def user_name(self, subject: str) -> str:
        """The user of a certificate with this subject. AuthenticationFailed if no rule matches."""
        for rule in self._rules:
            found = rule.apply(subject)
            if found is not None:
                return found
        raise AuthenticationFailed(
            "no rule for this certificate",
            f"no rule of {SETTING} matches {subject}: add a rule for it, or DEFAULT at the end",
        )


def parse_rules(text: str) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    position = 0
    text = text.strip() or DEFAULT_RULE
    while position < len(text):
        found = RULE.match(text, position)
        if found is None or found.end() == position:
            raise SecuritySettingsError(
                f"{SETTING}: {text[position:]!r} is not a rule; "
                "write RULE:pattern/replacement/, with L or U at its end if needed, or DEFAULT"
            )
        position = found.end()
        if found[1]:
            rules.append(Rule(None, "", ""))
            continue
        try:
            pattern = re.compile(python_pattern(found[2]))
        except re.error as error:
            raise SecuritySettingsError(
                f"{SETTING}: the pattern {found[2]!r} is not a regular expression ({error}); correct it"
            ) from None
        rules.append(Rule(pattern, found[3], found[4]))
    return tuple(rules)


def python_pattern(pattern: str) -> str:
    """A Java regular expression in Python's words. Both agree in nearly everything."""
    text = pattern.replace("\\/", "/").replace("\\z", "\\Z")
    return re.sub(r"\(\?<([A-Za-z]\w*)>", r"(?P<\1>", text)
