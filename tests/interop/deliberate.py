"""The ledger of answers that differ from Apache Kafka's on purpose, each with its reason."""

from __future__ import annotations

import re

# (scenario, request, reason); the first two are regular expressions that match the whole name.
LEDGER = (
    (
        r"authorized_share_groups\..*",
        r"ALTER_SHARE_GROUP_OFFSETS .* alters what is hidden",
        "the refusal of a topic does not tell its id",
    ),
    (
        r"share_limits\.limits_that_are_wrong",
        r".* batches of (0|-1)",
        "no acquired range ends before it begins",
    ),
    (
        r"share_limits\.limits_that_are_wrong",
        r".* (-1 bytes|mode (2|-1))",
        "a negative size means as little as zero does, an unknown acquire mode is batch_optimized: neither "
        "is an unknown server error",
    ),
    (
        r"share_sessions\.members_and_groups",
        r"SHARE_FETCH .* with an empty group",
        "a group without a name has no share partitions, which is no unknown server error",
    ),
    (
        r"share_sessions\.partitions_that_(are_not_there|cannot_exist)",
        r"SHARE_FETCH .* (asks for partitions that do not exist|has no topic id)",
        "each partition has an error of its own, not all of them an unknown server error",
    ),
    (
        r"sharing\.members_and_groups_must_be_named",
        r".*: unknown topic",
        "an unknown topic id is named in its partition, not an unknown server error",
    ),
    (
        r"authorized\.nobody_does_anything_with_the_cluster",
        r"DESCRIBE_USER_SCRAM_CREDENTIALS .*",
        "the refusal of each user has the user's name",
    ),
    (
        r"broker_settings\.wrong_values",
        r"(log\.cleaner\.(threads='0'|dedupe)|max\.connections\.per\.ip\.overrides|metric\.reporters).*",
        "the message names the setting, the value and what is allowed, not what went wrong inside",
    ),
    (
        r"controller\.settings_and_quotas_are_decided_here",
        r".* 4 : (log\.segment\.bytes=x|node\.id=5)",
        "what no broker could run with is refused, also where the controller is asked directly",
    ),
    (
        r"describing\.metadata_by_id_and_with_bad_names",
        r".*by neither",
        "a topic without name and id is an invalid topic, not an unknown server error",
    ),
    (
        r"fetching\.at_least_one_batch_and_no_more_than_asked",
        r".* -1 bytes .*",
        "a negative size means as little as zero does, not an unknown server error",
    ),
    (
        r"fetching\.isolation_and_rack|offsets\.who_asks_and_how",
        r".*isolation (level )?(2|-1)",
        "an unknown isolation level is read uncommitted, not an unknown server error",
    ),
    (
        r"frames\.headers_that_are_wrong|frames\.nulls_and_lengths_that_are_not_allowed",
        r".*(not UTF-8|-2 bytes|-2 topics)",
        "text that is not UTF-8 and negative lengths are malformed: the connection is closed",
    ),
    (
        r"group_migration\.groups_that_cannot_change",
        r".*joins a group whose parts nobody understands",
        "a group whose assignments are not those of consumers is none of theirs, not an unknown server error",
    ),
    (
        r"group_streams\.endpoints_without_topics",
        r".*",
        "a member with an endpoint whose source topics are missing is told so, not an unknown server error",
    ),
    (
        r"poisoned\..*",
        r".*: (a size of six bytes|plain records under a codec|no compressed bytes|one compressed byte"
        r"|compressed bytes (cut off|damaged)|another codec's bytes)",
        "records that cannot be read are invalid, not an unknown server error",
    ),
    (
        r"poisoned\.records_that_are_none_behind_a_codec",
        r".*: (offset deltas .*|a negative offset delta)",
        "compressed records with wrong offsets are invalid, not an unknown server error",
    ),
    (
        r"poisoned\.records_that_are_none_behind_a_codec",
        r".*: (a record larger than the batch|(a|the last) size one too (large|small))",
        "a record's size must be right behind a codec, too: consumers fail at what Apache Kafka stores here",
    ),
    (
        r"poisoned\.records_that_are_none_behind_.*codec",
        r".*: bytes behind the compressed ones",
        "bytes behind the end of compressed records are refused for every codec",
    ),
    (
        r"poisoned\.records_that_are_none_(behind_another_codec|where_the_broker_compresses_them)",
        r".*: a timestamp before 1970",
        "a timestamp before 1970 is taken where the broker compresses, as it is where it does not",
    ),
    (
        r"producing\.damaged_batches",
        r".*batch length 2\^31-1",
        "a batch longer than the request is an invalid record, not an unknown server error",
    ),
    (
        r"producing\.offsets_and_attributes_from_the_client",
        r".*compression [57]",
        "an unknown compression is unsupported, not an unknown server error",
    ),
    (
        r"producing\.payloads_that_do_not_unpack",
        r".*says (gzip|snappy|lz4|zstd), is not",
        "records that do not unpack are invalid, not an unknown server error",
    ),
    (
        r"producing\.the_same_partition_twice_in_a_request",
        r".*twice.*",
        "both batches are stored and answered, where Apache Kafka drops the first one without a word",
    ),
    (
        r"security_off\.scram_credentials_change",
        r"no password",
        "an empty salted password is an unacceptable credential, not an unknown server error",
    ),
    (
        r"controller\.security_is_off",
        r"DESCRIBE_DELEGATION_TOKEN v3: all",
        "a controller refuses tokens as a broker does, it is not an unknown server error",
    ),
    (
        r"settings\.wrong_changes",
        r".*operation (9|-1)",
        "an unknown operation is an invalid request, not an unknown server error",
    ),
    (
        r"transaction_markers\.with_wrong_epochs",
        r".*epoch -1",
        "a marker without an epoch has an invalid one, it is not an unknown server error",
    ),
    (
        r"transactions\.producers_of_both_flows_fence_each_other",
        r".*newer was fenced, and ends .*",
        "a fenced producer stays fenced when the one after it has ended a transaction without a new epoch",
    ),
    (
        r"share_state\.odd_batches",
        r".*a batch that ends before it begins",
        "a batch without offsets is refused; beside others it keeps Apache Kafka's coordinator busy for ever",
    ),
)


def reason(scenario: str, request: str) -> str | None:
    """Why this answer may differ; None when it may not."""
    for where, what, why in LEDGER:
        if re.fullmatch(where, scenario) and re.fullmatch(what, request):
            return why
    return None
