"""Admin: everything an administrator asks of a cluster, in one object over one `Cluster`.

Each part lives in a module of its own; this one only joins them.
"""

from barnabas.client.admin.acls import AclAdmin
from barnabas.client.admin.cluster import ClusterAdmin
from barnabas.client.admin.configs import ConfigAdmin
from barnabas.client.admin.elections import ElectionAdmin
from barnabas.client.admin.features import FeatureAdmin
from barnabas.client.admin.group_offsets import GroupOffsetAdmin
from barnabas.client.admin.groups import GroupAdmin
from barnabas.client.admin.offsets import OffsetAdmin
from barnabas.client.admin.quotas import QuotaAdmin
from barnabas.client.admin.reassignments import ReassignmentAdmin
from barnabas.client.admin.records import RecordAdmin
from barnabas.client.admin.scram import ScramAdmin
from barnabas.client.admin.share_groups import ShareGroupAdmin
from barnabas.client.admin.streams_groups import StreamsGroupAdmin
from barnabas.client.admin.tokens import TokenAdmin
from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.admin.transactions import TransactionAdmin
from barnabas.client.admin.voters import VoterAdmin


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
    AclAdmin,
    TokenAdmin,
    GroupAdmin,
    GroupOffsetAdmin,
    ShareGroupAdmin,
    StreamsGroupAdmin,
    TransactionAdmin,
):
    """Every part of an administrator's work."""
