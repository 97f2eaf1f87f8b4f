"""xdist's scheduler with our groups: a worker is given a whole group, and the next when it is nearly done.

Groups come in the order of collection, which the plugin arranges (longest first).
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from .groups import group_of

# A worker starts a test only when it knows the one that follows. More in reserve would wait behind a long
# test while other workers have nothing to do.
RESERVE = 1


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def schedule(self) -> None:
        self.config.option.loadscopereorder = False  # the order is ours
        super().schedule()

    def _reschedule(self, node: WorkerController) -> None:
        if node.shutting_down or (self.workqueue and self._pending_of(self.assigned_work[node]) > RESERVE):
            return
        super()._reschedule(node)
