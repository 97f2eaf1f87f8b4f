"""Error codes of Kafka 4.3.1 and the exceptions that carry them.

Every layer raises `KafkaError` to respond with an error code. `ProtocolError` means that bytes are not a
valid message, `EncodingError` that a message cannot be encoded; both name the field.
"""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """The error codes of the protocol; plain integers on the wire."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133

    @property
    def retriable(self) -> bool:
        """Whether a client may retry the request."""
        return self in RETRIABLE

    @property
    def message(self) -> str:
        """The default message of the code."""
        return MESSAGES[self]

    @property
    def needs_metadata_refresh(self) -> bool:
        """Whether a client should fetch metadata before it retries."""
        return self in REFRESH_METADATA


class KafkaError(Exception):
    """An error for a response: `code` and a message, by default the message of the code."""

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message or code.message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"

    def copy(self) -> KafkaError:
        """The same error as a new exception. An exception that is kept and raised again and again keeps the
        frames of its last raise alive, with the connection that they serve."""
        return KafkaError(self.code, self.message)


class ProtocolError(ValueError):
    """Bytes are not a valid message. `path` names the field."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class EncodingError(ValueError):
    """A message cannot be encoded. `path` names the field."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


RETRIABLE = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)

REFRESH_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)

MESSAGES: dict[int, str] = {
    -1: "The broker ran into an error that it did not expect.",
    0: "No error.",
    1: "The offset lies outside the range of offsets that the partition holds.",
    2: "The message is damaged: its checksum, size or contents are not as they should be.",
    3: "This broker does not host the topic or partition.",
    4: "The requested fetch size is invalid.",
    5: "The partition has no leader at the moment.",
    6: "This broker is not the leader of the partition, or not one of its replicas.",
    7: "The request timed out.",
    8: "The broker is not available.",
    9: "The replica is not available on this broker.",
    10: "The message is larger than the broker accepts.",
    11: "The controller has moved to another broker.",
    12: "The metadata of the committed offset is too large.",
    13: "The connection broke before an answer arrived.",
    14: "The coordinator is still loading its state.",
    15: "The coordinator is not available.",
    16: "This broker is not the coordinator.",
    17: "The topic name is invalid or may not be used here.",
    18: "The batch of messages is larger than a segment may be.",
    19: "Fewer replicas are in sync than the topic requires.",
    20: "The messages were written to fewer in-sync replicas than the topic requires.",
    21: "The value for required acknowledgements is invalid.",
    22: "The group is at another generation.",
    23: "The member's protocols or protocol type do not match those of the group.",
    24: "The group id is invalid.",
    25: "The coordinator does not know this member.",
    26: "The session timeout is outside the range that the broker allows.",
    27: "The group is rebalancing: the member has to join again.",
    28: "The committed offset data is too large.",
    29: "Not authorized to access the topic.",
    30: "Not authorized to access the group.",
    31: "Not authorized for this operation on the cluster.",
    32: "The timestamp of the message is out of the acceptable range.",
    33: "The broker does not support this SASL mechanism.",
    34: "The request is not valid in the current state of the SASL exchange.",
    35: "The version of the API is not supported.",
    36: "The topic exists already.",
    37: "The number of partitions is invalid.",
    38: "The replication factor is invalid.",
    39: "The assignment of replicas is invalid.",
    40: "The configuration is invalid.",
    41: "This node is not the active controller.",
    42: "The request is malformed, or asks for something that its version does not allow.",
    43: "The message format on the broker does not support this request.",
    44: "The request violates a policy of the cluster.",
    45: "The sequence number of the batch does not follow the last one.",
    46: "The batch repeats a sequence number.",
    47: "A newer producer with the same id has taken over: this epoch is old.",
    48: "The transaction does not allow this operation in its current state.",
    49: "The producer id is not the one assigned to the transactional id.",
    50: "The transaction timeout is longer than the broker allows.",
    51: "Another operation on the same transaction is still in progress.",
    52: "A newer coordinator has taken over the transaction.",
    53: "Not authorized to use the transactional id.",
    54: "Security features are disabled.",
    55: "The operation was not attempted.",
    56: "The broker could not access its storage.",
    57: "The log directory is not one of the broker's.",
    58: "SASL authentication failed.",
    59: "The broker knows nothing of this producer id.",
    60: "A reassignment of the partition is in progress.",
    61: "Delegation tokens are not enabled.",
    62: "The delegation token does not exist.",
    63: "The principal is neither owner nor renewer of the token.",
    64: "Delegation token requests are not allowed on this connection.",
    65: "Not authorized for this operation on delegation tokens.",
    66: "The delegation token has expired.",
    67: "The principal type is not supported.",
    68: "The group is not empty.",
    69: "The group does not exist.",
    70: "The fetch session does not exist.",
    71: "The epoch of the fetch session is invalid.",
    72: "The leader has no endpoint on the listener that the request came in on.",
    73: "Deleting topics is disabled.",
    74: "The leader epoch in the request is older than the broker's.",
    75: "The leader epoch in the request is newer than the broker's.",
    76: "The request's version does not support the compression type of the batch.",
    77: "The broker epoch is old: the broker has registered again.",
    78: "The leader has not yet caught up far enough to tell this offset.",
    79: "The member has to join again with the id that it was given.",
    80: "The preferred leader is not available.",
    81: "The group has as many members as it may have.",
    82: "Another member uses the same group instance id.",
    83: "No eligible leader is available.",
    84: "The partition needs no election.",
    85: "No reassignment of the partition is in progress.",
    86: "The group is subscribed to the topic: its offsets cannot be deleted.",
    87: "The broker rejected a record of the batch.",
    88: "Offsets of an open transaction have not been committed yet.",
    89: "The quota is exceeded: try again later.",
    90: "A newer producer with the same transactional id has fenced this one.",
    91: "The resource does not exist.",
    92: "The resource occurs twice in the request.",
    93: "The credential does not meet the requirements.",
    94: "The voters of sender and receiver are not the same.",
    95: "The feature update is invalid.",
    96: "The finalized features could not be updated.",
    97: "The forwarded principal could not be read.",
    98: "The snapshot does not exist.",
    99: "The position lies beyond the end of the snapshot.",
    100: "This broker does not know the topic id.",
    101: "The broker id is in use by another broker.",
    102: "The broker id is not registered.",
    103: "The topic id is not the one in the log.",
    104: "The cluster id is not this cluster's.",
    105: "The transactional id does not exist.",
    106: "The fetch session mixes topic names and topic ids.",
    107: "The new in-sync replicas contain one that is not eligible.",
    108: "The change has led to the election of a new leader.",
    109: "The offset has been moved to tiered storage.",
    110: "The member epoch is fenced: the member has to leave its partitions and join again.",
    111: "Another member still uses the instance id.",
    112: "The group does not support the assignor.",
    113: "The member epoch is old: retry after the next heartbeat.",
    114: "The request was sent to an endpoint of the wrong kind.",
    115: "This kind of endpoint is not supported.",
    116: "The controller id is unknown.",
    117: "The telemetry subscription id is outdated or unknown.",
    118: "The telemetry data is larger than the broker accepts.",
    119: "The registration of the node is invalid.",
    120: "The transaction met an error and has to be aborted.",
    121: "The state of the record does not allow this acknowledgement.",
    122: "The share session does not exist.",
    123: "The epoch of the share session is invalid.",
    124: "The share coordinator rejected the request: its state epoch is newer.",
    125: "The voter key is not the one of this node.",
    126: "The voter is in the set already.",
    127: "The voter is not in the set.",
    128: "The regular expression is invalid.",
    129: "The client's metadata is too old: it has to start again from its bootstrap servers.",
    130: "The topology is invalid.",
    131: "The epoch of the topology is invalid.",
    132: "The epoch of the topology is old.",
    133: "The broker has as many share sessions as it may have.",
}
