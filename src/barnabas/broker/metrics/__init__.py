"""Counters of a broker (stand-in until the full package is here)."""


class ApiMetrics:
    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0

    def observe(self, duration_ns: int) -> None:
        self.count += 1
        self.total_ns += duration_ns


class TopicMetrics:
    def __init__(self) -> None:
        self.bytes_in = self.bytes_out = self.messages_in = 0
        self.produce_requests = self.fetch_requests = self.failed_produce_requests = 0


class Metrics:
    def __init__(self) -> None:
        self.apis: dict[int, ApiMetrics] = {}
        self.topics: dict[str, TopicMetrics] = {}

    def api(self, key: int) -> ApiMetrics:
        return self.apis.setdefault(key, ApiMetrics())

    def topic(self, name: str) -> TopicMetrics:
        return self.topics.setdefault(name, TopicMetrics())
