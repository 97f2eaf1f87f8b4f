"""Providers of master keys and the key files of log dirs: what they accept, refuse, and never show."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from barnabas.runtime.disk import REAL_DISK
from barnabas.storage import StorageError
from barnabas.storage.encryption import key_files, providers
from barnabas.storage.encryption.key_ring import KeyRing
from barnabas.storage.encryption.providers import KeyProvider, MasterKeys, provider_of

KEY = base64.b64encode(b"k" * 32).decode()
OTHER = base64.b64encode(b"o" * 32).decode()


def master_keys(settings: Mapping[str, str]) -> KeyProvider:
    return MasterKeys({"mine": b"m" * 32}, settings["barnabas.encryption.place"])


def broken(settings: Mapping[str, str]) -> KeyProvider:
    raise RuntimeError(f"cannot log in with {KEY}")


class Unreachable(MasterKeys):
    def unwrap(self, key_id: str, wrapped: bytes, label: bytes) -> bytes:
        raise ConnectionError(f"no answer to the token {KEY}")


def test_the_last_key_is_current_and_all_of_them_unwrap() -> None:
    old = MasterKeys.parse(f"v1={KEY}", "old")
    both = MasterKeys.parse(f"# comment\nv1={KEY}\n\n v2 = {OTHER} \n", "both")

    assert both.current_id == "v2"
    assert both.unwrap("v1", old.wrap(b"data key", b"1"), b"1") == b"data key"
    with pytest.raises(providers.KeyUnavailable, match="is another key"):
        both.unwrap("v2", old.wrap(b"data key", b"1"), b"1")
    with pytest.raises(providers.KeyUnavailable, match="is another key"):
        both.unwrap("v1", old.wrap(b"data key", b"1"), b"2")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "holds no master key"),
        (KEY[:-4], "entry 1 is not 'id=key'"),
        (f"={KEY}", "entry 1 is not 'id=key'"),
        (f"v1={KEY[:20]}", "the key 'v1' is not 'id=key'"),
        (f"v1={KEY},v1={OTHER}", "the id 'v1' is there twice"),
    ],
)
def test_a_wrong_text_is_refused_without_showing_a_key(text: str, reason: str) -> None:
    with pytest.raises(StorageError, match=reason) as caught:
        MasterKeys.parse(text, "the test")
    assert KEY[:16] not in str(caught.value)


def test_a_provider_is_found_by_its_path_or_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"barnabas.encryption.place": "here"}
    by_path = {**settings, providers.PROVIDER: f"{__name__}:master_keys"}
    assert provider_of(by_path).current_id == "mine"

    point = EntryPoint("vault", f"{__name__}:master_keys", providers.ENTRY_POINTS)
    monkeypatch.setattr(
        providers, "entry_points", lambda *, group, name="vault": [point] if name == "vault" else []
    )
    assert provider_of({**settings, providers.PROVIDER: "vault"}).current_id == "mine"
    with pytest.raises(StorageError, match="valt is not installed; installed are env, file, vault"):
        provider_of({**settings, providers.PROVIDER: "valt"})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no.such.module:Name", "no.such.module:Name cannot be loaded: No module named 'no'"),
        (f"{__name__}:missing", "cannot be loaded"),
        (f"{__name__}:broken", "failed: RuntimeError"),
    ],
)
def test_a_provider_that_fails_is_named_and_its_message_is_not(name: str, reason: str) -> None:
    with pytest.raises(StorageError, match=reason) as caught:
        provider_of({providers.PROVIDER: name})
    assert KEY not in str(caught.value)


def test_a_provider_that_cannot_unwrap_does_not_show_its_message(tmp_path: Path) -> None:
    keys = key_files.with_new_key([], MasterKeys({"v1": b"k" * 32}, "here"), lambda count: bytes(count))
    with pytest.raises(StorageError, match="failed to unwrap data key 1 with master key 'v1'") as caught:
        key_files.ring_of(str(tmp_path), keys, Unreachable({"v1": b"k" * 32}, "here"), is_enabled=True)
    assert KEY not in str(caught.value)


def test_keys_survive_the_file_and_a_new_master_key(tmp_path: Path) -> None:
    folder = str(tmp_path)
    old = MasterKeys({"v1": b"k" * 32}, "here")
    new = MasterKeys({"v1": b"k" * 32, "v2": b"o" * 32}, "here")
    keys = key_files.with_new_key([], old, lambda count: b"1" * count)
    keys = key_files.with_new_key(keys, old, lambda count: b"2" * count)
    key_files.store(REAL_DISK, folder, key_files.rewrapped(folder, keys, new))

    loaded = key_files.load(REAL_DISK, folder)
    ring = key_files.ring_of(folder, loaded, MasterKeys({"v2": b"o" * 32}, "here"), is_enabled=True)
    assert (ring.key(1, ""), ring.key(2, ""), ring.current) == (b"1" * 32, b"2" * 32, 2)
    assert key_files.ring_of(folder, loaded, new, is_enabled=False).current is None


@pytest.mark.parametrize(
    "content", ["", "{", '{"version": 1}', '{"version": 1, "keys": [{"number": 1}]}', "[]"]
)
def test_a_damaged_key_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "encryption-keys.json").write_text(content)
    with pytest.raises(StorageError, match=r"encryption-keys.json is damaged, restore it from a backup"):
        key_files.load(REAL_DISK, str(tmp_path))


def test_a_ring_goes_to_another_process_and_shows_no_key() -> None:
    ring = KeyRing("/data", {1: b"\x01" * 32, 2: b"\x02" * 32}, 2)
    again = KeyRing.restore(ring.export())
    assert (again.log_dir, again.current, again.key(1, "")) == ("/data", 2, b"\x01" * 32)
    assert repr(again) == "KeyRing(/data, keys [1, 2], current 2)"
