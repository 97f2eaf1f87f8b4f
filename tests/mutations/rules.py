"""Rules of the core, each with a bug that breaks it: text of a module, and what a mistake would put there.

`make test` plants each of them and expects the module's quick tests to notice. A text that is not in the
module, or is there twice, is an error here: the code has changed, and the rule has to follow.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .targets import source_of

PURGATORY = "tests/broker/test_purgatory_rules.py"
REPLICAS = "tests/broker/test_isr_rules.py"
PARTITION = "tests/replication/test_partition_rules.py"
SESSIONS = "tests/replication/test_fetch_session_rules.py"
PRODUCERS = "tests/replication/test_producer_rules.py"


@dataclass(frozen=True, slots=True)
class Rule:
    broken: str  # what happens with the bug
    module: str
    text: str
    bug: str
    tests: str  # a file, or a test of it where the whole file takes long

    def tree(self) -> ast.Module:
        """The module with the bug."""
        source = source_of(self.module).read_text()
        if source.count(self.text) != 1:
            raise LookupError(f"{self.text!r} is {source.count(self.text)} times in {self.module}, not once")
        return ast.parse(source.replace(self.text, self.bug))


def purgatory(broken: str, text: str, bug: str, test: str) -> Rule:
    return Rule(broken, "barnabas.broker.produce.purgatory", text, bug, f"{PURGATORY}::{test}")


def coordinators(broken: str, text: str, bug: str, test: str) -> Rule:
    module = "barnabas.decisions.uncommitted"
    return Rule(broken, module, text, bug, f"{PURGATORY}::{test}")


def isr(broken: str, text: str, bug: str) -> Rule:
    return Rule(broken, "barnabas.broker.replicas.isr", text, bug, REPLICAS)


def partition(broken: str, text: str, bug: str, tests: str = PARTITION) -> Rule:
    return Rule(broken, "barnabas.replication.partition_state", text, bug, tests)


def sessions(broken: str, text: str, bug: str, tests: str = SESSIONS) -> Rule:
    return Rule(broken, "barnabas.replication.fetch_sessions", text, bug, tests)


def producers(broken: str, text: str, bug: str) -> Rule:
    return Rule(broken, "barnabas.replication.producers", text, bug, PRODUCERS)


IN_SYNC = "tests/replication/test_in_sync.py"
SESSION_TRANSCRIPTS = "tests/replication/test_fetch_sessions.py"
RULES = (
    # -- purgatory
    purgatory(
        "a response does not wait for followers",
        "elif partition.state.high_watermark > base_offset:",
        "elif True:",
        "test_a_response_waits_for_the_follower_and_no_longer",
    ),
    purgatory(
        "a batch that is committed already waits for followers",
        "elif partition.state.high_watermark > base_offset:",
        "elif False:",
        "test_a_duplicate_batch_gets_its_response_at_once_and_in_order",
    ),
    purgatory(
        "a response leaves when the first of its partitions is committed",
        "        self._missing -= 1\n",
        "        self._missing = 0\n",
        "test_a_response_for_several_partitions_waits_for_all_and_has_the_result_of_each",
    ),
    purgatory(
        "a request waits for ever",
        "if deadline > now:",
        "if True:",
        "test_each_request_waits_for_its_own_timeout",
    ),
    purgatory(
        "a request times out with the next sweep",
        "if deadline > now:",
        "if False:",
        "test_each_request_waits_for_its_own_timeout",
    ),
    purgatory(
        "the timer is not started again while responses wait",
        "if self._timer is None and (self._waiting or self._left):",
        "if False:",
        "test_each_request_waits_for_its_own_timeout",
    ),
    purgatory(
        "a partition that is committed is refused beside one that is not",
        "if partition.state.high_watermark <= base_offset:",
        "if True:",
        "test_a_response_for_several_partitions_waits_for_all_and_has_the_result_of_each",
    ),
    purgatory(
        "records that too few replicas have count as written",
        "if not partition.state.has_enough_in_sync:",
        "if False:",
        "test_written_records_are_refused_when_too_few_replicas_have_them",
    ),
    purgatory(
        "a leader that resigned before it wrote goes on to wait",
        "elif not partition.is_leader:",
        "elif False:",
        "test_a_leader_that_resigns_before_the_write_responds_not_leader",
    ),
    Rule(
        "a waiter is told before its record is committed",
        "barnabas.decisions.commit_waits",
        "self[0][0] < high_watermark",
        "self[0][0] <= high_watermark",
        f"{PURGATORY}::test_a_commit_call_comes_once_unless_it_was_cancelled",
    ),
    Rule(
        "records that are not lost are told to be",
        "barnabas.decisions.commit_waits",
        "if offset < from_offset:",
        "if False:",
        f"{PURGATORY}::test_a_commit_call_comes_once_unless_it_was_cancelled",
    ),
    Rule(
        "waiters that are still wanted are forgotten",
        "barnabas.decisions.commit_waits",
        "            self.extend(waiting)\n",
        "",
        f"{PURGATORY}::test_a_commit_call_comes_once_unless_it_was_cancelled",
    ),
    coordinators(
        "a coordinator answers before its records are committed",
        "self._waits.append((offset - 1, waiter))",
        "self._waits.append((-1, waiter))",
        "test_a_coordinator_s_response_leaves_when_everything_below_its_offset_is_committed",
    ),
    coordinators(
        "a coordinator waits for followers for ever",
        "            self._timer = self._loop.call_later(self._timeout_s, self._on_time)\n",
        "            pass\n",
        "test_a_coordinator_s_response_is_refused_when_followers_take_too_long",
    ),
    coordinators(
        "the second of two responses of a coordinator never times out",
        "        if waits and self._timer is None:",
        "        if False:",
        "test_a_coordinator_s_response_is_refused_when_followers_take_too_long",
    ),
    coordinators(
        "responses of a coordinator that lost its log wait on",
        "        self._waits.tell_lost(-1, error)\n",
        "",
        "test_a_coordinator_that_lost_its_log_refuses_all_waiting_responses_at_once",
    ),
    # -- in-sync replicas
    isr(
        "two AlterPartition requests are under way at once",
        "if self._sending is None and not self._is_closed:",
        "if not self._is_closed:",
    ),
    isr("a request that failed is forgotten", "self._proposals = some | self._proposals", "pass"),
    isr("a proposal that was refused stays", "partition.state.withdraw_proposal(some[partition])", "pass"),
    isr("a follower is asked for without its life", "return follower.broker_epoch if", "return -1 if"),
    isr("a transient refusal is final", "elif code in TRANSIENT:", "elif False:"),
    isr("a refusal from before the last change counts", "elif partition in self._proposals:", "elif False:"),
    isr("followers that fell behind stay", "if lagging:", "if False:"),
    isr("a follower that waited for a response is forgotten", "self._expand(partition)  #", "#"),
    partition(
        "the high watermark does not wait for a proposal",
        "                replica in maximal\n",
        "                replica in self.isr\n",
    ),
    partition(
        "records are committed with too few in sync",
        "if len(self.isr) < min(self.min_isr, len(self.followers) + 1):",
        "if False:",
        IN_SYNC,
    ),
    partition(
        "a follower joins without the records from before the epoch",
        "max(self.high_watermark, self.epoch_start_offset)",
        "self.high_watermark",
    ),
    partition(
        "a fetch of an earlier life counts",
        "if NO_EPOCH != broker_epoch < follower.broker_epoch:",
        "if False:",
    ),
    partition(
        "a follower takes more for committed than it has",
        "high_watermark = min(high_watermark, self.log_end_offset)\n        if",
        "if",
    ),
    partition(
        "a new leader believes what followers had before",
        "if is_new_epoch or not was_leading:",
        "if False:",
    ),
    partition(
        "an answer from before the metadata log's change counts",
        "if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:",
        "if False:",
    ),
    Rule(
        "a follower that is always a little behind falls out",
        "barnabas.replication.follower_progress",
        "elif fetch_offset >= self.leader_end_at_fetch >= 0:",
        "elif False:",
        PARTITION,
    ),
    # -- fetch sessions
    sessions(
        "a request of another epoch is answered",
        "if session.epoch != request.session_epoch:",
        "if False:",
        SESSION_TRANSCRIPTS,
    ),
    sessions(
        "a session that is gone goes on",
        " and self._sessions.get(session.session_id) is session",
        "",
    ),
    sessions(
        "a partition that comes later is not read",
        "                    self._ordered = None\n                if self",
        "                if self",
    ),
    sessions(
        "a partition that is forgotten is read",
        "gone = self.partitions.pop((name, index), None)",
        "gone = None",
        SESSION_TRANSCRIPTS,
    ),
    sessions(
        "the end of an error is no news",
        "            partition.high_watermark = NOT_SENT_YET  # so",
        "            pass  # so",
    ),
    sessions(
        "what a follower may have dropped is not told again",
        "known.high_watermark = NOT_SENT_YET",
        "pass",
    ),
    sessions(
        "a high watermark that moved is no news",
        "            partition.high_watermark = high_watermark\n            changed = True",
        "            partition.high_watermark = high_watermark",
        SESSION_TRANSCRIPTS,
    ),
    sessions(
        "a partition that is settled is read again", "self._session.unsettled.pop(partition, None)", "pass"
    ),
    sessions(
        "what was marked is not read",
        "            session.unsettled[self] = None\n        return",
        "            pass\n        return",
    ),
    sessions(
        "the first partition is always served first",
        "if has_records and not self.full:",
        "if False:",
        SESSION_TRANSCRIPTS,
    ),
    sessions(
        "a consumer's session gives way to any other",
        "if not candidates or (privileged, size, 0) < min(candidates):",
        "if not candidates:",
        SESSION_TRANSCRIPTS,
    ),
    # -- producers
    producers(
        "a batch that comes again is written again",
        "if batch.last_sequence == last_sequence and batch.first_sequence == sequence:",
        "if False:",
    ),
    producers(
        "a batch that repeats another in part passes for it",
        "batch.last_sequence == last_sequence and batch.first_sequence == sequence",
        "batch.last_sequence == last_sequence",
    ),
    producers(
        "a gap in sequences is not noticed",
        "if epoch == state.producer_epoch and sequence != state.next_sequence:",
        "if False:",
    ),
    producers(
        "a new epoch begins anywhere", "if epoch != state.producer_epoch and sequence != 0:", "if False:"
    ),
    producers("an older epoch is accepted", "        if epoch < state.producer_epoch:", "        if False:"),
    producers(
        "a batch outside of an open transaction is accepted",
        "if state.txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_FLAG:",
        "if False:",
    ),
    producers(
        "a first batch needs no verification",
        "            self.verifications.check(header.producer_id, verification)",
        "            pass",
    ),
    producers(
        "a marker of the epoch of its data is accepted",
        "transaction_version >= STRICT_MARKERS_SINCE",
        "False",
    ),
    producers(
        "an old coordinator ends a transaction",
        "if coordinator_epoch < state.coordinator_epoch:",
        "if False:",
    ),
    producers(
        "a transaction is stable before its marker is replicated",
        "        self._unreplicated[first_offset] = completed\n",
        "",
    ),
    producers(
        "a transaction stays unstable for ever",
        "                if completed.last_offset < high_watermark:",
        "                if False:",
    ),
    producers(
        "a producer with an open transaction expires",
        "                state.txn_first_offset < 0\n                and now_ms - state.last_timestamp",
        "                now_ms - state.last_timestamp",
    ),
    producers("sequences go on after a new epoch's marker", "            state.next_sequence = 0\n", ""),
)
