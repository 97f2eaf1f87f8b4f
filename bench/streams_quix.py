"""Word count in Quix Streams, run by the Python of a venv of its own: servers, application id, folder.

It imports nothing of ours. Does not know: the comparison.
"""

from __future__ import annotations

import sys
import threading
from typing import Any


def main(bootstrap: str, application_id: str, folder: str) -> None:
    from quixstreams import Application  # type: ignore[import-not-found]

    app: Any = Application(
        broker_address=bootstrap,
        consumer_group=application_id,
        auto_offset_reset="earliest",
        commit_interval=1.0,
        state_dir=folder,
        loglevel="WARNING",
    )
    lines = app.topic("lines", key_deserializer="bytes", value_deserializer="string")
    results = app.topic("counts", key_serializer="bytes", value_serializer="integer")

    def count(word: str, state: Any) -> int:
        number: int = state.get("n", 0) + 1
        state.set("n", number)
        return number

    frame = app.dataframe(lines).apply(lambda line: line.split(" "), expand=True)
    frame = frame.group_by(lambda word: word, name="words", value_serializer="str", value_deserializer="str")
    frame = frame.apply(count, stateful=True).to_topic(results, key=lambda number: b"k")
    threading.Thread(target=lambda: (sys.stdin.read(), app.stop()), daemon=True).start()
    print("RUNNING", flush=True)
    app.run()


if __name__ == "__main__":
    main(*sys.argv[1:4])
