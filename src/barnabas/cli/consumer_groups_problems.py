"""What goes wrong in consumer-groups without ending it: told, and counted for the exit status.

In: one line a problem. Under Kafka's name it stands in the output behind an empty line and the status stays
0, as scripts around Kafka's tool expect; else it goes to standard error and the status is 1.
"""

from barnabas.cli.output import Output


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
