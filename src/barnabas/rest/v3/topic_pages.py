"""All topics of a cluster, page by page.

In: an Admin. Out: lists of descriptions. A topic with more partitions than a page holds is joined again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import TopicCursor, TopicDescription

PARTITIONS_PER_PAGE = 200  # read in a few milliseconds


async def topic_pages(admin: Admin) -> AsyncIterator[list[TopicDescription]]:
    cursor: TopicCursor | None = None
    unfinished: TopicDescription | None = None
    while True:
        page = await admin.describe_all_topics(cursor, PARTITIONS_PER_PAGE)
        topics = list(page.topics)
        if unfinished is not None:
            if topics and topics[0].name == unfinished.name:
                topics[0] = replace(topics[0], partitions=unfinished.partitions + topics[0].partitions)
            else:
                topics.insert(0, unfinished)
            unfinished = None
        following = page.following
        if following is not None and topics and topics[-1].name == following.topic:
            unfinished = topics.pop()
        if topics:
            yield topics
        if following is None:
            break
        if following == cursor:
            break  # a broker that does not move on would be asked without end
        cursor = following
    if unfinished is not None:
        yield [unfinished]
