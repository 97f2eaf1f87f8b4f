"""Words that complete what is typed: keywords, functions, and the names that the server knows.

In: a client. Out: words that begin with a prefix. Names are asked in a thread, so that typing never waits;
they are asked again after a statement changed something.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from barnabas.sql.functions.registry import table
from barnabas.sql.shell.server_client import ServerClient, ServerError
from barnabas.sql.syntax.words import keywords

OWN = ("CLEAR", "EXIT", "HELP", "HISTORY", "OUTPUT", "QUIT", "SERVER", "SPARK", "VERSION")
SOURCES_DESCRIBED_MAX = 500
PLACES = ("FROM", "JOIN", "INTO", "DESCRIBE", "STREAM", "TABLE", "EXISTS")


class Names:
    """Streams, tables and types, and the columns of each."""

    def __init__(self, client: Callable[[], ServerClient]) -> None:
        self.sources: tuple[str, ...] = ()
        self.columns: tuple[str, ...] = ()
        self._client = client
        self._lock = threading.Lock()

    def refresh(self) -> None:
        threading.Thread(target=self._ask, name="names of the server", daemon=True).start()

    def _ask(self) -> None:
        if not self._lock.acquire(blocking=False):
            return
        client = self._client().again()
        try:
            found = client.run("DESCRIBE STREAMS; DESCRIBE TABLES; SHOW TYPES;", {}, {})
        except ServerError:
            return
        finally:
            client.close()
            self._lock.release()
        described = [*found[0]["sourceDescriptions"], *found[1]["sourceDescriptions"]][:SOURCES_DESCRIBED_MAX]
        self.sources = tuple(sorted([*(each["name"] for each in described), *found[2]["types"]]))
        self.columns = tuple(sorted({column["name"] for each in described for column in each["fields"]}))


class WordCompleter(Completer):
    def __init__(self, names: Names) -> None:
        self._names = names
        self._words = sorted({*keywords(), *OWN})
        self._functions = sorted(table())

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        word = document.get_word_before_cursor(pattern=None)
        prefix = word.upper().lstrip("(,")
        if not prefix:
            return
        before = document.text_before_cursor[: -len(word)].split()
        wants_source = bool(before) and before[-1].upper() in PLACES
        groups: tuple[tuple[str, Iterable[str]], ...] = (("source", self._names.sources),)
        if not wants_source:
            groups = (
                ("column", self._names.columns),
                ("source", self._names.sources),
                ("", self._words),
                ("function", self._functions),
            )
        for kind, words in groups:
            for each in words:
                if each.upper().startswith(prefix):
                    yield Completion(each, start_position=-len(prefix), display_meta=kind)
