"""Every history by its name."""

from __future__ import annotations

from barnabas.simulation.histories.groups import GroupsHistory
from barnabas.simulation.histories.records import RecordsHistory
from barnabas.simulation.histories.transactions import TransactionsHistory
from barnabas.simulation.history import Make

HISTORIES: dict[str, Make] = {
    RecordsHistory.name: RecordsHistory,
    GroupsHistory.name: GroupsHistory,
    TransactionsHistory.name: TransactionsHistory,
}
