"""An honest client that works all the time and notices when it is harmed."""

from __future__ import annotations

import threading

from barnabas.protocol import ApiKey
from interop.requests import batch, fetch, produce
from interop.talk import Talk


class Worker(threading.Thread):
    """Produces a record, reads it back, again and again; `error` says what went wrong."""

    def __init__(self, port: int, topic: str) -> None:
        super().__init__(daemon=True)
        self.rounds = 0
        self.error: BaseException | None = None
        self._port, self._topic = port, topic
        self._stop_asked = threading.Event()

    def run(self) -> None:
        try:
            talk = Talk(self._port, "worker")
            try:
                while not self._stop_asked.is_set():
                    self._round(talk)
            finally:
                talk.close()
        except BaseException as error:
            self.error = error

    def _round(self, talk: Talk) -> None:
        value = b"%d" % self.rounds
        answer = talk.silently(ApiKey.PRODUCE, 9, **produce(talk, self._topic, batch(value)))
        produced = answer["responses"][0]["partition_responses"][0]
        assert (produced["error_code"], produced["base_offset"]) == ("NONE", self.rounds), answer
        body = fetch(talk, {self._topic: [{"fetch_offset": self.rounds}]})
        answer = talk.silently(ApiKey.FETCH, 12, **body)
        assert answer["responses"][0]["partitions"][0]["records"], (self.rounds, produced, answer)
        [found] = answer["responses"][0]["partitions"][0]["records"]
        assert found["records"][0]["value"] == value.decode(), answer
        self.rounds += 1

    def finish(self) -> None:
        """Ends the work; raises what went wrong."""
        self._stop_asked.set()
        self.join(60)
        assert not self.is_alive(), "the honest client hangs"
        if self.error is not None:
            raise self.error
