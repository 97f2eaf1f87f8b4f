"""The number of distinct values: exact while there are few, then estimated in a state of fixed size.

A state has the hashes of up to a thousand values in order, and above that HyperLogLog's registers: 2^14, as
ksqlDB has, which leads to an error of about one percent. Does not know: groups, stores.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from decimal import Decimal as Number
from hashlib import blake2b
from typing import Any

HASHES_MAX = 1_000
BITS = 14  # of a hash choose its register
REGISTERS = 1 << BITS
HASHES, RANKS = "hashes", "ranks"
State = dict[str, Any]  # a sorted list of hashes, or a byte for each register


def no_values() -> State:
    return {HASHES: []}


def added(state: State | list[Any], value: Any) -> State:
    """The state with a value; the given one may be changed."""
    current = upgraded(state)
    return with_hash(current, hash_of(value))


def merged(one: State | list[Any], two: State | list[Any]) -> State:
    one, two = upgraded(one), upgraded(two)
    if RANKS in one and RANKS in two:
        return {RANKS: bytes(map(max, one[RANKS], two[RANKS]))}
    if RANKS in two:
        one, two = two, one
    found: State = {RANKS: one[RANKS]} if RANKS in one else {HASHES: list(one[HASHES])}
    return with_hashes(found, two[HASHES])


def count_of(state: State | list[Any]) -> int:
    current = upgraded(state)
    if HASHES in current:
        return len(current[HASHES])
    return estimate(current[RANKS])


def upgraded(state: State | list[Any]) -> State:
    """Earlier versions kept the values themselves, in a list."""
    if isinstance(state, dict):
        return state
    return with_hashes(no_values(), map(hash_of, state))


def with_hashes(state: State, hashes: Iterable[int]) -> State:
    for each in hashes:
        state = with_hash(state, each)
    return state


def with_hash(state: State, found: int) -> State:
    if RANKS in state:
        return {RANKS: with_rank(state[RANKS], found)}
    hashes: list[int] = state[HASHES]
    place = bisect_left(hashes, found)
    if place < len(hashes) and hashes[place] == found:
        return state
    hashes.insert(place, found)
    if len(hashes) <= HASHES_MAX:
        return state
    ranks = bytearray(REGISTERS)
    for each in hashes:
        register, rank = place_of(each)
        ranks[register] = max(ranks[register], rank)
    return {RANKS: bytes(ranks)}


def with_rank(ranks: bytes, found: int) -> bytes:
    register, rank = place_of(found)
    if ranks[register] >= rank:
        return ranks
    return ranks[:register] + bytes([rank]) + ranks[register + 1 :]


def place_of(found: int) -> tuple[int, int]:
    """The register of a hash, and where the first bit of its rest is."""
    rest = found >> BITS
    return found & (REGISTERS - 1), (64 - BITS) - rest.bit_length() + 1


def estimate(ranks: bytes) -> int:
    empty = ranks.count(0)
    alpha = 0.7213 / (1 + 1.079 / REGISTERS)
    raw = alpha * REGISTERS**2 / math.fsum(ranks.count(rank) * 2.0**-rank for rank in range(64 - BITS + 2))
    if raw <= 2.5 * REGISTERS and empty:
        return round(REGISTERS * math.log(REGISTERS / empty))
    return round(raw)


def hash_of(value: Any) -> int:
    """The same in every process."""
    data = value.encode() if type(value) is str else text_of(value).encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def text_of(value: Any) -> str:
    """Equal values of a type have the same text."""
    if isinstance(value, dict):
        return (
            f"{{{','.join(f'{text_of(name)}:{text_of(value[name])}' for name in sorted(value, key=repr))}}}"
        )
    if isinstance(value, list):
        return f"[{','.join(map(text_of, value))}]"
    if isinstance(value, Number):
        return str(value.normalize())
    return repr(value)
