"""Kerberos principals become names of users."""

import pytest

from barnabas.security.errors import AuthenticationFailed, SecuritySettingsError
from barnabas.security.sasl.kerberos_names import parse_kerberos_name, parse_rules

RULES = [
    "RULE:[1:$1@$0](.*@RIG.TEST)s/@.*//L",
    "RULE:[2:$1@$0](etl@RIG.TEST)s/.*/loader/",
    "RULE:[2:service-$1@$0](service-svc@RIG.TEST)s/@.*//",
    "RULE:[2:$1;$2](.*;admin)s/;admin$//",
    "RULE:[2:$2]/U",
    "DEFAULT",
]


@pytest.mark.parametrize(
    ("rules", "principal", "user"),
    [
        (RULES, "Alice@RIG.TEST", "alice"),
        (RULES, "etl/h1@RIG.TEST", "loader"),
        (RULES, "svc/h1@RIG.TEST", "service-svc"),
        (RULES, "jo/admin@ELSE.TEST", "jo"),
        (RULES, "jo/h1@ELSE.TEST", "H1"),
        (RULES, "dora@HOME.TEST", "dora"),
        (["DEFAULT"], "kafka/host@HOME.TEST", "kafka"),
        (["DEFAULT"], "plain", "plain"),
        (["RULE:[1:$1]"], "a@X", "a"),
        (["RULE:[1:$1]s/a/o/"], "banana@X", "bonana"),
        (["RULE:[1:$1]s/a/o/g"], "banana@X", "bonono"),
        (["RULE:[1:$1]s/a/o/g/U"], "banana@X", "BONONO"),
        (["RULE:[1:$1]s/(b)(.*)/$2-$1/"], "banana@X", "anana-b"),
        (["RULE:[1:$1]s/b/\\n/"], "bo@X", "\\no"),
    ],
)
def test_the_first_rule_that_applies_names_the_user(rules: list[str], principal: str, user: str) -> None:
    assert parse_rules(rules, "HOME.TEST").user_of(parse_kerberos_name(principal)) == user


@pytest.mark.parametrize(
    ("rules", "principal", "reason"),
    [
        (["DEFAULT"], "a@ELSE.TEST", "no rule"),
        (["RULE:[2:$1]"], "a@HOME.TEST", "no rule"),
        (["RULE:[1:$1](b.*)"], "a@HOME.TEST", "no rule"),
        (["RULE:[1:$1](a)"], "ab@HOME.TEST", "no rule"),
        ([], "a@HOME.TEST", "no rule"),
        (["RULE:[1:$1@$0]"], "a@HOME.TEST", "with a / or @"),
    ],
)
def test_a_principal_without_a_user_fails_to_log_in(rules: list[str], principal: str, reason: str) -> None:
    with pytest.raises(AuthenticationFailed, match=reason):
        parse_rules(rules, "HOME.TEST").user_of(parse_kerberos_name(principal))


@pytest.mark.parametrize(
    "rule",
    ["NOTHING", "RULE:[x:$1]", "RULE:[1:$2]", "RULE:[1:$1](()", "RULE:[1:$1]s/a/$3/", "RULE:[1:$1]x"],
)
def test_a_rule_that_cannot_be_read_is_named(rule: str) -> None:
    with pytest.raises(SecuritySettingsError, match=r"to\.local\.rules"):
        parse_rules([rule], "R")


@pytest.mark.parametrize("text", ["", "@R", "a/b/c@R", "a@b@c", "/h@R", "a/@R", "root\\@HOME@R", "a\\/b@R"])
def test_a_text_that_is_no_principal_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_kerberos_name(text)
