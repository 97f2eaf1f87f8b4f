"""Regular expressions match and are refused as by RE2, and no expression takes long."""

from __future__ import annotations

import pytest

from barnabas.expressions.chars import RegexError
from barnabas.expressions.matching import matcher
from barnabas.groups.consumer.topic_matches import TopicMatches
from barnabas.metadata.image import MetadataImage
from groups.host import image_of

# Expressions with a text that matches and one that does not.
MATCHES = [
    ("a.*", "abc", "bca"),
    ("foo|bar", "bar", "foobar"),
    ("(foo|bar)-[0-9]+", "bar-12", "bar-"),
    ("[^a]*", "xyz", "xay"),
    ("[[:alpha:]]+", "Foo", "f1"),
    ("[[:^alpha:]]+", "1.2", "a"),
    (r"\d+\.\w+", "1.a_b", "a.1"),
    ("a{2,3}", "aaa", "aaaa"),
    ("a{2,}", "aaaaa", "a"),
    ("a{,3}", "a{,3}", "aa"),
    ("(?i)FOO", "fOo", "bar"),
    ("(?i:foo)-X", "FOO-X", "FOO-x"),
    ("(?P<name>foo)", "foo", "name"),
    (r"\Qa.b\E", "a.b", "axb"),
    (r"\x41\x{42}", "AB", "ab"),
    (r"\p{Lu}+", "ABC", "abc"),
    (r"\pL+", "aB", "a1"),
    ("[a-]+", "a-a", "b"),
    ("[]a]+", "a]", "b"),
    (r"\bfoo\b.*", "foo-x", "foox"),
    (r"^foo$", "foo", "foo-"),
    (r"fo\Bo", "foo", "fo"),
    ("a*?", "aaa", "b"),
    ("", "", "a"),
    ("x{0}a", "a", "xa"),
    (r"[\w.]+", "a.b", "a-b"),
]

REFUSED = [
    ("[", "missing closing ]"),
    ("(", "missing closing )"),
    ("a)", "unexpected )"),
    ("(?=a)", "invalid or unsupported Perl syntax"),
    ("(?!a)", "invalid or unsupported Perl syntax"),
    ("(?<=a)", "invalid named capture"),
    (r"(a)\1", "invalid escape sequence"),
    ("*", "missing argument to repetition operator"),
    ("a**", "invalid nested repetition operator"),
    ("a{1001}", "invalid repeat count"),
    ("a{3,2}", "invalid repeat count"),
    ("[b-a]", "invalid character class range"),
    ("[[:foo:]]", "invalid character class range"),
    (r"\p{Foo}", "invalid character class range"),
    ("a\\", "trailing backslash at end of expression"),
    ("(?P<x>a)(?P<x>b)", "duplicate capture group name"),
    (r"\Z", "invalid escape sequence"),
    ("a" * 5000, "expression is longer than 4096 characters"),
    ("(a{1000}){1000}", "expression is too large"),
    ("(" * 1000, "expression nests too deeply"),
]


@pytest.mark.parametrize(("pattern", "good", "bad"), MATCHES)
def test_an_expression_matches_whole_names(pattern: str, good: str, bad: str) -> None:
    assert matcher(pattern).matches(good)
    assert not matcher(pattern).matches(bad)


@pytest.mark.parametrize(("pattern", "why"), REFUSED)
def test_expressions_that_re2_refuses_are_refused_with_its_description(pattern: str, why: str) -> None:
    with pytest.raises(RegexError) as refused:
        matcher(pattern)
    assert str(refused.value) == why


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*a){12}b", "a?" * 60 + "a" * 60 + "b"])
@pytest.mark.timeout(20)
def test_an_expression_that_makes_backtracking_hang_is_answered(pattern: str) -> None:
    assert not matcher(pattern).matches("a" * 249)


def test_states_that_were_found_are_forgotten_when_there_are_too_many() -> None:
    wide = matcher("[ab]*a[ab]{12}")  # needs thousands of states

    texts = [f"{number:016b}".translate({48: "a", 49: "b"}) for number in range(3000)]

    assert [wide.matches(text) for text in texts] == [text[-13] == "a" for text in texts]


def matching(pattern: str, image: MetadataImage) -> frozenset[str]:
    matches = TopicMatches()
    while (found := matches.find(pattern, image)) is None:
        pass
    return found


def test_an_expression_that_takes_too_long_finds_nothing() -> None:
    image = image_of({f"{number:040b}".translate({48: "a", 49: "b"}): 1 for number in range(0, 10**9, 10**6)})
    heavy = "|".join(f"[ab]*a[ab]{{{number}}}" for number in range(5, 35)) + "|[ab]*"

    assert len(matching("[ab]*", image)) == 1000
    assert matcher(heavy).matches("ab")
    assert matching(heavy, image) == frozenset()


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        (".*", "zahl-für-ünf", True),
        ("zahl-[^a-z]", "zahl-ü", True),
        ("zahl-\\W", "zahl-ü", True),
        ("zahl-[a-z]", "zahl-ü", False),
        ("[[:ascii:]]*", "zahl-ü", False),
        ("zahl", "zahl-ü", False),
    ],
)
def test_characters_beyond_ascii_are_any_character(pattern: str, text: str, is_match: bool) -> None:
    assert matcher(pattern).matches(text) is is_match
