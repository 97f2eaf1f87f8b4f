"""The word of a connector about exactly-once support decides what its configuration may ask for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.connect.config.providers import Providers
from barnabas.connect.herder.validation import validate
from connect.fakes import QuietConnector, QuietPlugins

CONFIG = {
    "name": "a", "connector.class": "Quiet", "topic": "t", "exactly.once.support": "required",
    "transaction.boundary": "connector",
}  # fmt: skip
WORKER = {"exactly.once.source.support": "enabled"}


def fails() -> bool:
    raise OSError("the catalogue is away")


@pytest.mark.parametrize(
    ("support", "boundaries", "texts"),
    [
        (lambda: True, lambda: True, ()),
        (lambda: None, lambda: True, ("does not implement the API required for preflight",)),
        (lambda: False, lambda: False, ("does not support exactly-once", "connector-defined transaction")),
        (fails, fails, ("during validation: the catalogue is away",) * 2),
    ],
)
def test_a_connector_says_what_it_supports(
    monkeypatch: pytest.MonkeyPatch,
    support: Callable[[], bool | None],
    boundaries: Callable[[], bool],
    texts: tuple[str, ...],
) -> None:
    monkeypatch.setattr(QuietConnector, "exactly_once_support", lambda self, config: support())
    monkeypatch.setattr(QuietConnector, "defines_transactions", lambda self, config: boundaries())
    found = validate(CONFIG, QuietPlugins(), WORKER, Providers(WORKER))
    errors = [text for each in found.values.values() for text in each.errors]
    assert len(errors) == len(texts)
    assert all(wanted in text for wanted, text in zip(texts, errors, strict=True)), errors
