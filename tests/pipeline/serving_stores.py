"""Stores of views in DuckDB and in PostgreSQL, opened again and again, and orders to count in them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.demo import postgres
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.port import Store
from pipeline.views_model import (
    Order,
)

Open = Callable[..., Store]
SHOPS = ("berlin", "paris", "rome", None, "a,b", "")
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Postgres]:
    if reason := postgres.available():
        pytest.skip(reason)
    with postgres.Postgres(password="a secret") as found:
        yield found


@pytest.fixture(params=["duckdb", "postgresql"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same store each time."""
    url = "duckdb" if request.param == "duckdb" else request.getfixturevalue("server").dsn
    name = f"test_{next(_numbers)}"
    stores: list[Store] = []

    def open_again(**given: Any) -> Store:
        for store in stores:
            store.close()
        stores[:] = [open_store(url, name=name, folder=tmp_path, **given)]
        return stores[0]

    yield open_again
    for store in stores:
        store.close()


def orders_of(rng: random.Random, count: int) -> list[Order]:
    return [
        Order(
            f"o{next(_numbers)}",
            rng.choice(SHOPS),
            rng.randint(-50, 100),
            rng.choice([None, "ann", "ben", "cid", "dan"]),
            rng.choice(["new", "paid", "sent"]),
            rng.randint(0, 30),
        )
        for _ in range(count)
    ]
