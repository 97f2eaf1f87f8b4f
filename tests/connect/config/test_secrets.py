"""Secrets in settings are hidden in responses and messages, and come back as they were stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.connect.config import ConfigDef
from barnabas.connect.config.providers import Providers
from barnabas.connect.config.secrets import Redaction, hidden_parts, masked, restored

FILES = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("jdbc:mysql://h/db?user=a&password=pw1&ssl=1", "jdbc:mysql://h/db?user=a&password=[hidden]&ssl=1"),
        ("jdbc:postgresql://u:pw@h:1/db", "jdbc:postgresql://[hidden]@h:1/db"),
        ("https://u:p/w@h1:9200,https://u:pw@h2", "https://[hidden]@h1:9200,https://[hidden]@h2"),
        ("https://token@h/x", "https://[hidden]@h/x"),
        ("https://u:p@ss@h/x", "https://[hidden]@h/x"),
        ("Server=x;Password='a;b';Q=1", "Server=x;Password=[hidden];Q=1"),
        (
            'org.x.Module required password="a b" user="c";',
            'org.x.Module required password=[hidden] user="c";',
        ),
        ("https://h/x?api_key=abc&n=1", "https://h/x?api_key=[hidden]&n=1"),
        ('{"login": "a", "password": "pw"}', '{"login": "a", "password": "[hidden]"}'),
        ("https://u:${file:/x:pw}@h", "https://u:${file:/x:pw}@h"),
        ("https://u:a${file:/x:pw}@h/${file:/x:y}", "https://[hidden]@h/${file:/x:y}"),
        (
            "jdbc:x://h/db?password=${file:/x:pw}&n=${env:N}",
            "jdbc:x://h/db?password=${file:/x:pw}&n=${env:N}",
        ),
        ('password="open', "password=[hidden]"),
        ("abfss://container@account.dfs.core.windows.net/path", None),
        ("http://h1:9200,http://h2:9200/x@y", None),
        ("http://h:8083/a@b", None),
        ("tokens,password", None),
        ("s3://bucket/folder", None),
    ],
)
def test_secret_parts_of_a_value_are_hidden(value: str, shown: str | None) -> None:
    expected = value if shown is None else shown
    assert hidden_parts(value) == expected
    assert hidden_parts(expected) == expected, "what is shown stays what is shown"


def test_a_configuration_that_comes_back_as_it_was_shown_is_the_stored_one() -> None:
    definition = ConfigDef().define("headers", "PASSWORD", "")
    stored = {"url": "https://u:pw@h", "headers": "Authorization: x", "a.password": "p", "n": "1"}
    shown = masked(stored, definition)
    assert shown == {"url": "https://[hidden]@h", "headers": "[hidden]", "a.password": "[hidden]", "n": "1"}
    assert restored({**shown, "n": "2"}, stored, shown) == {**stored, "n": "2"}


def test_messages_show_references_in_place_of_what_they_stand_for(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text("pw=hunter2\nurl=jdbc:x://h/db?password=deep&n=1\nshort=ab\nlist=one,two\n")
    raw = {
        "password": f"${{file:{secrets}:pw}}",
        "url": f"${{file:{secrets}:url}}",
        "short": f"${{file:{secrets}:short}}",
        "list": f"${{file:{secrets}:list}}",
        "own.password": "plain'quote",
        "address": "https://u:inner@h",
    }
    redaction = Providers(FILES).redaction(raw)
    assert redaction.resolved["password"] == "hunter2"
    assert redaction.text("login hunter2 failed") == f"login {raw['password']} failed"
    assert "deep" not in redaction.text("no login with deep")
    assert redaction.text("about ab: value ab") == f"about {raw['short']}: value {raw['short']}"
    assert redaction.text("Invalid value [one, two] for") == f"Invalid value [{raw['list']}] for"
    assert redaction.text('x "plain\'quote" y') == 'x "[hidden]" y'
    assert redaction.text("cannot reach inner") == "cannot reach [hidden]"


def test_a_trace_keeps_its_places_in_code() -> None:
    redaction = Redaction({"a.password": "barnabas"}, {"a.password": "barnabas"}, {})
    trace = '  File "/src/barnabas/x.py", line 3, in start\n    connect()\nError: login barnabas failed'
    assert redaction.text(trace) == trace.replace("login barnabas", "login [hidden]")


@pytest.mark.parametrize("piece", ["://a:", "password", "${a:", "token=", '"token":"', "://", "a", " = "])
def test_a_long_value_costs_its_length(piece: str) -> None:
    """A pattern that goes back for each piece would need hours for a million signs."""
    value = piece * (1_000_000 // len(piece))
    assert len(hidden_parts(value)) <= len(value) + len("[hidden]") * value.count("=")
