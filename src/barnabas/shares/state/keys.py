"""The key of a share partition: a share group reads one partition of a topic.

In: the parts, or the text that FindCoordinator requests carry. Out: keys, and the text that the partition of
`__share_group_state` is computed from.
Does not know: which coordinator keeps the key.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol import uuid

PARTITION_MAX = 2**31 - 1


class ShareKey(NamedTuple):
    group_id: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        return f"{self.group_id}:{uuid.to_text(self.topic_id)}:{self.partition}"


def parse(text: str) -> ShareKey:
    """Parse `group:topicId:partition`; the group id may have colons. ValueError: the text is invalid."""
    parts = text.rstrip(":").rsplit(":", 2)  # Java's split drops empty parts at the end
    if len(parts) < 3:
        raise ValueError(f"{text!r} is no share partition: expected group:topicId:partition")
    group_id, topic_id, partition = parts
    if not group_id.strip():
        raise ValueError("the group id is empty")
    if not partition.lstrip("+-").isdecimal() or not -PARTITION_MAX <= int(partition) <= PARTITION_MAX:
        raise ValueError(f"invalid partition {partition!r}")
    return ShareKey(group_id, uuid.from_text(topic_id), int(partition))
