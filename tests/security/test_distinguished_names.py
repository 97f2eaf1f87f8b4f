"""Names of certificates are written as Java writes them, and shortened by rules as in Kafka."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.x509 import NameAttribute, RelativeDistinguishedName
from cryptography.x509.oid import NameOID, ObjectIdentifier

from barnabas.security.errors import AuthenticationFailed, SecuritySettingsError
from barnabas.security.tls.cipher_suites import split_suites
from barnabas.security.tls.distinguished_names import MappingRules, subject_name

from .tls_world import certificates

RULES = r"RULE:^CN=([^,]+),OU=clients,.*$/$1/L,RULE:^CN=([^,]+),OU=([^,]+),O=Rig$/$1@$2/,DEFAULT"


def named(*parts: tuple[ObjectIdentifier, str]) -> str:
    name = x509.Name([RelativeDistinguishedName([NameAttribute(*part)]) for part in parts])

    class Named:
        subject = name

    return subject_name(Named)  # type: ignore[arg-type]


def test_the_subject_is_written_most_specific_part_first() -> None:
    assert subject_name(certificates().alice.certificate) == "CN=alice,OU=clients,O=Rig"


def test_special_characters_and_unknown_types_are_written_as_java_does() -> None:
    assert (
        named(
            (NameOID.COUNTRY_NAME, "DE"),
            (NameOID.ORGANIZATION_NAME, "Rig, Inc."),
            (NameOID.ORGANIZATIONAL_UNIT_NAME, "a+b"),
            (NameOID.COMMON_NAME, 'x "y" <z>; #1=\\'),
        )
        == r"CN=x \"y\" \<z\>\; \#1\=\\,OU=a\+b,O=Rig\, Inc.,C=DE"
    )
    assert (
        named(
            (NameOID.DOMAIN_COMPONENT, "test"),
            (NameOID.USER_ID, "u1"),
            (NameOID.EMAIL_ADDRESS, "a@b.c"),
            (NameOID.COMMON_NAME, " lead"),
        )
        == r"CN=\ lead,1.2.840.113549.1.9.1=#16056140622e63,UID=u1,DC=test"
    )
    assert (
        named(
            (NameOID.COMMON_NAME, "#x "),
            (NameOID.LOCALITY_NAME, "K\u00f6ln"),
            (NameOID.STREET_ADDRESS, "s 1"),
            (NameOID.STATE_OR_PROVINCE_NAME, "NW"),
        )
        == "ST=NW,STREET=s 1,L=K\u00f6ln,CN=\\#x\\ "
    )
    assert (
        named((NameOID.SERIAL_NUMBER, "77"), (NameOID.TITLE, "Dr")) == "2.5.4.12=#0c024472,2.5.4.5=#13023737"
    )


@pytest.mark.parametrize(
    "rules, subject, user",
    [
        (RULES, "CN=Alice,OU=clients,O=Rig", "alice"),
        (RULES, "CN=Carol,OU=ops,O=Rig", "Carol@ops"),
        (RULES, "CN=x,O=Else", "CN=x,O=Else"),
        ("", "CN=x", "CN=x"),
        ("DEFAULT", "CN=x", "CN=x"),
        (r"RULE:CN=(.*)/$1/U", "CN=Bob", "BOB"),
        (r"RULE:CN=(.*)/$1-$7/", "CN=Bob", "Bob-$7"),
        (r"RULE:CN=(.*)\/(.*)/$2\/$1/", "CN=a/b", "b/a"),
        (r"RULE:CN=(?<first>.*?),.*/$1/", "CN=a,O=b", "a"),
        (r" RULE:CN=y/1/ , RULE:CN=x/2/ ", "CN=x", "2"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_wins(rules: str, subject: str, user: str) -> None:
    assert MappingRules(rules).user_name(subject) == user


def test_a_name_without_a_rule_is_refused() -> None:
    with pytest.raises(AuthenticationFailed, match=r"no rule of ssl.principal.mapping.rules matches CN=x"):
        MappingRules("RULE:CN=y/z/").user_name("CN=x")


@pytest.mark.parametrize("rules", ["nonsense", "RULE:CN=x", "RULE:(/x/", "RULE:a/b/X", "DEFAULT nonsense"])
def test_a_rule_that_cannot_be_understood_is_named(rules: str) -> None:
    with pytest.raises(SecuritySettingsError, match=r"ssl.principal.mapping.rules"):
        MappingRules(rules)


def test_cipher_suites_are_known_by_their_java_names() -> None:
    older, newer = split_suites(
        [
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "TLS_DHE_RSA_WITH_AES_256_CBC_SHA",
            "TLS_RSA_WITH_AES_128_CBC_SHA256",
            "TLS_AES_128_GCM_SHA256",
        ]
    )
    assert older == [
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "DHE-RSA-AES256-SHA",
        "AES128-SHA256",
    ]
    assert newer == ["TLS_AES_128_GCM_SHA256"]
