"""A missing program skips its tests, but fails them where CI could have installed it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import installed_tools
from installed_tools import are_required, needs


@pytest.mark.parametrize(
    ("ci", "user_id", "is_debian", "expected"),
    [
        ("true", 0, True, True),
        ("", 0, True, False),
        ("true", 1000, True, False),
        ("true", 0, False, False),
    ],
)
def test_tools_are_required_where_ci_can_install_them(
    ci: str, user_id: int, is_debian: bool, expected: bool
) -> None:
    assert are_required({"CI": ci}, user_id, is_debian=is_debian) is expected


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(installed_tools, "DEBIAN", tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    yield


def test_a_missing_tool_fails_the_test_in_ci(debian: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-tool is not installed"):
        needs("sh", "no-such-tool")


def test_a_missing_tool_skips_the_test_elsewhere(debian: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-tool is not installed"):
        needs("no-such-tool")
    needs("sh")
