"""Admin: everything an administrator asks of a cluster, in one object over one `Cluster`.

Each part lives in a module of its own; this one only joins them.
"""

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_admin import ClusterAdmin
from barnabas.client.config_admin import ConfigAdmin
from barnabas.client.coordinators import Coordinators
from barnabas.client.group_admin import GroupAdmin
from barnabas.client.group_offset_admin import GroupOffsetAdmin
from barnabas.client.offset_admin import OffsetAdmin
from barnabas.client.topic_admin import TopicAdmin


class Admin(TopicAdmin, ConfigAdmin, OffsetAdmin, ClusterAdmin, GroupAdmin, GroupOffsetAdmin):
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.coordinators = Coordinators(cluster)
