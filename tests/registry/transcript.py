"""Transcripts of requests and responses to a registry in one process.

A step is a request, `----`, and the expected response; steps are separated by an empty line:

    POST /subjects/s/versions {"schema": "{}"}
    ----
    200 {"id":1,...}

The response is compared as JSON with sorted keys, unless it is a bare text. `...` at the end of a line of the
expected response matches anything that follows. `# text` is a comment. `REWRITE_TRANSCRIPTS=1` writes the
responses into the file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx

from registry.instant import InstantRegistry

TYPES = {"content-type": "application/vnd.schemaregistry.v1+json"}


async def run(path: Path, registry: InstantRegistry) -> None:
    """Run a transcript, and compare the responses."""
    shown: list[str] = []
    differences: list[str] = []
    async with registry.client() as client:
        for block in path.read_text().strip().split("\n\n"):
            comments = [line for line in block.splitlines() if line.startswith("#")]
            lines = [line for line in block.splitlines() if not line.startswith("#")]
            if not lines:
                shown.append(block)
                continue
            request, _, expected = "\n".join(lines).partition("\n----")
            expected = expected.strip()
            found = await one(client, request)
            if not matches(found, expected):
                differences.append(f"{request}\n  expected: {expected}\n  found:    {found}")
            shown.append(
                "\n".join([*comments, request, "----", expected if matches(found, expected) else found])
            )
    if os.environ.get("REWRITE_TRANSCRIPTS"):
        path.write_text("\n\n".join(shown) + "\n")
        return
    assert not differences, "\n".join(differences)


def matches(found: str, expected: str) -> bool:
    if expected.endswith("..."):
        return bool(expected[:-3]) and found.startswith(expected[:-3])
    return found == expected


async def one(client: httpx.AsyncClient, request: str) -> str:
    method, _, rest = request.partition(" ")
    target, _, body = rest.partition(" ")
    response = await client.request(method, target, content=body or None, headers=TYPES if body else {})
    text = response.text
    try:
        text = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except ValueError:
        pass
    return f"{response.status_code} {text}".strip()
