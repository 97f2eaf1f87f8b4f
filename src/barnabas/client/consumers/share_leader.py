"""Exchange of a share consumer with one broker: its share session, one request at a time.

In: partitions to fetch, acknowledgements. Out: the data of partitions, and what became of acknowledgements:
each batch is reported once, as done or with the error that it failed with. Acknowledgements wait for the next
request; those of a session that ended fail, because the broker has released the records.
Does not know: groups, what records are for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from barnabas.client.core.acknowledgements import AckBatch
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.connection import ConnectionCore
from barnabas.client.core.errors import ClientError, check, error_of, problem_of
from barnabas.client.core.share_fetching import SharePartitionData
from barnabas.client.core.share_session import Place, ShareLimits, ShareSession
from barnabas.client.core.topology import Node, TopicPartition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from barnabas.protocol.messages.share_fetch import ShareFetchResponse

Failure = KafkaError | ClientError
OnAcknowledged = Callable[[Place, list[AckBatch], Failure | None], None]
Results = dict[Place, Failure | None]
Batches = dict[Place, list[AckBatch]]


class ShareLeader:
    def __init__(
        self,
        cluster: ClusterCore,
        node: Node,
        session: ShareSession,
        purpose: str,
        on_acknowledged: OnAcknowledged,
    ) -> None:
        self.node = node
        self.session = session
        self.pending: Batches = {}
        self.lock_timeout_ms = 0  # as the broker told it last
        self._cluster = cluster
        self._purpose = purpose
        self._on_acknowledged = on_acknowledged
        self._turn = asyncio.Lock()  # epochs order the requests of a session

    def add(self, place: Place, batches: list[AckBatch]) -> None:
        """Acknowledge with the next request."""
        if batches:
            self.pending.setdefault(place, []).extend(batches)

    async def fetch(
        self, wanted: Mapping[Place, TopicPartition], limits: ShareLimits
    ) -> list[tuple[Place, SharePartitionData]]:
        """Fetch from partitions, and acknowledge what is pending. Raises what went wrong with all of it."""
        async with self._turn:
            if any(batch.renews for batches in self.pending.values() for batch in batches):
                await self._acknowledge(closes=False)  # a request that renews fetches nothing
            sent = self._take_pending()
            try:
                connection = await self._connection()
                request = self.session.fetch_request(wanted, sent, limits)
                response = await connection.send(request, ShareFetchResponse)
            except BaseException as error:
                self._lose(sent, error)
                raise
            self.session.answered(response.error_code)
            if response.error_code:
                failure = error_of(response.error_code, response.error_message)
                self._report(sent, dict.fromkeys(sent, failure))
                raise failure
            self.lock_timeout_ms = response.acquisition_lock_timeout_ms
            found = [
                ((topic.topic_id, each.partition_index), each)
                for topic in response.responses
                for each in topic.partitions
            ]
            codes = {
                place: (data.acknowledge_error_code, data.acknowledge_error_message) for place, data in found
            }
            self._report(sent, results_of(sent, codes))
            return found

    async def acknowledge(self, *, closes: bool = False) -> Results:
        """Acknowledge what is pending, without fetching; the result of each partition."""
        async with self._turn:
            return await self._acknowledge(closes=closes)

    async def _acknowledge(self, *, closes: bool) -> Results:
        sent = self._take_pending()
        if self.session.is_new or not (sent or closes):
            return {}
        try:
            connection = await self._connection()
            request = self.session.acknowledge_request(sent, closes=closes)
            response = await connection.send(request, ShareAcknowledgeResponse)
            if closes:
                self.session.lost()
            else:
                self.session.answered(response.error_code)
            check(response.error_code, response.error_message)
        except KafkaError as error:
            return self._report(sent, dict.fromkeys(sent, error))
        except ClientError as error:
            return self._lose(sent, error)
        except BaseException as error:
            self._lose(sent, error)
            raise
        codes = {
            (topic.topic_id, each.partition_index): (each.error_code, each.error_message)
            for topic in response.responses
            for each in topic.partitions
        }
        return self._report(sent, results_of(sent, codes))

    def _take_pending(self) -> Batches:
        """The acknowledgements to send. The first request of a session carries none: they fail here."""
        taken, self.pending = self.pending, {}
        if taken and self.session.is_new:
            gone = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the share session has ended")
            self._report(taken, dict.fromkeys(taken, gone))
            return {}
        return taken

    async def _connection(self) -> ConnectionCore:
        return await self._cluster.connection_to(self.node.address, self._purpose)

    def _lose(self, sent: Batches, error: BaseException) -> Results:
        self.session.lost()
        failure: Failure
        if isinstance(error, KafkaError | ClientError):
            failure = error
        else:
            failure = KafkaError(ErrorCode.NETWORK_EXCEPTION, "the request was given up")
        return self._report(sent, dict.fromkeys(sent, failure))

    def _report(self, sent: Batches, results: Results) -> Results:
        for place, batches in sent.items():
            self._on_acknowledged(place, batches, results[place])
        return results


def results_of(sent: Batches, codes: Mapping[Place, tuple[int, str | None]]) -> Results:
    """The result of each partition; one that the broker left out has failed."""
    missing = KafkaError(ErrorCode.INVALID_RECORD_STATE, "the broker did not respond to the acknowledgement")
    return {place: problem_of(*codes[place]) if place in codes else missing for place in sent}
