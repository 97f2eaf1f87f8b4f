"""Every history by its name."""

from __future__ import annotations

from barnabas.simulation.histories.cluster import ClusterHistory
from barnabas.simulation.histories.cluster_clients import (
    ClusterGroupsHistory,
    ClusterRegistryHistory,
    ClusterSharesHistory,
    ClusterStreamsHistory,
    ClusterTransactionsHistory,
)
from barnabas.simulation.histories.cluster_logins import ClusterLoginsHistory
from barnabas.simulation.histories.encrypted_records import EncryptedRecordsHistory
from barnabas.simulation.histories.groups import GroupsHistory
from barnabas.simulation.histories.guarded_records import GuardedRecordsHistory
from barnabas.simulation.histories.records import RecordsHistory
from barnabas.simulation.histories.registry import RegistryHistory
from barnabas.simulation.histories.shares import SharesHistory
from barnabas.simulation.histories.streams import StreamsHistory
from barnabas.simulation.histories.transactions import TransactionsHistory
from barnabas.simulation.world.history import Make

HISTORIES: dict[str, Make] = {
    RecordsHistory.name: RecordsHistory,
    EncryptedRecordsHistory.name: EncryptedRecordsHistory,
    GuardedRecordsHistory.name: GuardedRecordsHistory,
    GroupsHistory.name: GroupsHistory,
    TransactionsHistory.name: TransactionsHistory,
    RegistryHistory.name: RegistryHistory,
    StreamsHistory.name: StreamsHistory,
    SharesHistory.name: SharesHistory,
}

# Histories with several nodes: `--history cluster` runs all of these.
CLUSTER_HISTORIES: dict[str, Make] = {
    ClusterHistory.name: ClusterHistory,
    ClusterGroupsHistory.name: ClusterGroupsHistory,
    ClusterTransactionsHistory.name: ClusterTransactionsHistory,
    ClusterLoginsHistory.name: ClusterLoginsHistory,
    ClusterRegistryHistory.name: ClusterRegistryHistory,
    ClusterStreamsHistory.name: ClusterStreamsHistory,
    ClusterSharesHistory.name: ClusterSharesHistory,
}
ALL_HISTORIES = HISTORIES | CLUSTER_HISTORIES
NAMED: dict[str, list[str]] = {
    **{name: [name] for name in ALL_HISTORIES},
    "one-node": list(HISTORIES),
    "cluster": list(CLUSTER_HISTORIES),
    "all": list(ALL_HISTORIES),
}
