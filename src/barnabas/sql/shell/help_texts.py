"""Texts of HELP: the shell's own commands, and each statement with its form."""

from __future__ import annotations

COMMANDS: tuple[tuple[str, str], ...] = (
    ("HELP [STATEMENT]", "this list, or the form of a statement"),
    ("EXIT, QUIT, Ctrl-D", "leave the shell"),
    ("CLEAR", "clear the screen"),
    ("HISTORY", "statements that were typed before"),
    ("VERSION", "versions of the shell and of the server"),
    ("SERVER [URL]", "show the server, or use another one"),
    ("OUTPUT [TABULAR|JSON]", "show or set the form of results"),
    ("CLI COLUMN-WIDTH N", "width of the columns of SELECTs; 0: as the terminal allows"),
    ("REQUEST-PIPELINING [ON|OFF]", "whether a statement waits until the one before it is carried out (OFF)"),
    ("RUN SCRIPT 'FILE';  @FILE", "run the statements of a file"),
    ("SPOOL 'FILE';  SPOOL OFF;", "write what is shown into a file too"),
    ("SET 'NAME'='VALUE';  UNSET 'NAME';", "properties of this session"),
    ("DEFINE NAME='VALUE';  UNDEFINE NAME;", "variables of this session: ${NAME}"),
    ("SPARK STATEMENT;", "a statement in plain Spark SQL, over topics and tables"),
)

WITH = "WITH (KAFKA_TOPIC='topic', VALUE_FORMAT='JSON', PARTITIONS=1, …)"
STATEMENTS: dict[str, str] = {
    "CREATE STREAM": "CREATE [OR REPLACE] [SOURCE] STREAM [IF NOT EXISTS] name (column type [KEY], …) "
    f"{WITH};",
    "CREATE TABLE": "CREATE [OR REPLACE] [SOURCE] TABLE [IF NOT EXISTS] name (column type [PRIMARY KEY], …) "
    f"{WITH};",
    "CREATE STREAM AS SELECT": "CREATE STREAM name [WITH (…)] AS SELECT … FROM source [WINDOW …] [WHERE …] "
    "[PARTITION BY …] EMIT CHANGES;",
    "CREATE TABLE AS SELECT": "CREATE TABLE name [WITH (…)] AS SELECT … FROM source [WINDOW …] [WHERE …] "
    "GROUP BY … [HAVING …] EMIT CHANGES|FINAL;",
    "CREATE TYPE": "CREATE TYPE [IF NOT EXISTS] name AS STRUCT<…>|ARRAY<…>|…;",
    "CREATE CONNECTOR": "CREATE SOURCE|SINK CONNECTOR [IF NOT EXISTS] name WITH ('connector.class'='…', …);",
    "INSERT INTO": "INSERT INTO stream SELECT … FROM source …;",
    "INSERT VALUES": "INSERT INTO source [(column, …)] VALUES (value, …);",
    "SELECT": "SELECT … FROM source [[LEFT|RIGHT|FULL] JOIN other [WITHIN n unit] ON …] [WHERE …] "
    "[GROUP BY …] [EMIT CHANGES|FINAL] [LIMIT n];",
    "DROP": "DROP STREAM|TABLE|TYPE|CONNECTOR [IF EXISTS] name [DELETE TOPIC];",
    "ALTER": "ALTER STREAM|TABLE name ADD COLUMN column type, …;",
    "ALTER SYSTEM": "ALTER SYSTEM 'property'='value';",
    "TERMINATE": "TERMINATE query_id|ALL;",
    "PAUSE": "PAUSE query_id|ALL;",
    "RESUME": "RESUME query_id|ALL;",
    "EXPLAIN": "EXPLAIN query_id|SELECT …|CREATE … AS SELECT …;",
    "DESCRIBE": "DESCRIBE source [EXTENDED];  DESCRIBE STREAMS|TABLES [EXTENDED];",
    "DESCRIBE FUNCTION": "DESCRIBE FUNCTION name;",
    "DESCRIBE CONNECTOR": "DESCRIBE CONNECTOR name;",
    "SHOW": "SHOW|LIST STREAMS|TABLES|QUERIES [EXTENDED];  [ALL] TOPICS [EXTENDED];  FUNCTIONS|PROPERTIES|"
    "TYPES|VARIABLES|[SOURCE|SINK] CONNECTORS|CONNECTOR PLUGINS;",
    "PRINT": "PRINT topic [FROM BEGINNING] [INTERVAL n] [LIMIT n];",
    "ASSERT TOPIC": "ASSERT [NOT EXISTS] TOPIC name [WITH (PARTITIONS=n, REPLICAS=n)] [TIMEOUT n unit];",
    "ASSERT SCHEMA": "ASSERT [NOT EXISTS] SCHEMA [SUBJECT name] [ID n] [TIMEOUT n unit];",
}


def help_lines(about: str) -> list[str]:
    """Lines of HELP, about everything or about statements whose names begin so."""
    wanted = " ".join(about.upper().replace(";", " ").split())
    if wanted:
        found = [f"{name}\n  {form}" for name, form in STATEMENTS.items() if name.startswith(wanted)]
        found += [f"{name}\n  {text}" for name, text in COMMANDS if name.startswith(wanted)]
        return found or [f"there is no help about {wanted}: HELP lists all topics"]
    width = max(len(name) for name, _ in COMMANDS)
    return [
        "Commands of the shell:",
        *(f"  {name:<{width}}  {text}" for name, text in COMMANDS),
        "",
        "Statements end with a semicolon, and may have several lines. HELP STATEMENT shows the form of one:",
        *(f"  {name}" for name in STATEMENTS),
    ]
