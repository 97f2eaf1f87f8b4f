"""The prompt: lines are typed, edited, completed and remembered; Enter runs a text that is complete.

In: a shell. Out: it runs until the person leaves. Ctrl-C drops what is typed, Ctrl-D leaves.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from barnabas.sql.shell.server_client import ServerError
from barnabas.sql.shell.shell import Failed, Leave, Shell
from barnabas.sql.shell.words import Names, WordCompleter

PROMPT = "ksql> "
HISTORY_FILE = ".barnabas-sql-history"
HISTORY_SHOWN_MAX = 1000


def interact(shell: Shell) -> None:
    greet(shell)
    names = Names(lambda: shell.client)
    shell.on_change = names.refresh
    names.refresh()
    history = history_of(Path.home() / HISTORY_FILE)
    shell.history = lambda: list(history.get_strings())[-HISTORY_SHOWN_MAX:]
    session: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=lambda width, line, is_wrapped: ">".rjust(width - 1) + " ",
        completer=WordCompleter(names),
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        history=history,
        key_bindings=bindings(shell),
    )
    while True:
        try:
            text = session.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
        try:
            shell.run(text)
        except Leave:
            break
        except Failed:
            continue
        except KeyboardInterrupt:
            shell.display.line("")
    shell.display.line("Exiting ksqlDB.")


def greet(shell: Shell) -> None:
    try:
        info = shell.client.info()
    except ServerError as error:
        shell.display.error(error.message)
        return
    shell.display.line(f"SQL over topics. Server {shell.client.url}, ksqlDB's API {info['version']}, "
                       f"service {info['ksqlServiceId']}, {info['serverStatus']}.")  # fmt: skip
    shell.display.line("Statements end with ';'. HELP lists commands, Tab completes, Ctrl-D leaves.")


def history_of(path: Path) -> History:
    with contextlib.suppress(OSError):
        path.touch(mode=0o600)
        return FileHistory(str(path))
    return InMemoryHistory()


def bindings(shell: Shell) -> KeyBindings:
    found = KeyBindings()

    @found.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if shell.is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return found
