"""The shell: texts of people become requests, responses become what is shown.

In: statements and the shell's own commands. Out: their results on a `Display`. The session (properties,
variables) lives here and goes along with each request. Does not know: how a line is typed.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas import __version__
from barnabas.sql.errors import SqlError
from barnabas.sql.shell.display import Display
from barnabas.sql.shell.help_texts import help_lines
from barnabas.sql.shell.results import show_entity
from barnabas.sql.shell.server_client import ServerClient, ServerError
from barnabas.sql.syntax import statements as made
from barnabas.sql.syntax.parsing import parse_statement
from barnabas.sql.syntax.splitting import split, substitute

SCRIPTS_DEEP_MAX = 16  # scripts that run scripts
FILE_BYTES_MAX = 16 << 20
SPARK = re.compile(r"SPARK\s+", re.IGNORECASE)
CHANGES_SOURCES = (
    made.CreateSource, made.CreateAs, made.DropSource, made.AlterSource, made.CreateType, made.DropType,
    made.InsertInto, made.ControlQuery,
)  # fmt: skip


class Leave(Exception):
    """The person wants to leave."""


class Failed(Exception):
    """A statement failed; it is shown already."""


@dataclass(slots=True)
class ShellSession:
    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    sequence_number: int | None = None
    pipelines: bool = False
    query_rows_max: int | None = None
    query_seconds_max: float | None = None


class Shell:
    def __init__(
        self,
        client: ServerClient,
        display: Display,
        make_client: Callable[[str], ServerClient] = ServerClient,
    ) -> None:
        self.client = client
        self.display = display
        self.session = ShellSession()
        self.history: Callable[[], list[str]] = list
        self.on_change: Callable[[], None] = lambda: None  # streams, tables or types may be others now
        self._make_client = make_client
        self._scripts = 0

    # -- texts -------------------------------------------------------------------------------------

    def is_complete(self, text: str) -> bool:
        """Whether a text may run: own commands need no semicolon."""
        if not text.strip() or self._own(text) is not None:
            return True
        try:
            pieces = list(split(text))
        except SqlError as error:
            return "is not closed" not in error.message
        return not pieces or pieces[-1].is_ended

    def run(self, text: str) -> None:
        """Run all statements of a text. The first that fails is shown, and raises Failed."""
        own = self._own(text)
        if own is not None:
            own()
            return
        try:
            pieces = list(split(text))
        except SqlError as error:
            raise self._failed(str(error), text) from None
        for piece in pieces:
            self.display.note_input(f"{piece.text};")
            self._run_one(piece.text)

    def _own(self, text: str) -> Callable[[], None] | None:
        """The action of a command of the shell; None for a text that is no command."""
        stripped = text.strip()
        if stripped.startswith("@"):
            return lambda: self.run_script(stripped[1:].rstrip(";").strip().strip("'"))
        words = stripped.rstrip(";").split()
        match [each.upper() for each in words]:
            case ["EXIT"] | ["QUIT"]:
                return self._leave
            case ["HELP", *_]:
                return lambda: self._lines(help_lines(" ".join(words[1:])))
            case ["CLEAR"]:
                return self.display.console.clear
            case ["HISTORY"]:
                return lambda: self._lines(self.history())
            case ["VERSION"]:
                return self._version
            case ["SERVER"]:
                return lambda: self.display.line(self.client.url)
            case ["SERVER", _]:
                return lambda: self._use_server(words[1])
            case ["OUTPUT", *rest] if len(rest) < 2:
                return lambda: self._output(rest[0] if rest else "")
            case ["REQUEST-PIPELINING", *rest] if len(rest) < 2:
                return lambda: self._pipelining(rest[0] if rest else "")
            case ["CLI", "COLUMN-WIDTH", width]:
                return lambda: self._column_width(width)
        return None

    def _run_one(self, text: str) -> None:
        if SPARK.match(text):
            self._run_spark(text)
            return
        try:
            whole = substitute(text, self.session.variables)
            statement = parse_statement(whole)
        except SqlError as error:
            raise self._failed(str(error), text) from None
        if self._run_here(statement):
            return
        try:
            if isinstance(statement, made.Query | made.Print):
                self._select(f"{whole};", is_print=isinstance(statement, made.Print))
            else:
                self._send(f"{whole};")
        except ServerError as error:
            for entity in error.entities:
                show_entity(entity, self.display)
            raise self._failed(error.message, whole) from None
        if isinstance(statement, CHANGES_SOURCES):
            self.on_change()

    def _failed(self, message: str, text: str) -> Failed:
        if self.display.output == "JSON":
            self.display.json({"@type": "statement_error", "message": message, "statementText": text})
        else:
            self.display.error(message, text)
        return Failed(message)

    # -- statements that no server sees -------------------------------------------------------------

    def _run_here(self, statement: made.Statement) -> bool:
        """Run a statement about the session itself. False for all others."""
        session = self.session
        match statement:
            case made.SetProperty(name, value):
                self._set(name, value)
            case made.UnsetProperty(name):
                if session.properties.pop(name, None) is None:
                    raise self._failed(f"Cannot unset local property that was never set before: {name}", "")
                self.display.line(f"Successfully unset local property '{name}'.")
            case made.Define(name, value):
                session.variables[name] = value
            case made.Undefine(name):
                if session.variables.pop(name, None) is None:
                    self.display.line(f"Cannot undefine variable '{name}' which was never defined")
            case made.RunScript(file):
                self.run_script(file)
            case made.Spool(file):
                self._spool(file)
            case _:
                return False
        return True

    def _set(self, name: str, value: str) -> None:
        try:
            is_valid = self.client.is_valid_property(name)
        except ServerError as error:
            raise self._failed(error.message, "") from None
        if not is_valid:
            raise self._failed(f"Unknown property: {name}. SHOW PROPERTIES; lists those that can be set", "")
        before = self.session.properties.get(name)
        self.session.properties[name] = value
        was = f" from '{before}'" if before is not None else ""
        self.display.line(f"Successfully changed local property '{name}'{was} to '{value}'.")

    def run_script(self, file: str) -> None:
        if self._scripts >= SCRIPTS_DEEP_MAX:
            raise self._failed(f"scripts run scripts more than {SCRIPTS_DEEP_MAX} times deep: {file}", "")
        try:
            text = read_file(file)
        except (OSError, ValueError) as error:
            raise self._failed(f"the script {file} cannot be read: {error}", "") from None
        self._scripts += 1
        try:
            self.run(text)
        finally:
            self._scripts -= 1

    def _spool(self, file: str | None) -> None:
        if file is None:
            self.display.spool(None)
            return
        try:
            self.display.spool(Path(file).expanduser().open("w", encoding="utf-8"))
        except OSError as error:
            raise self._failed(f"{file} cannot be written: {error.strerror}", "") from None
        self.display.line(f"Session will be spooled to {file}")

    # -- statements for the server -------------------------------------------------------------------

    def _send(self, text: str) -> None:
        session = self.session
        number = None if session.pipelines else session.sequence_number
        entities = self.client.run(text, session.properties, session.variables, number)
        for entity in entities:
            if isinstance(entity.get("commandSequenceNumber"), int):
                session.sequence_number = entity["commandSequenceNumber"]
            show_entity(entity, self.display)
            if entity.get("commandStatus", {}).get("status") == "ERROR":
                raise Failed(entity["commandStatus"]["message"])

    def _select(self, text: str, *, is_print: bool) -> None:
        session = self.session
        asked = self.client.lines(
            text, session.properties, session.variables, seconds_max=session.query_seconds_max
        )
        with asked as lines:
            try:
                if is_print:
                    for line in itertools.islice(lines, session.query_rows_max):
                        self.display.line(line)
                else:
                    self._show_rows(lines)
            except KeyboardInterrupt:
                self.display.line("Query terminated")

    def _show_rows(self, lines: Iterator[str]) -> None:
        head = json.loads(next(lines))
        lines = itertools.islice(lines, self.session.query_rows_max)
        if self.display.output == "JSON":
            self.display.line(json.dumps({"header": head}))
            for line in lines:
                self.display.line(line)
            return
        table = self.display.rows(head["columnNames"])
        count = 0
        for line in lines:
            row = json.loads(line)
            if isinstance(row, dict):
                raise ServerError(str(row.get("message", line)))
            table.add(row)
            count += 1
        table.end()
        self.display.line(f"Query terminated: {count} {'row' if count == 1 else 'rows'}")

    def _run_spark(self, text: str) -> None:
        try:
            found = self.client.spark(substitute(SPARK.sub("", text, count=1), self.session.variables))
        except (ServerError, SqlError) as error:
            raise self._failed(str(error), text) from None
        if self.display.output == "JSON":
            self.display.json(found)
            return
        self.display.table(found["columnNames"], found["rows"])
        if found.get("isCut"):
            self.display.line(f"only the first {len(found['rows'])} rows are shown")

    # -- own commands --------------------------------------------------------------------------------

    def _leave(self) -> None:
        raise Leave

    def _lines(self, lines: list[str]) -> None:
        for line in lines:
            self.display.line(line)

    def _version(self) -> None:
        self.display.line(f"CLI version: {__version__}")
        try:
            info: dict[str, Any] = self.client.info()
        except ServerError as error:
            raise self._failed(error.message, "") from None
        self.display.line(f"Server version: {info['version']}, service {info['ksqlServiceId']}")

    def _use_server(self, url: str) -> None:
        client = self._make_client(url)
        try:
            client.info()
        except ServerError as error:
            client.close()
            raise self._failed(error.message, "") from None
        self.client.close()
        self.client = client
        self.session.sequence_number = None
        self.on_change()
        self.display.line(f"Server now: {client.url}")

    def _output(self, form: str) -> None:
        if form and form not in ("TABULAR", "JSON"):
            raise self._failed(f"Invalid output format: {form} (TABULAR or JSON)", "")
        self.display.output = form or self.display.output
        self.display.line(f"Output format {'set to' if form else 'is'} {self.display.output}")

    def _pipelining(self, word: str) -> None:
        if word and word not in ("ON", "OFF"):
            raise self._failed(f"Invalid setting: {word} (ON or OFF)", "")
        if word:
            self.session.pipelines = word == "ON"
        self.display.line(f"Request pipelining: {'ON' if self.session.pipelines else 'OFF'}")

    def _column_width(self, width: str) -> None:
        if not width.isdigit() or int(width) > 10_000:
            raise self._failed(f"Invalid column width: {width} (0 to 10000)", "")
        self.display.column_width = int(width)


def read_file(name: str) -> str:
    path = Path(name).expanduser()
    if path.stat().st_size > FILE_BYTES_MAX:
        raise ValueError(f"it has more than {FILE_BYTES_MAX} bytes")
    return path.read_text(encoding="utf-8")
