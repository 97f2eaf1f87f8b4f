"""What goes wrong in consumer-groups without ending it: told, and counted for the exit status.

In: one line a problem. Under Kafka's name it stands in the output behind an empty line and the status stays
0, as scripts around Kafka's tool expect; else it goes to standard error and the status is 1.
"""

from barnabas.cli.frame.output import Output
from barnabas.protocol import ErrorCode, KafkaError

# What Kafka's tool says of a bare error code, where scripts may look for it.
KAFKAS_WORDS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Deleting offsets of a topic is forbidden while the consumer group "
    "is actively subscribed to it.",
}


def reason_of(error: KafkaError) -> str:
    """The message that came with an error, else Kafka's for its code, else ours."""
    if error.message != error.code.message:
        return error.message
    return KAFKAS_WORDS.get(error.code, error.message)


class Problems:
    def __init__(self, out: Output, *, as_kafka: bool) -> None:
        self._out = out
        self._as_kafka = as_kafka
        self.count = 0

    def tell(self, text: str) -> None:
        self.count += 1
        if self._as_kafka:
            self._out.line(f"\nError: {text}")
        else:
            self._out.note(f"Error: {text}")

    @property
    def status(self) -> int:
        return 1 if self.count and not self._as_kafka else 0
