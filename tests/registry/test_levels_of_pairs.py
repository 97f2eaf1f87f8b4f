"""The registry judges the pairs of the tables at every level as the tables say, over its API."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from barnabas.schemas.model import SchemaType
from registry.instant import InstantRegistry
from schemas.pair_tables import Pair, pairs_of

LEVELS = (
    "NONE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
ALL = pairs_of(SchemaType.JSON)


async def answered(
    client: httpx.AsyncClient, method: str, path: str, body: dict[str, Any], code: int = 200
) -> Any:
    answer = await client.request(method, path, json=body)
    assert answer.status_code == code, answer.text
    return answer.json()


async def judge(client: httpx.AsyncClient, pair: Pair, subject: str) -> None:
    references = []
    for found in pair.references:
        name = f"{subject}-{found.reference.name}"
        body = {"schemaType": "JSON", "schema": found.text}
        await answered(client, "POST", f"/subjects/{name}/versions", body)
        references.append({"name": found.reference.name, "subject": name, "version": 1})
    old, new = (
        {"schemaType": "JSON", "schema": text, "references": references} for text in (pair.old, pair.new)
    )
    await answered(client, "POST", f"/subjects/{subject}/versions", old)
    for level in LEVELS:
        config = {"compatibility": level, "compatibilityPolicy": pair.policy}
        await answered(client, "PUT", f"/config/{subject}", config)
        path = f"/compatibility/subjects/{subject}/versions/latest?verbose=true"
        verdict = await answered(client, "POST", path, new)
        assert verdict["is_compatible"] == pair.is_compatible(level), f"{level}: {verdict}"
        told = "\n".join(verdict.get("messages", ()))
        base = level.removesuffix("_TRANSITIVE")
        for wanted, at in ((pair.backward, ("BACKWARD", "FULL")), (pair.forward, ("FORWARD", "FULL"))):
            for reason in wanted if base in at else ():
                kind, _, place = reason.partition(" ")
                assert f'{{errorType:"{kind}", description:"' in told
                assert f"'{place}'" in told
        if base == "FULL" and not pair.is_compatible(level):
            refusal = await answered(client, "POST", f"/subjects/{subject}/versions", new, 409)
            assert "errorType" in refusal["message"]


def judge_all(pairs: list[Pair]) -> None:
    async def main() -> None:
        async with InstantRegistry(parse=None).client() as client:
            for number, pair in enumerate(pairs):
                try:
                    await judge(client, pair, f"s{number}")
                except AssertionError as error:
                    raise AssertionError(f"{pair}: {error}") from error

    asyncio.run(main())


def test_some_pairs_are_judged_as_the_table_says() -> None:
    judge_all(ALL[::12])


@pytest.mark.long
def test_all_pairs_are_judged_as_the_table_says() -> None:
    judge_all(ALL)
