"""JAAS texts."""

from pathlib import Path

import pytest

from barnabas.security.clients.jaas_file import entry_in, path_in, read_jaas_file
from barnabas.security.errors import SecuritySettingsError
from barnabas.security.sasl.jaas import parse_jaas, parse_jaas_file

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{PLAIN} required;", {}),
        (f'{PLAIN} required username="al" password="a;b =c";', {"username": "al", "password": "a;b =c"}),
        (f'{PLAIN}  REQUIRED\n  user_x = "1"\n\tuser_y=two ;\n', {"user_x": "1", "user_y": "two"}),
        (f"{PLAIN} optional password='it\"s';", {"password": 'it"s'}),
        (f'{PLAIN} required password="a\\"b\\\\c\\td";', {"password": 'a"b\\c\td'}),
        (f'{PLAIN} required /* why */ a="1" // and more\n b="2";', {"a": "1", "b": "2"}),
        (f'{PLAIN} required useKeyTab=true file="/k" x="";', {"useKeyTab": "true", "file": "/k", "x": ""}),
    ],
)  # fmt: skip
def test_an_entry_has_a_module_and_options(text: str, options: dict[str, str]) -> None:
    entry = parse_jaas(text)
    assert entry.module == PLAIN
    assert dict(entry.options) == options


@pytest.mark.parametrize(
    "text",
    [
        "",
        PLAIN,
        f"{PLAIN} required",
        f'{PLAIN} required password="s3cret"',
        f'{PLAIN} perhaps password="s3cret";',
        f"{PLAIN} required password s3cret;",
        f'{PLAIN} required password="s3cret;',
        f'{PLAIN} required password="s3cret"; {PLAIN} required;',
    ],
)
def test_a_wrong_text_is_refused_without_its_secrets(text: str) -> None:
    with pytest.raises(SecuritySettingsError) as refused:
        parse_jaas(text)
    assert "s3cret" not in str(refused.value)


def test_an_entry_does_not_print_its_secrets() -> None:
    assert "s3cret" not in repr(parse_jaas(f'{PLAIN} required password="s3cret";'))


def test_a_file_has_sections() -> None:
    found = parse_jaas_file(
        f"""
        // of a broker
        KafkaServer {{
            {PLAIN} required username="a";
            org.apache.kafka.common.security.scram.ScramLoginModule required username="b";
        }};
        clients.KafkaServer {{ {PLAIN} required username="c"; }};
        """
    )
    assert entry_in(found, ("clients.KafkaServer", "KafkaServer"), "PLAIN") == found["clients.KafkaServer"][0]
    scram = entry_in(found, ("internal.KafkaServer", "KafkaServer"), "SCRAM-SHA-512")
    assert scram is not None and scram.options["username"] == "b"
    assert entry_in(found, ("clients.KafkaServer", "KafkaServer"), "SCRAM-SHA-512") is None


def test_the_file_of_the_jvm_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "jaas file.conf"
    path.write_text(f"KafkaClient {{ {PLAIN} required; }};")
    assert path_in("-Xmx1g -Djava.security.auth.login.config=/a -Djava.security.auth.login.config=/b") == "/b"
    monkeypatch.setenv("KAFKA_OPTS", f"'-Djava.security.auth.login.config={path}'")
    assert list(read_jaas_file()) == ["KafkaClient"]
    with pytest.raises(SecuritySettingsError, match="cannot be read"):
        read_jaas_file(str(tmp_path / "none"))
