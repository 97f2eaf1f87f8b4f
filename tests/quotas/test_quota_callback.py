"""Quotas that a plug-in decides, by the user that logged in."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.metadata.quotas import QuotasImage
from barnabas.settings import SettingsError

WINDOWS = {
    "quota.window.num": 11,
    "quota.window.size.seconds": 1,
    "controller.quota.window.num": 11,
    "controller.quota.window.size.seconds": 1,
}


class Teams:
    """Users share the limit of their team, which is the part of their name before the dash."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def limit(self, kind: str, user: str, client_id: str) -> tuple[float, str] | None:
        if user == "broken":
            raise RuntimeError("no idea")
        if kind != "producer_byte_rate" or "-" not in user:
            return None
        return 1000.0, user.partition("-")[0]

    def quotas_changed(self, quotas: Any) -> None:
        self.told.append(quotas)


def quotas_of(name: str | None) -> ClientQuotas:
    settings: Any = WINDOWS | {"client.quota.callback.class": name}
    quotas = ClientQuotas(settings, lambda: 0.0)
    quotas.configure(QuotasImage())
    return quotas


def test_a_plug_in_decides_limits_and_who_shares_them() -> None:
    quotas = quotas_of(f"{__name__}:Teams")
    assert quotas.produced("a-1", "c", 8_000) == 0
    assert quotas.produced("a-2", "d", 800_000) > 0  # of the same team
    assert quotas.produced("b-1", "c", 100) == 0
    assert quotas.produced("alone", "c", 10**9) == 0
    assert quotas.fetching("a-1", "c") is None


def test_a_plug_in_that_fails_limits_nobody(caplog: pytest.LogCaptureFixture) -> None:
    assert quotas_of(f"{__name__}:Teams").produced("broken", "c", 10**9) == 0
    assert "asking for a quota" in caplog.text


def test_the_plug_in_is_told_the_quotas_of_the_metadata() -> None:
    quotas = quotas_of(f"{__name__}:Teams")
    callback: Any = quotas._callback
    assert callback.told == [{}]


@pytest.mark.parametrize("name", ["no.such:Name", f"{__name__}:Missing", "collections:OrderedDict"])
def test_what_is_no_plug_in_is_refused_by_name(name: str) -> None:
    with pytest.raises(SettingsError, match=r"client\.quota\.callback\.class"):
        quotas_of(name)
