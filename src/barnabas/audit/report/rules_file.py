"""The rules of an audit from a file: which tiers belong together, and how long records may take.

In: YAML. Out: `Rules`. ValueError names what is wrong.

    patience: 15m                       # of tiers without one of their own
    tiers:
      mirror/dc2: {patience: 5m, reference: [cluster], topics: {dc1.orders: orders}}
      zone: {patience: 1h}              # all tiers of this kind
      mirror/small: {keeps_partitions: false}   # its topics have other numbers of partitions
      consumer/retired: {ignore: true}
      consumer/new: {since: 2026-11-18T10:00:00Z}
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from barnabas.audit.core.report import Rules
from barnabas.audit.core.verdicts import PATIENCE_MS

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
TIER_KEYS = {"ignore", "keeps_partitions", "patience", "reference", "since", "topics"}


def read_rules(path: str | Path) -> Rules:
    import yaml

    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is no YAML: {error}") from None
    return rules_of(found or {})


def rules_of(body: dict[str, Any]) -> Rules:
    if not isinstance(body, dict) or set(body) - {"patience", "tiers"}:
        raise ValueError("rules have two entries: patience and tiers")
    references: dict[str, tuple[str, ...]] = {}
    topics: dict[tuple[str, str], str] = {}
    patience: dict[str, int] = {}
    since: dict[str, int] = {}
    ignored, repartitioned = set(), set()
    for tier, given in (body.get("tiers") or {}).items():
        if not isinstance(given, dict) or set(given) - TIER_KEYS:
            raise ValueError(f"the tier {tier} has {given!r}: use {', '.join(sorted(TIER_KEYS))}")
        if "patience" in given:
            patience[tier] = duration_ms(given["patience"])
        if "reference" in given:
            named = given["reference"]
            references[tier] = (named,) if isinstance(named, str) else tuple(map(str, named))
        for topic, source in (given.get("topics") or {}).items():
            topics[tier, str(topic)] = str(source)
        if "since" in given:
            since[tier] = moment_ms(given["since"])
        if given.get("ignore"):
            ignored.add(tier)
        if not given.get("keeps_partitions", True):
            repartitioned.add(tier)
    return Rules(
        references,
        topics,
        patience,
        duration_ms(body["patience"]) if "patience" in body else PATIENCE_MS,
        frozenset(ignored),
        frozenset(repartitioned),
        since,
    )


def moment_ms(given: object) -> int:
    """`2026-11-18T10:00:00Z`, which YAML may have read already; without a zone it is UTC."""
    try:
        found = given if isinstance(given, datetime) else datetime.fromisoformat(str(given))
    except ValueError:
        raise ValueError(f"{given!r} is no time: use 2026-11-18T10:00:00Z") from None
    return int((found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp() * 1000)


def duration_ms(text: object) -> int:
    """`10m`, `1h`, `30s`; a plain number is in milliseconds."""
    found = re.fullmatch(r"(\d+)\s*(ms|s|m|h|d)?", str(text).strip())
    if found is None:
        raise ValueError(f"{text!r} is no duration: use 30s, 10m or 1h")
    return int(found[1]) * UNITS_MS[found[2] or "ms"]
