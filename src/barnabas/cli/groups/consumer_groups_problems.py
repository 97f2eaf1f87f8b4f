"""Problems that do not stop consumer-groups: they are printed, and they decide the exit status.

In: one line for each problem. Under Kafka's name the line goes to standard output after an empty line, and
the status stays 0, because scripts around Kafka's tool expect that. Otherwise the line goes to standard
error, and the status is 1.
"""

from barnabas.cli.frame.output import Output
from barnabas.protocol import ErrorCode, KafkaError

# Kafka's messages for error codes that come without one; scripts may look for them.
KAFKAS_WORDS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Deleting offsets of a topic is forbidden while the consumer group "
    "is actively subscribed to it.",
}


def reason_of(error: KafkaError) -> str:
    """The message in the response, else Kafka's message for the error code, else ours."""
    if error.message != error.code.message:
        return error.message
    return KAFKAS_WORDS.get(error.code, error.message)


class Problems:
    def __init__(self, out: Output, *, as_kafka: bool) -> None:
        self._out = out
        self._as_kafka = as_kafka
        self.count = 0

    def report(self, text: str) -> None:
        self.count += 1
        if self._as_kafka:
            self._out.line(f"\nError: {text}")
        else:
            self._out.note(f"Error: {text}")

    @property
    def status(self) -> int:
        return 1 if self.count and not self._as_kafka else 0
