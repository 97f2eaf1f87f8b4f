"""Encrypted and tokenised fields, references to secrets, and where a service may listen."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.main import main
from barnabas.engine.field_cipher import FieldCipher, KeyProblem, new_key
from barnabas.engine.secrets import Secret, SecretError
from barnabas.engine.session import with_redaction
from barnabas.pipeline.file.reading import FileProblems, read_text
from barnabas.pipeline.file.writing import document
from barnabas.pipeline.spec.exposure import why_closed
from barnabas.pipeline.spec.model import Trusted

FILE = """
name: shop
lake: ./lake
spark: {settings: {spark.hadoop.fs.s3a.key: "${env:S3_KEY}"}}
sources:
  people:
    topic:
      bootstrap.servers: localhost:9092
      subscribe: people
      settings:
        kafka.security.protocol: SASL_SSL
        kafka.sasl.mechanism: PLAIN
        kafka.sasl.jaas.config: 'some.PlainLoginModule required username="ann" password="${env:WORD}";'
    schema: "id BIGINT, name STRING, email STRING, card STRING"
staging: {people: {key: [id]}}
trusted:
  people: {hash: [name], salt: "${env:SALT}", encrypt: [email], tokenise: [card], key: "${env:FIELD_KEY}"}
"""


def problems(text: str) -> str:
    with pytest.raises(FileProblems) as caught:
        read_text(text)
    return str(caught.value)


@pytest.mark.parametrize("text", ["ann@example.org", "", "ü€😀", "x" * 10_000])
def test_protected_texts_come_back_with_the_key(text: str) -> None:
    cipher = FieldCipher(new_key())
    encrypted, token = cipher.encrypt(text), cipher.tokenise(text)
    assert cipher.decrypt(encrypted) == cipher.decrypt(token) == text
    assert encrypted != cipher.encrypt(text) and token == cipher.tokenise(text)
    assert text == "" or (text not in encrypted and text not in token)
    assert (
        cipher.decrypt_all(f'{{"a": "{encrypted}", "b": "{token}"}}') == f'{{"a": "{text}", "b": "{text}"}}'
    )


def test_another_key_and_changed_texts_are_refused() -> None:
    cipher, other = FieldCipher(new_key()), FieldCipher(new_key())
    for protect in (cipher.encrypt, cipher.tokenise):
        text = protect("secret")
        with pytest.raises(KeyProblem, match=f"key {cipher.key_id}, this is key {other.key_id}"):
            other.decrypt(text)
        changed = text[:-4] + ("AAAA" if text[-4:] != "AAAA" else "BBBB")
        with pytest.raises(KeyProblem, match="was changed"):
            cipher.decrypt(changed)
        assert other.decrypt_all(text) == text
    with pytest.raises(KeyProblem, match="no encrypted"):
        cipher.decrypt("plain")


@pytest.mark.parametrize("key", ["", "short", "A" * 43, "zz" * 32])
def test_a_wrong_key_is_named_without_being_shown(key: str) -> None:
    with pytest.raises(KeyProblem, match="32 bytes in base64") as caught:
        FieldCipher(key)
    assert not key or key not in str(caught.value)


def test_a_cipher_travels_to_workers_and_shows_no_key() -> None:
    key = new_key()
    cipher = FieldCipher(key)
    there = pickle.loads(pickle.dumps(cipher))
    assert there.decrypt(cipher.encrypt("x")) == "x"
    assert key not in repr(cipher) and FieldCipher(bytes(range(32)).hex()).key_id


def test_columns_are_hidden_in_one_way_only() -> None:
    pipeline = read_text(FILE)
    assert read_text(FILE).trusted[0].protected == ("name", "email", "card")
    assert document(pipeline)["trusted"]["people"]["key"] == "${env:FIELD_KEY}"
    assert "card is hidden in 2 ways" in problems(FILE.replace("encrypt: [email]", "encrypt: [email, card]"))
    assert "tokenise it" in problems(FILE.replace("encrypt: [email]", "encrypt: [id]"))
    assert "people.key: is missing" in problems(FILE.replace(', key: "${env:FIELD_KEY}"', ""))
    assert "key: holds a secret" in problems(FILE.replace("${env:FIELD_KEY}", new_key()))
    assert "there is no column 'mail'" in problems(FILE.replace("[email]", "[mail]"))


def test_secrets_of_topics_and_of_spark_are_references() -> None:
    assert "kafka.sasl.jaas.config holds a secret" in problems(FILE.replace("${env:WORD}", "word"))
    pipeline = read_text(FILE.replace("fs.s3a.key", "fs.s3a.secret.key"))
    assert "holds a secret" in problems(
        FILE.replace("fs.s3a.key", "fs.s3a.secret.key").replace("${env:S3_KEY}", "k")
    )
    assert document(pipeline)["spark"]["settings"] == {"spark.hadoop.fs.s3a.secret.key": "${env:S3_KEY}"}


def test_settings_with_secrets_are_hidden_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3_KEY", "revealed")
    found = with_redaction({"spark.hadoop.fs.s3a.key": Secret("${env:S3_KEY}"), "spark.x": "1"})
    assert found["spark.hadoop.fs.s3a.key"] == "revealed"
    assert found["spark.redaction.regex"].endswith(r"|access[.]?key|fs\.s3a\.key")
    assert with_redaction({"spark.x": "1"}) == {"spark.x": "1"}


def test_references_to_keys_of_files(tmp_path: Path) -> None:
    (tmp_path / "all.properties").write_text("pass=one\n")
    (tmp_path / "token").write_text("two\n")
    assert Secret(f"${{file:{tmp_path}/all.properties:pass}}").reveal() == "one"
    assert Secret(f"${{file:{tmp_path}/token}}").reveal() == "two"
    assert Secret(f"${{directory:{tmp_path}:token}}").reveal() == "two\n"
    for wrong, why in {
        f"${{file:{tmp_path}/all.properties:word}}": "has no key word",
        f"${{file:{tmp_path}/none}}": "cannot be read",
        f"${{directory:{tmp_path}:../token}}": "directory:PATH:NAME",
        "${env:NOT_THERE_AT_ALL}": "is not set",
    }.items():
        with pytest.raises(SecretError, match=why):
            Secret(wrong).reveal()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_loopback_addresses_are_open(host: str) -> None:
    assert why_closed(host, is_guarded=False, has_tls=False) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_other_addresses_need_guests_and_tls(host: str) -> None:
    assert "anybody could ask" in str(why_closed(host, is_guarded=False, has_tls=True))
    assert "readable" in str(why_closed(host, is_guarded=True, has_tls=False))
    assert why_closed(host, is_guarded=True, has_tls=True) is None
    assert "anybody could ask" in problems(FILE + f'serving: {{host: "{host}"}}\n') or not host


def test_decrypt_prints_what_is_behind_the_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "key"], "barnabas") == 0
    key = capsys.readouterr().out.strip()
    monkeypatch.setenv("FIELD_KEY", key)
    file = tmp_path / "pipeline.yaml"
    file.write_text(FILE)
    text = FieldCipher(key).encrypt("ann@example.org")
    assert main(["pipeline", "decrypt", "--file", str(file), "people", f"<{text}>"], "barnabas") == 0
    assert capsys.readouterr().out == "<ann@example.org>\n"
    assert main(["pipeline", "decrypt", "--file", str(file), "orders", text], "barnabas") == 1
    assert "no trusted table orders has a key" in capsys.readouterr().err
    monkeypatch.setenv("FIELD_KEY", "short")
    assert main(["pipeline", "decrypt", "--file", str(file), "people", text], "barnabas") == 1


def test_a_hash_is_sha256_of_salt_and_value() -> None:
    pytest.importorskip("pyspark")
    from barnabas.pipeline.ingest.masking import hashing

    assert hashing("salt")("ann") == hashlib.sha256(b"saltann").hexdigest()


def test_salts_and_keys_are_in_no_plan(spark: Any) -> None:
    from pyspark.sql import functions as F

    from barnabas.pipeline.ingest.masking import masked

    key, salt = new_key(), "salt-90c2aa-grain"
    trusted = Trusted(
        name="people",
        staging="people",
        hash=["name"],
        salt=salt,
        encrypt=["email"],
        tokenise=["card"],
        key=key,
    )
    ddl = "name string, email string, card string"
    rows = spark.createDataFrame([("ann", "a@b.c", "1"), (None, None, None)], ddl)
    found = rows.select(*[masked(trusted, each) for each in rows.columns]).orderBy(F.col("name").isNull())
    plan = found._jdf.queryExecution().toString()
    assert "hashed(" in plan and "encrypted(" in plan and "tokenised(" in plan
    assert salt not in plan and key not in plan
    first, empty = found.collect()
    cipher = FieldCipher(key)
    assert first.name == hashlib.sha256(f"{salt}ann".encode()).hexdigest()
    assert (cipher.decrypt(first.email), first.card) == ("a@b.c", cipher.tokenise("1"))
    assert tuple(empty) == (None, None, None)
