"""The states of a transaction and all their transitions.

                    +--------------------------- abort of nothing (version 2) --------------------+
                    |                                                                              v
    (new) --> Empty --> Ongoing --> PrepareCommit --> CompleteCommit --+            PrepareAbort --> CompleteAbort --+
                ^  ^       |                                 |         |                  ^                          |
                |  |       +-- abort, timeout, a newer producer ------ | -----------------+                          |
                |  +-------------- InitProducerId ----------+-- - - - -+-- - - - - - - - - - - - - - - - - - - - - - -+

Dead and PrepareEpochFence are states in Kafka that no record holds.
"""  # noqa: E501

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    """The numbers are those in the log; `label` is the name that clients see."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    label: str
    is_prepared: bool  # the end is decided for good; markers are being written
    is_complete: bool
    is_idle: bool  # no transaction is open: the id may expire, and a transaction may begin


LABELS = {
    State.EMPTY: "Empty",
    State.ONGOING: "Ongoing",
    State.PREPARE_COMMIT: "PrepareCommit",
    State.PREPARE_ABORT: "PrepareAbort",
    State.COMPLETE_COMMIT: "CompleteCommit",
    State.COMPLETE_ABORT: "CompleteAbort",
    State.DEAD: "Dead",
    State.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
BY_LABEL = {label: state for state, label in LABELS.items()}

PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
COMPLETE = frozenset({State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
IDLE = COMPLETE | {State.EMPTY}
for each in State:  # attributes, because every request reads them
    each.label = LABELS[each]
    each.is_prepared, each.is_complete, each.is_idle = each in PREPARED, each in COMPLETE, each in IDLE

BEFORE: dict[State, frozenset[State]] = {
    State.EMPTY: IDLE,
    State.ONGOING: IDLE | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    State.PREPARE_ABORT: IDLE | {State.ONGOING},
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: IDLE,
    State.PREPARE_EPOCH_FENCE: frozenset({State.ONGOING}),
}
"""The states that each state may follow."""
