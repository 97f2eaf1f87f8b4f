"""Counters of the hot path."""

from barnabas.broker.metrics.counters import ApiMetrics, TopicMetrics


def test_a_request_that_waited_counts_once_and_in_every_phase() -> None:
    api = ApiMetrics()
    api.observe(5)
    api.observe_wait(10, 100, 7)
    assert api.count == 2
    assert api.waited is not None
    assert api.waited.total == 117
    assert [each.total for each in (api.local, api.remote, api.response_queue) if each is not None] == [
        10, 100, 7,
    ]  # fmt: skip


def test_all_histograms_of_an_api_forget_together() -> None:
    api = ApiMetrics()
    api.observe(5)
    api.observe_wait(1, 2, 3)
    for observe in (api.observe_queue, api.observe_send, api.observe_bytes, api.observe_throttle):
        observe(9)
    api.rotate()
    api.rotate()
    histograms = [api.immediate, api.waited, api.local, api.remote, api.queue, api.response_queue, api.send]
    for each in (*histograms, api.request_bytes, api.throttle_ms):
        assert each is not None
        assert sum(each.recent) == 0
        assert each.count == 1


def test_counters_of_topics_are_summed() -> None:
    first, second = TopicMetrics(), TopicMetrics()
    first.bytes_in, second.bytes_in, second.messages_in = 1, 2, 3
    first.add(second)
    assert (first.bytes_in, first.messages_in, first.bytes_out) == (3, 3, 0)
