"""Admin: everything an administrator asks of a cluster, in one object over one `Cluster`.

Each part lives in a module of its own; this one only joins them.
"""

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_admin import ClusterAdmin
from barnabas.client.config_admin import ConfigAdmin
from barnabas.client.coordinators import TRANSACTION, Coordinators
from barnabas.client.election_admin import ElectionAdmin
from barnabas.client.feature_admin import FeatureAdmin
from barnabas.client.group_admin import GroupAdmin
from barnabas.client.group_offset_admin import GroupOffsetAdmin
from barnabas.client.offset_admin import OffsetAdmin
from barnabas.client.quota_admin import QuotaAdmin
from barnabas.client.reassignment_admin import ReassignmentAdmin
from barnabas.client.record_admin import RecordAdmin
from barnabas.client.scram_admin import ScramAdmin
from barnabas.client.topic_admin import TopicAdmin
from barnabas.client.transaction_admin import TransactionAdmin
from barnabas.client.voter_admin import VoterAdmin


class Admin(
    TopicAdmin,
    ReassignmentAdmin,
    ConfigAdmin,
    OffsetAdmin,
    RecordAdmin,
    ClusterAdmin,
    FeatureAdmin,
    VoterAdmin,
    ElectionAdmin,
    QuotaAdmin,
    ScramAdmin,
    GroupAdmin,
    GroupOffsetAdmin,
    TransactionAdmin,
):
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.coordinators = Coordinators(cluster)
        self.transaction_coordinators = Coordinators(cluster, TRANSACTION)
