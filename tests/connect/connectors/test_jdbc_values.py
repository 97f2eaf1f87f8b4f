"""Values, names and queries that tables in the field have, through the JDBC source and sink."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.connect.connectors.jdbc_servers import Database, Offsets, Sink, Source, running
from tests.security.tls_world import certificates

from barnabas.connect.connectors.databases.catalogue import TableId, parts_of
from barnabas.connect.convert.json import JsonConverter
from barnabas.connect.data import (
    BYTES,
    FLOAT64,
    INT32,
    OPTIONAL_STRING,
    TIMESTAMP,
    Column,
    Records,
    Schema,
    struct,
)
from barnabas.connect.plugins import ConnectError, RetriableError
from barnabas.testing import mysql

KEY = struct(id=INT32)
NOON = datetime(2024, 7, 1, 12, tzinfo=UTC)
ZONED = {"postgresql": "timestamptz", "mysql": "timestamp(3) NULL"}


@pytest.fixture(scope="module", params=["postgresql", "mysql"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with running(request.param, tmp_path_factory.mktemp("database")) as found:
        yield found


def only(database: Database, kind: str) -> None:
    if database.dialect.address.kind != kind:
        pytest.skip(f"about {kind}")


def filled(database: Database, columns: str, *rows: str, name: str = "one") -> None:
    database.sql(f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({columns})")
    database.sql(*(f"INSERT INTO {name} VALUES ({each})" for each in rows))


def source(database: Database, offsets: Offsets | None = None, **more: str) -> Source:
    given = {"mode": "bulk", "topic.prefix": "x-", "table.whitelist": "one"}
    given |= {name.replace("_", "."): text for name, text in more.items()}
    given = {name: text for name, text in given.items() if text}
    return Source({**database.config, **given}, offsets or Offsets())


def first_batch(found: Source) -> Records:
    try:
        batches = (found.tasks[0].poll() for _ in range(4))
        return next(each for each in batches if each is not None)
    finally:
        found.stop()


def as_json(database: Database, **more: str) -> dict[str, Any]:
    """The first row that the source gives, as JsonConverter writes it."""
    records = first_batch(source(database, **more))
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false", "decimal.format": "NUMERIC"}, is_key=False)
    found: dict[str, Any] = json.loads(converter.to_bytes("x-one", records.values).data[0].as_py())
    return found


def written(
    database: Database, schema: Schema, *values: dict[str, Any], table: str = "one", **more: str
) -> list[str]:
    """Write rows with keys 1, 2, 3 …; out: what was refused."""
    config = {**database.config, "auto.create": "true", "pk.mode": "record_key", "insert.mode": "upsert"}
    sink = Sink({**config, **{name.replace("_", "."): text for name, text in more.items()}})
    count = len(values)
    records = Records.of(
        table,
        Column.of(list(values), schema),
        Column.of([{"id": number + 1} for number in range(count)], KEY),
        partitions=[0] * count,
        offsets=list(range(count)),
    )
    try:
        sink.task.put(records)
    finally:
        sink.task.stop()
    return [str(error) for _, error in sink.errants]


# -- reading -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value", "wanted"),
    [
        ("json", """'{"n": 12345678901234567890.10, "a": 1}'""", '{"n": 12345678901234567890.10, "a": 1}'),
        ("jsonb", """'{"a": 1.10}'""", '{"a": 1.10}'),
        ("interval", "'1 mon 2 days 03:00:00'", "1 mon 2 days 03:00:00"),
        ("int4range", "'[1,5)'", "[1,5)"),
        ("int[]", "'{{1,2},{3,NULL}}'", [1, 2, 3, None]),
        ("timestamp", "'infinity'", 9223372036825200000),
        ("timestamptz", "'-infinity'", -9223372036832400000),
        ("timestamp", "'0044-03-15 BC'", -63517824000000),
        ("timestamptz", "'20000-01-01 00:00:00+00'", 568971820800000),
        ("timestamp", "'1950-01-01 00:00:00.123456'", -631151999877),
        ("date", "'0044-03-15 BC'", -735160),
        (
            "numeric(38,18)",
            "12345678901234567890.123456789012345678",
            12345678901234567890.123456789012345678,
        ),
    ],
)
def test_values_of_postgresql_are_read_whole(
    database: Database, column: str, value: str, wanted: Any
) -> None:
    only(database, "postgresql")
    filled(database, f"id int PRIMARY KEY, v {column}", f"1, {value}")
    assert as_json(database)["v"] == wanted


@pytest.mark.parametrize(
    ("column", "value", "wanted"),
    [
        ("bit(1)", "b'1'", 1),
        ("decimal(65,30)", "1.5", 1.5),
        ("polygon", "ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')", bytes),
        ("tinyint unsigned", "255", 255),
        ("bigint unsigned", "9223372036854775807", 9223372036854775807),
    ],
)
def test_values_of_mariadb_are_read_whole(database: Database, column: str, value: str, wanted: Any) -> None:
    only(database, "mysql")
    filled(database, f"id int PRIMARY KEY, v {column}", f"1, {value}")
    if wanted is bytes:
        [row] = first_batch(source(database)).values.pylist()
        assert row["v"] == database.rows("SELECT v FROM one")[0][0]
    else:
        assert as_json(database)["v"] == wanted


def test_zero_dates_are_null_where_the_address_says_so(database: Database) -> None:
    only(database, "mysql")
    filled(
        database, "id int PRIMARY KEY, d date NOT NULL, t datetime NOT NULL", "1, '0000-00-00', '0000-00-00'"
    )
    with pytest.raises(ConnectError, match=r"zeroDateTimeBehavior=CONVERT_TO_NULL"):
        first_batch(source(database))
    for url in (
        f"{database.url}?zeroDateTimeBehavior=convertToNull",
        database.url.replace("jdbc:mysql:", "jdbc:mariadb:"),
    ):
        assert as_json(replace(database, url=url)) == {"id": 1, "d": None, "t": None}


def test_years_have_four_digits_in_iso_texts(database: Database) -> None:
    filled(
        database,
        f"id int PRIMARY KEY, v {'timestamp' if 'postgres' in database.url else 'datetime(6)'}",
        "1, '0987-01-01 00:00:00.000001'",
    )
    found = as_json(database, timestamp_granularity="micros_iso_datetime_string")
    assert found["v"] == "0987-01-01T00:00:00.000001Z"


@pytest.mark.parametrize("reads", ["table", "query"])
def test_points_in_time_do_not_depend_on_zones(database: Database, reads: str) -> None:
    """`db.timezone` is about columns without a zone: rows of others are not shifted, late or doubled."""
    kind = ZONED[database.dialect.address.kind]
    filled(database, f"id int PRIMARY KEY, t {kind}", "1, '2024-07-01 12:00:00'")
    offsets = Offsets()
    given = {"mode": "timestamp", "timestamp_column_name": "t", "validate_non_null": "false"}
    if reads == "query":
        given |= {"table_whitelist": "", "query": "SELECT * FROM one WHERE id > 0"}
    for zone in ("America/New_York", "Asia/Tokyo"):
        found = source(database, offsets, db_timezone=zone, **given)
        ids = [row["id"] for row in found.values()]
        database.sql("INSERT INTO one SELECT max(id) + 1, current_timestamp(3) FROM one")
        ids += [row["id"] for row in found.values()]
        found.stop()
        assert ids == ([1, 2] if zone == "America/New_York" else [3])
    assert as_json(database, db_timezone="Asia/Tokyo")["t"] == NOON.timestamp() * 1000


def test_a_query_may_have_its_own_where_order_and_percent(database: Database) -> None:
    filled(database, "id int PRIMARY KEY, v varchar(9)", "1, 'a'", "2, '50%s'", "3, '70%s'")
    query = "SELECT id, v FROM one WHERE v LIKE '%s' ORDER BY v DESC;"
    given = {"table_whitelist": "", "query": query, "mode": "incrementing", "incrementing_column_name": "id"}
    offsets = Offsets()
    found = source(database, offsets, **given)
    assert [row["id"] for row in found.values()] == [2, 3]
    found.stop()
    database.sql("INSERT INTO one VALUES (4, '80%s')")
    again = source(database, offsets, **given)
    assert [row["id"] for row in again.values()] == [4]
    again.stop()


def test_names_of_tables_and_columns_may_have_any_sign(database: Database) -> None:
    mark = database.dialect.MARK
    table, column = f"{mark}we.ird, Tb%s{mark}", f"{mark}Select %{mark}"
    database.sql(f"DROP TABLE IF EXISTS {table}", f"CREATE TABLE {table} ({column} int PRIMARY KEY)")
    database.sql(f"INSERT INTO {table} VALUES (1)")
    offsets = Offsets()
    given = {"table_whitelist": "", "table_include_list": r".*we\.ird.*", "mode": "incrementing"}
    for number in (1, 2):
        found = source(database, offsets, incrementing_column_name="Select %", **given)
        assert found.values() == [{"Select %": number}]
        found.stop()
        database.sql(f"INSERT INTO {table} VALUES ({number + 1})")
    database.sql(f"DROP TABLE {table}")


def test_a_name_in_a_list_keeps_its_parts() -> None:
    for given in (TableId("shop", "public", "orders"), TableId("", "", "a.b, c%"), TableId("s", "", "Ärger")):
        [entry] = [each.strip() for each in given.entry.split(",")]
        assert parts_of(entry) == list(given.parts)
    assert TableId("shop", "public", "orders").entry == "shop.public.orders"


def test_a_table_that_is_dropped_and_made_again_is_read_on(database: Database) -> None:
    filled(database, "id int PRIMARY KEY", "1")
    found = source(database, mode="incrementing", incrementing_column_name="id")
    try:
        assert found.values() == [{"id": 1}]
        database.sql("DROP TABLE one")
        with pytest.raises(RetriableError, match=r"one is not there any more"):
            found.values()
        filled(database, "id int PRIMARY KEY, v int", "2, 3")
        assert found.values() == [{"id": 2, "v": 3}]
    finally:
        found.stop()


@pytest.mark.parametrize(
    "option",
    [
        "ssl",
        "ssl=true",
        "sslmode=require",
        "sslMode=VERIFY_IDENTITY",
        "sslMode=verify-full",
        "sslMode=VERIFY_CA",
    ],
)
def test_no_connection_is_made_without_the_trust_that_the_address_asks_for(
    database: Database, option: str
) -> None:
    """The servers here have no certificate that anybody trusts."""
    only(database, "postgresql" if option.startswith("ssl") and "Mode" not in option else "mysql")
    with pytest.raises(database.dialect.errors):
        replace(database, url=f"{database.url}?{option}").rows("SELECT 1")
    assert database.rows("SELECT 1") == [(1,)]


def test_certificates_of_mariadb_are_checked_as_the_address_says(database: Database) -> None:
    only(database, "mysql")
    pem, ca = Path(certificates().broker_file).read_bytes(), certificates().ca_file
    with tempfile.NamedTemporaryFile(prefix="barnabas-jdbc-", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        Path(file.name).chmod(0o644)  # the server may be of another user
        with mysql.MySqlServer("shop", f"--ssl-cert={file.name}", f"--ssl-key={file.name}") as server:
            own = Database(server.url, server.user, server.password)

            def cipher(options: str) -> str:
                [(_, found)] = replace(own, url=f"{own.url}?{options}").rows("SHOW STATUS LIKE 'Ssl_cipher'")
                return str(found)

            trusting = ("sslMode=VERIFY_IDENTITY", "sslMode=verify-ca")
            for option in (
                "sslMode=REQUIRED",
                "useSSL=true",
                *(f"{each}&serverSslCert={ca}" for each in trusting),
            ):
                assert cipher(option)
            with pytest.raises(own.dialect.errors, match=r"certificate verify failed"):
                cipher("sslMode=VERIFY_IDENTITY")


def test_several_servers_of_postgresql_are_asked_in_order(database: Database) -> None:
    only(database, "postgresql")
    several = database.url.replace("//", "//127.0.0.1:1,")
    found = replace(database, url=f"{several}?targetServerType=primary")
    assert found.rows("SELECT 1") == [(1,)]
    assert found.dialect.address.shown.startswith("postgresql://127.0.0.1:1,127.0.0.1:")


# -- writing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_points_in_time_are_stored_in_the_column_s_own_way(database: Database, zone: str) -> None:
    kind = ZONED[database.dialect.address.kind]
    local = "timestamp" if "postgres" in database.url else "datetime"
    filled(database, f"id int PRIMARY KEY, t {kind}, l {local} NULL")
    assert not written(database, struct(t=TIMESTAMP, l=TIMESTAMP), {"t": NOON, "l": NOON}, db_timezone=zone)
    [(instant, wall)] = database.rows("SELECT t, l FROM one")
    assert instant.replace(tzinfo=instant.tzinfo or UTC) == NOON
    assert wall.hour == (12 if zone == "UTC" else 14)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (BYTES, b"\x01'"),
        (TIMESTAMP, NOON),
        (OPTIONAL_STRING, "o'x"),
        (FLOAT64, 1.5),
    ],
)
def test_defaults_are_those_of_new_columns(database: Database, schema: Schema, value: Any) -> None:
    database.sql("DROP TABLE IF EXISTS one")
    made = replace(schema, optional=True, default=value)
    assert not written(database, struct(v=made), {"v": None})
    database.sql("INSERT INTO one (id) VALUES (7)")
    by_record, by_default = database.rows("SELECT v FROM one ORDER BY id")
    assert by_record == by_default
    assert by_default[0] == (value.replace(tzinfo=None) if isinstance(value, datetime) else value)


@pytest.mark.parametrize(
    ("column", "schema", "good", "bad"),
    [
        ("int CHECK (v > 0)", INT32, 1, -1),
        ("json", OPTIONAL_STRING, '{"a":1}', "{no"),
        ("date", OPTIONAL_STRING, "2024-01-01", "nonsense"),
        ("boolean", OPTIONAL_STRING, "1", "maybe"),
    ],
)
def test_a_value_that_a_column_does_not_take_is_refused_alone(
    database: Database, column: str, schema: Schema, good: Any, bad: Any
) -> None:
    filled(database, f"id int PRIMARY KEY, v {column}")
    refused = written(database, struct(v=schema.as_optional()), {"v": good}, {"v": bad}, {"v": good})
    assert database.rows("SELECT id FROM one ORDER BY id") == [(1,), (3,)]
    assert len(refused) == 1 and "one-0 offset 1" in refused[0]


def test_a_row_without_a_required_column_is_refused_alone(database: Database) -> None:
    filled(database, "id int PRIMARY KEY, v int, must int NOT NULL")
    schema = struct(v=INT32.as_optional(), must=INT32.as_optional())
    assert len(written(database, struct(v=INT32.as_optional()), {"v": 1})) == 1
    refused = written(database, schema, {"v": 1, "must": 1}, {"v": 2, "must": None}, {"v": 3, "must": 1})
    assert len(refused) == 1 and database.rows("SELECT v FROM one ORDER BY id") == [(1,), (3,)]


def test_a_trigger_s_refusal_is_about_one_row(database: Database) -> None:
    filled(database, "id int PRIMARY KEY, v int")
    if "postgres" in database.url:
        database.sql(
            "CREATE OR REPLACE FUNCTION nope() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF NEW.v < 0 THEN RAISE EXCEPTION 'no negative'; END IF; RETURN NEW; END $$",
            "CREATE TRIGGER checked BEFORE INSERT ON one FOR EACH ROW EXECUTE FUNCTION nope()",
        )
    else:
        database.sql(
            "CREATE TRIGGER checked BEFORE INSERT ON one FOR EACH ROW IF NEW.v < 0 THEN"
            " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no negative'; END IF"
        )
    refused = written(database, struct(v=INT32), {"v": 1}, {"v": -1}, {"v": 3})
    assert database.rows("SELECT v FROM one ORDER BY id") == [(1,), (3,)]
    assert len(refused) == 1 and "no negative" in refused[0]


def test_a_number_that_is_none_is_refused_alone_where_the_database_has_no_nan(database: Database) -> None:
    database.sql("DROP TABLE IF EXISTS one")
    refused = written(database, struct(v=FLOAT64), {"v": 1.0}, {"v": float("nan")}, {"v": 3.0})
    if "postgres" in database.url:
        assert refused == []
    else:
        assert len(refused) == 1 and "nan can not be used" in refused[0]
        assert database.rows("SELECT v FROM one ORDER BY id") == [(1.0,), (3.0,)]


def test_columns_are_found_as_the_database_compares_names(database: Database) -> None:
    filled(database, "id int PRIMARY KEY, item varchar(9)")
    mixed = struct(Item=OPTIONAL_STRING)
    if "postgres" in database.url:
        with pytest.raises(ConnectError, match=r"no columns Item"):
            written(database, mixed, {"Item": "x"})
        assert not written(database, mixed, {"Item": "x"}, quote_sql_identifiers="NEVER")
    else:
        assert not written(database, mixed, {"Item": "x"}, auto_evolve="true")
    assert database.rows("SELECT id, item FROM one") == [(1, "x")]


def test_names_without_quotes_and_with_percents_are_written(database: Database) -> None:
    database.sql("DROP TABLE IF EXISTS MixedCase")
    for value in ("x", "y"):
        given = {"table": "MixedCase", "quote_sql_identifiers": "NEVER"}
        assert not written(database, struct(Note=OPTIONAL_STRING), {"Note": value}, **given)
    assert database.rows("SELECT note FROM MixedCase") == [("y",)]
    database.sql("DROP TABLE MixedCase", "DROP TABLE IF EXISTS one")
    for mode in ("upsert", "update", "insert"):
        if mode == "insert":
            database.sql("DELETE FROM one")
        refused = written(database, struct(**{"disc%": OPTIONAL_STRING}), {"disc%": mode}, insert_mode=mode)
        assert not refused
        assert database.rows("SELECT * FROM one") == [(1, mode)]


def test_upserts_into_a_table_without_a_key_are_refused(database: Database) -> None:
    filled(database, "id int, v int")
    with pytest.raises((ConnectError, RetriableError), match=r"unique"):
        written(database, struct(v=INT32), {"v": 1}, {"v": 2})
    assert database.rows("SELECT * FROM one") == []
    number = "serial" if "postgres" in database.url else "int AUTO_INCREMENT"
    filled(database, f"nr {number} PRIMARY KEY, id int UNIQUE, v int")
    for value in (1, 2):
        assert not written(database, struct(v=INT32), {"v": value})
    assert database.rows("SELECT id, v FROM one") == [(1, 2)]


def test_an_update_without_fields_to_set_is_refused_in_words(database: Database) -> None:
    filled(database, "id int PRIMARY KEY", "1")
    refused = written(database, struct(id=INT32), {"id": 1}, insert_mode="update", pk_mode="record_value")
    assert len(refused) == 1 and "needs fields that are not in the key" in refused[0]


def test_days_before_christ_and_decimals_go_both_ways(database: Database) -> None:
    filled(database, "id int PRIMARY KEY, d date, n numeric(38,10)", "1, '1001-01-01', -1.5")
    [row] = first_batch(source(database)).values.pylist()
    assert (row["d"], row["n"]) == (date(1001, 1, 1), Decimal("-1.5000000000"))
