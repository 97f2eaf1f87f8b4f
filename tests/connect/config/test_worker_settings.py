"""Settings of workers: every error is told at once, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.connect.api.workers import worker_properties
from barnabas.connect.config.worker_settings import without_effect
from barnabas.connect.herder.distributed.signing import check, key_of, signed
from barnabas.settings.errors import SettingsError

WORKER = {
    "bootstrap.servers": "localhost:9092", "key.converter": "x", "value.converter": "y", "group.id": "g",
    "config.storage.topic": "c", "offset.storage.topic": "o", "status.storage.topic": "s",
}  # fmt: skip


def read(folder: Path, given: dict[str, str], *, is_distributed: bool = True) -> dict[str, str]:
    path = folder / "worker.properties"
    path.write_text("".join(f"{name}={text}\n" for name, text in given.items()))
    return worker_properties(path, {"client.id": "won"}, is_distributed=is_distributed)


def test_all_errors_are_told_in_kafkas_words(tmp_path: Path) -> None:
    wrong = {
        "exactly.once.source.support": "yes",
        "connect.protocol": "foo",
        "session.timeout.ms": "soon",
        "offset.storage.partitions": "0",
        "inter.worker.signature.algorithm": "HmacSHA512",
    }
    given = {name: text for name, text in WORKER.items() if name != "group.id"}
    with pytest.raises(SettingsError) as raised:
        read(tmp_path, {**given, **wrong})
    texts = str(raised.value).splitlines()
    assert "has 6 errors" in texts[0]
    assert set(texts[1:]) == {
        'Missing required configuration "group.id" which has no default value.',
        "Invalid value yes for configuration exactly.once.source.support: String must be one of (case"
        " insensitive): DISABLED, ENABLED, PREPARING",
        "Invalid value foo for configuration connect.protocol: Invalid Connect protocol compatibility",
        "Invalid value soon for configuration session.timeout.ms: Not a number of type INT",
        "Invalid value 0 for configuration offset.storage.partitions: Number of partitions must be positive,"
        " or -1 to use the broker's default",
        "Signature algorithm must be present in inter.worker.verification.algorithms list",
    }


def test_values_are_trimmed_and_overrides_win(tmp_path: Path) -> None:
    found = read(tmp_path, {**WORKER, "connect.protocol": "EAGER ", "plugin.path": "", "client.id": "file"})
    assert (found["connect.protocol"], found["client.id"]) == ("EAGER", "won")
    assert "plugin.path" not in found


def test_a_single_worker_needs_a_file_for_offsets(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r'"offset\.storage\.file\.filename"'):
        read(tmp_path, WORKER, is_distributed=False)
    with pytest.raises(SettingsError, match=r"exactly\.once\.source\.support"):
        wrong = {"offset.storage.file.filename": "f", "exactly.once.source.support": "yes"}
        read(tmp_path, {**WORKER, **wrong}, is_distributed=False)


def test_settings_that_change_nothing_are_named() -> None:
    given = {**WORKER, "metrics.num.samples": "3", "plugin.discovery": "hybrid_warn"}
    assert list(without_effect(given, is_distributed=True)) == ["metrics.num.samples"]
    alone = without_effect({**given, "connect.protocol": "eager"}, is_distributed=False)
    assert {"connect.protocol", "metrics.num.samples"} <= alone.keys() and "group.id" not in alone


def test_keys_and_signatures_are_made_as_the_settings_say() -> None:
    settings = {"inter.worker.key.size": "128", "inter.worker.key.generation.algorithm": "HmacSHA384"}
    key = key_of(settings, 1)
    assert (len(key["key"]), key["algorithm"]) == (24, "HmacSHA384")  # 16 bytes in base64
    check(key, signed(key, b"body", "HmacSHA512"), b"body", ("HmacSHA512",))
