"""Topics of Metadata responses, encoded once and kept until they change.

In: topics of an image, the version of a response. Out: their bytes, encoded in steps if they are not cached;
`encoder`, which puts them into a response. The bytes of a topic are valid while the image has the same
`TopicImage` and the same brokers, since offline replicas depend on both.
Does not know: which topics a client requested or may see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.broker.api import authorized
from barnabas.broker.quorum import topology
from barnabas.metadata.cluster import ClusterImage
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partitions import PartitionRegistration
from barnabas.metadata.steps import Steps
from barnabas.metadata.topics import TopicImage, TopicsImage
from barnabas.protocol import ErrorCode
from barnabas.protocol.codec import codec, compile_function
from barnabas.protocol.encoding import EncodeSource
from barnabas.protocol.message import Struct
from barnabas.protocol.messages.metadata import MetadataResponse
from barnabas.protocol.wire import varint
from barnabas.security.acls.vocabulary import ResourceType

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights

Topic = MetadataResponse.MetadataResponseTopic
Partition = Topic.MetadataResponsePartition
Write = Callable[[Any], object]
FLEXIBLE_SINCE = 9
OPERATIONS_SINCE, CLUSTER_OPERATIONS_UNTIL, ERROR_CODE_SINCE = 8, 10, 13
FORMS_MAX = 4  # cached at a time: clients of a cluster use few versions
PARTITIONS_A_STEP = 16
TOPICS_A_STEP = 64


class Form(NamedTuple):
    """Everything beside the topic that its bytes depend on."""

    version: int
    wants_operations: bool


class PackedTopics(list[Any]):
    """The encoded topics of a response. As a list it is empty."""

    def __init__(self, topic_count: int, data: bytes) -> None:
        self.topic_count = topic_count
        self.data = data


class EncodedTopics:
    def __init__(self) -> None:
        self._cluster: ClusterImage | None = None
        self._forms: dict[Form, dict[bytes, tuple[TopicImage, bytes]]] = {}  # by topic id
        self._all: dict[Form, tuple[TopicsImage, PackedTopics]] = {}

    def missing(self, topics: Iterable[TopicImage], form: Form, image: MetadataImage) -> int:
        """How many partitions of these topics are not cached."""
        known = self._known(form, image)
        count = 0
        for topic in topics:
            found = known.get(topic.id)
            if found is None or found[0] is not topic:
                count += len(topic.partitions)
        return count

    def all_packed(self, form: Form, image: MetadataImage) -> PackedTopics | None:
        """All topics of the image, if they are cached in this form."""
        self._known(form, image)
        found = self._all.get(form)
        return found[1] if found is not None and found[0] is image.topics else None

    def pack_all(self, form: Form, image: MetadataImage) -> Steps[PackedTopics]:
        packed = yield from self.pack(image.topics.by_name.values(), form, image)
        if image.cluster is self._cluster and form in self._forms:
            self._all[form] = image.topics, packed
        return packed

    def pack(
        self,
        topics: Iterable[TopicImage | Topic],
        form: Form,
        image: MetadataImage,
        rights: Rights | None = None,
    ) -> Steps[PackedTopics]:
        """Encode topics of the image with the cache, and others (errors) without. `rights` are the caller's:
        the operations of each topic are its own."""
        parts: list[bytes] = []
        for topic in topics:
            if isinstance(topic, TopicImage):
                data = yield from self._bytes_of(topic, form, image)
                if rights is not None and form.wants_operations and form.version >= OPERATIONS_SINCE:
                    operations = rights.bits(ResourceType.TOPIC, topic.name)
                    at = len(data) - 4 - (form.version >= FLEXIBLE_SINCE)
                    data = b"".join((data[:at], operations.to_bytes(4, "big"), data[at + 4 :]))
                parts.append(data)
            else:
                parts.append(encoded(topic, form.version))
            if not len(parts) % TOPICS_A_STEP:
                yield
        return PackedTopics(len(parts), b"".join(parts))

    def _known(self, form: Form, image: MetadataImage) -> dict[bytes, tuple[TopicImage, bytes]]:
        if image.cluster is not self._cluster:
            self._cluster = image.cluster
            self._forms, self._all = {}, {}
        known = self._forms.get(form)
        if known is None:
            while len(self._forms) >= FORMS_MAX:
                oldest = next(iter(self._forms))
                del self._forms[oldest]
                self._all.pop(oldest, None)
            known = self._forms[form] = {}
        elif len(known) > 2 * len(image.topics.by_id) + TOPICS_A_STEP:
            known.clear()  # most of these topics were deleted
        return known

    def _bytes_of(self, topic: TopicImage, form: Form, image: MetadataImage) -> Steps[bytes]:
        known = self._known(form, image)
        found = known.get(topic.id)
        if found is not None and found[0] is topic:
            return found[1]
        version = form.version
        parts: list[bytes] = []
        write = encoder_of(Partition, version)
        for count, (index, partition) in enumerate(topic.partitions.items(), 1):
            write(partition_of(index, partition, image), parts.append)
            if not count % PARTITIONS_A_STEP:
                yield
        head = Topic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in topology.INTERNAL_TOPICS,
            topic_authorized_operations=authorized.ON_TOPIC
            if form.wants_operations
            else authorized.NOT_ASKED,
        )
        tail_bytes = 4 * (version >= OPERATIONS_SINCE) + (version >= FLEXIBLE_SINCE)
        data = splice(encoded(head, version), tail_bytes, len(topic.partitions), b"".join(parts), version)
        if image.cluster is self._cluster:  # else it was encoded from an older image
            known[topic.id] = topic, data
        return data


def partition_of(index: int, found: PartitionRegistration, image: MetadataImage) -> Partition:
    return Partition(
        error_code=ErrorCode.NONE if found.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=found.leader,
        leader_epoch=found.leader_epoch,
        replica_nodes=list(found.replicas),
        isr_nodes=list(found.isr),
        offline_replicas=topology.offline_replicas(image, found),
    )


def encoder(version: int) -> Callable[[MetadataResponse, Write], None]:
    """Make an encoder like the codec's, for responses whose topics may be `PackedTopics`."""
    plain = codec(MetadataResponse, version).encode
    tail_bytes = 4 * (OPERATIONS_SINCE <= version <= CLUSTER_OPERATIONS_UNTIL)
    tail_bytes += 2 * (version >= ERROR_CODE_SINCE) + (version >= FLEXIBLE_SINCE)

    def encode(response: MetadataResponse, write: Write) -> None:
        topics = response.topics
        if not isinstance(topics, PackedTopics):
            plain(response, write)
            return
        parts: list[bytes] = []
        plain(response, parts.append)
        write(splice(b"".join(parts), tail_bytes, topics.topic_count, topics.data, version))

    return encode


def splice(empty: bytes, tail_bytes: int, count: int, items: bytes, version: int) -> bytes:
    """Put encoded items into an array that was encoded empty, `tail_bytes` before the end."""
    at = len(empty) - tail_bytes
    if version >= FLEXIBLE_SINCE:
        return b"".join((empty[: at - 1], varint(count + 1), items, empty[at:]))
    return b"".join((empty[: at - 4], count.to_bytes(4, "big"), items, empty[at:]))


def encoded(struct: Struct, version: int) -> bytes:
    parts: list[bytes] = []
    encoder_of(type(struct), version)(struct, parts.append)
    return b"".join(parts)


@cache
def encoder_of(cls: type[Struct], version: int) -> Callable[[Any, Write], None]:
    """The function that encodes a part of the response."""
    source = EncodeSource(version, version >= FLEXIBLE_SINCE)

    def explain(struct: Struct, error: Exception) -> None:
        """Add nothing: the exception that follows says why."""

    found: Callable[[Any, Write], None]
    found = compile_function(source, source.function(cls), f"<encode {cls.__name__} {version}>", explain)
    return found
