"""The states of a classic group and their transitions.

    Empty ──► PreparingRebalance ──► CompletingRebalance ──► Stable
      ▲         │    ▲     ▲               │                   │
      └─────────┘    │     └───────────────┘                   │
                     └─────────────────────────────────────────┘
Every state may become Dead: the group is deleted, or another broker coordinates it.
"""

from __future__ import annotations

from enum import Enum


class ClassicGroupState(Enum):
    """The value is the name that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY = ClassicGroupState.EMPTY
PREPARING_REBALANCE = ClassicGroupState.PREPARING_REBALANCE
COMPLETING_REBALANCE = ClassicGroupState.COMPLETING_REBALANCE
STABLE = ClassicGroupState.STABLE
DEAD = ClassicGroupState.DEAD

MAY_FOLLOW = {
    EMPTY: {PREPARING_REBALANCE},
    PREPARING_REBALANCE: {STABLE, COMPLETING_REBALANCE, EMPTY},
    COMPLETING_REBALANCE: {PREPARING_REBALANCE},
    STABLE: {COMPLETING_REBALANCE},
    DEAD: {EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD},
}
CAN_REBALANCE = MAY_FOLLOW[PREPARING_REBALANCE]
