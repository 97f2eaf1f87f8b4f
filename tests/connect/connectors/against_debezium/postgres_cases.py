"""What both connectors are asked: settings, tables, and statements while they stream."""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

END = "zz_end"


@dataclass(frozen=True)
class Case:
    """`setup` runs before the connectors start, `stream` while they stream. A text is one transaction."""

    name: str
    setup: Sequence[str]
    stream: Sequence[str] = ()
    config: dict[str, str] = field(default_factory=dict)


NUMBERS = """
CREATE TABLE numbers (
  id int PRIMARY KEY, small int2, big int8, o oid, r real, d float8, n numeric, n52 numeric(5,2) NOT NULL,
  n5 numeric(5), nbig numeric(38,10), m money, yes bool, ser serial, bs bigserial, ss smallserial,
  dn numeric(6,3) DEFAULT 1.5, di int DEFAULT 42, dt text DEFAULT 'hello ''you''', db bool NOT NULL DEFAULT true,
  dm money DEFAULT 3, dr real NOT NULL DEFAULT 0.5, ds smallint DEFAULT -3)
"""
NUMBER_ROWS = [
    "INSERT INTO numbers (id, small, big, o, r, d, n, n52, n5, nbig, m, yes) VALUES"
    " (1, 1, 9007199254740993, 4000000000, 1.5, 2.25, 123.4500, 9.9, 7, 1234567890.0123456789, 1234.56, true)",
    "INSERT INTO numbers (id, n, n52, r, d, m) VALUES (2, -0.001, -9.99, -0.1, 1e300, -3.5)",
    "INSERT INTO numbers (id, n, n52, r, d) VALUES (3, 1e20, 0, 'NaN', 'Infinity')",
    "INSERT INTO numbers (id, n52, dn, di, dt) VALUES (4, 1, NULL, NULL, NULL)",
    "INSERT INTO numbers (id, n52, n) VALUES (5, 1, 12345678901234567890.123456789)",
]
TIMES = """
CREATE TABLE times (
  id int PRIMARY KEY, d date, t time, t3 time(3), t6 time(6), tz timetz, tz3 timetz(3), ts timestamp, ts0 timestamp(0),
  ts3 timestamp(3), ts6 timestamp(6), tsz timestamptz, tsz3 timestamptz(3), i interval, iy interval year to month,
  dd date DEFAULT '2020-02-03', dts timestamp DEFAULT '2020-02-03 04:05:06', dn timestamp NOT NULL DEFAULT now(),
  dtz timestamptz NOT NULL DEFAULT '2020-02-03 04:05:06+02', dt time DEFAULT '01:02:03', di interval DEFAULT '1 day')
"""
FIXED = "'2024-01-02 03:04:05.123456'"
TIME_ROWS = [
    "INSERT INTO times (id, d, t, t3, t6, tz, tz3, ts, ts0, ts3, ts6, tsz, tsz3, i, iy, dn) VALUES (1, '2024-05-06',"
    " '07:08:09.123456', '07:08:09.123', '07:08:09', '07:08:09.5+02', '07:08:09.123-03', '2024-05-06 07:08:09.123456',"
    " '2024-05-06 07:08:09', '2024-05-06 07:08:09.120', '2024-05-06 07:08:09.1', '2024-05-06 07:08:09.123456+02',"
    f" '2024-05-06 07:08:09+02', '1 year 2 mons 3 days 04:05:06.7', '3 years 4 mons', {FIXED})",
    "INSERT INTO times (id, d, t, ts, ts3, tsz, i, dn) VALUES (2, '1600-01-01', '24:00:00', '1600-01-01 00:00:00',"
    f" '0050-03-04 05:06:07', '1600-01-01 12:00:00+00', '-1 day -02:03:04.05', {FIXED})",
    "INSERT INTO times (id, dn, tsz, tz, tz3, i) VALUES (7, '2024-01-01', '2024-01-01 00:00:00.5+00', '00:00:00+00',"
    " '23:30:00-05:30', '0')",
    f"INSERT INTO times (id, dn, dd, dts, dt, di) VALUES (8, {FIXED}, NULL, NULL, NULL, NULL)",
]
# Debezium's snapshots have other days for these than its stream.
FAR_ROWS = [
    "INSERT INTO times (id, d, ts, tsz, dn) VALUES (3, 'infinity', 'infinity', 'infinity', '-infinity')",
    "INSERT INTO times (id, d, ts, tsz, dn, ts3) VALUES (4, '-infinity', '-infinity', '-infinity', 'infinity', 'infinity')",
    "INSERT INTO times (id, d, ts, tsz, dn) VALUES"
    f" (5, '0044-03-15 BC', '0044-03-15 12:00:00 BC', '0044-03-15 12:00:00+00 BC', {FIXED})",
    "INSERT INTO times (id, d, ts, tsz, dn) VALUES"
    f" (6, '12024-03-15', '12024-03-15 12:00:00.5', '12024-03-15 12:00:00+00', {FIXED})",
]
TEXTS = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s, happy');
CREATE DOMAIN short_text AS varchar(5);
CREATE DOMAIN amount AS numeric(7,2);
CREATE TYPE pair AS (a int, b text);
CREATE EXTENSION IF NOT EXISTS hstore; CREATE EXTENSION IF NOT EXISTS citext; CREATE EXTENSION IF NOT EXISTS ltree;
CREATE TABLE texts (
  id uuid PRIMARY KEY, t text, v varchar, v5 varchar(5), c char, c5 char(5), ci citext, e mood, j json, jb jsonb,
  x xml, ip inet, net cidr, mac macaddr, mac8 macaddr8, u uuid, h hstore, l ltree, b1 bit, b5 bit(5), bv varbit,
  bv12 varbit(12), by bytea, p point, r4 int4range, r8 int8range, rn numrange, rd daterange, rts tsrange,
  rtz tstzrange, ts tsvector, tq tsquery, dom short_text, am amount, cp pair, ch "char", rc regclass, xi xid,
  de mood DEFAULT 'ok', dj jsonb DEFAULT '{"a": 1}', du uuid DEFAULT gen_random_uuid(), dby bytea DEFAULT '\\x0102',
  dv varchar(9) NOT NULL DEFAULT 'abc', dc char(3) NOT NULL DEFAULT 'x', db bit(5) DEFAULT B'00101')
"""
TEXT_ROWS = [
    "INSERT INTO texts (id, t, v, v5, c, c5, ci, e, j, jb, x, ip, net, mac, mac8, u, h, l, b1, b5, bv, bv12, by,"
    " p, r4, r8, rn, rd, rts, rtz, ts, tq, dom, am, cp, ch, rc, xi, du) VALUES ('00000000-0000-0000-0000-000000000001',"
    """ 'täxt "quoted" \n', 'v', 'v5', 'c', 'c5', 'CiText', 'it''s, happy', '{"b" : [1, 2]}', '{"b": 1.50, "a": null}',"""
    " '<a>b</a>', '10.0.0.1/24', '10.0.0.0/24', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05',"
    """ 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '"a"=>"1", "b"=>NULL, "c"=>"\\"ä"', 'Top.Science', B'1', B'10101',"""
    " B'101', B'100000000001', '\\xdeadbeef', '(1.5,-2)', '[1,5)', '[1,5]', '(1.5,2.5]', '[2024-01-01,2024-02-01)',"
    " '[2024-01-01 00:00:00,2024-01-02 00:00:00.5)', '[2024-01-01 00:00:00+00,2024-01-02 00:00:00+00)', 'a fat cat',"
    " 'fat & cat', 'dom', 12.5, '(1,two)', 'q', 'pg_class', '77',"
    " '00000000-0000-0000-0000-00000000000f')",
    "INSERT INTO texts (id, du, de, dj, dby, db) VALUES ('00000000-0000-0000-0000-000000000002', NULL, NULL, NULL, NULL, NULL)",
    "INSERT INTO texts (id, b1, bv, by, h, du) VALUES"
    " ('00000000-0000-0000-0000-000000000003', B'0', B'', '\\x', '', NULL)",
]
ARRAYS = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE arrays (
  id int PRIMARY KEY, i int[], b int8[], s int2[], t text[], v varchar(5)[], n numeric[], n52 numeric(5,2)[], f float4[],
  d float8[], y bool[], u uuid[], dt date[], ts timestamp[], tz timestamptz[], tm time[], j json[], jb jsonb[], e mood[],
  ip inet[], by bytea[], c char(3)[], m money[], r int4range[], ci text[] DEFAULT '{a,b}', nn int[] NOT NULL DEFAULT '{}')
"""
ARRAY_ROWS = [
    "INSERT INTO arrays (id, i, b, s, t, v, n, n52, f, d, y, u, dt, ts, tz, tm, j, jb, e, ip, by, c, r, nn) VALUES (1,"
    """ '{1,NULL,3}', '{9007199254740993}', '{1,2}', '{"a b","c,d","q\\"x",NULL,"NULL",""}', '{v}', '{1.5,NULL,-2}',"""
    " '{1.5,2}', '{1.5}', '{2.5,1e300}', '{t,f,NULL}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{2024-01-02}',"
    """ '{"2024-01-02 03:04:05.5"}', '{"2024-01-02 03:04:05+02"}', '{03:04:05}', '{"{\\"a\\": 1}"}', '{"{\\"a\\": 1}"}',"""
    """ '{sad,ok}', '{10.0.0.1}', '{"\\\\x0102"}', '{ab}', '{"[1,5)"}', '{4}')""",
    "INSERT INTO arrays (id, i, t, nn) VALUES (2, '{}', '{}', '{}')",
    "INSERT INTO arrays (id, nn) VALUES (3, '{1}')",
]
TOASTED = """
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE TABLE toasted (id int PRIMARY KEY, v int, t text, ta text[], va varchar[], ia int[], ba int8[], b bytea, j jsonb,
  h hstore, ua uuid[], na numeric[], by bytea[], ja jsonb[], n numeric, da date[]);
ALTER TABLE toasted ALTER t SET STORAGE EXTERNAL, ALTER ta SET STORAGE EXTERNAL, ALTER va SET STORAGE EXTERNAL,
  ALTER ia SET STORAGE EXTERNAL, ALTER ba SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL,
  ALTER j SET STORAGE EXTERNAL, ALTER h SET STORAGE EXTERNAL, ALTER ua SET STORAGE EXTERNAL,
  ALTER na SET STORAGE EXTERNAL, ALTER by SET STORAGE EXTERNAL, ALTER ja SET STORAGE EXTERNAL,
  ALTER da SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT 1, 1, repeat('t', 3000), array_fill('a'::text, '{800}'), array_fill('b'::varchar, '{800}'),
  array_fill(1, '{800}'), array_fill(2::int8, '{800}'), convert_to(repeat('u', 3000), 'UTF8'),
  jsonb_build_object('a', repeat('v', 3000)), hstore('k', repeat('w', 3000)), array_fill('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, '{300}'),
  array_fill(1.5, '{800}'), array_fill('\\x01'::bytea, '{800}'), array_fill('{"a": 1}'::jsonb, '{300}'), NULL,
  array_fill('2024-01-01'::date, '{800}')
"""
SHOP = [
    "CREATE TABLE orders (id serial PRIMARY KEY, name text NOT NULL, qty int, big text)",
    "ALTER TABLE orders ALTER big SET STORAGE EXTERNAL",
    "CREATE TABLE pairs (a int, b text, v int, PRIMARY KEY (b, a))",
    "CREATE TABLE whole (id int PRIMARY KEY, v text, big text)",
    "ALTER TABLE whole ALTER big SET STORAGE EXTERNAL",
    "ALTER TABLE whole REPLICA IDENTITY FULL",
    "CREATE TABLE keyless (a int, b text)",
    "ALTER TABLE keyless REPLICA IDENTITY FULL",
    "CREATE TABLE indexed (id int PRIMARY KEY, other int NOT NULL, v text)",
    "CREATE UNIQUE INDEX indexed_other ON indexed (other)",
    "ALTER TABLE indexed REPLICA IDENTITY USING INDEX indexed_other",
    "INSERT INTO orders (name, qty, big) VALUES ('one', 1, repeat('x', 5000)), ('two', NULL, NULL)",
    "INSERT INTO pairs VALUES (1, 'a', 1), (2, 'b', 2)",
    "INSERT INTO keyless VALUES (1, 'a')",
]
CHANGES = [
    "INSERT INTO orders (name, qty, big) VALUES ('three', 3, repeat('y', 5000))",
    "UPDATE orders SET qty = 10 WHERE id = 1",
    "UPDATE orders SET qty = qty WHERE id = 1",
    "UPDATE orders SET big = 'short' WHERE id = 1",
    "UPDATE orders SET id = 100 WHERE id = 3",
    "DELETE FROM orders WHERE id = 2",
    "UPDATE pairs SET v = 5 WHERE a = 1",
    "UPDATE pairs SET a = 7, v = 6 WHERE a = 1",
    "DELETE FROM pairs",
    "INSERT INTO whole VALUES (1, 'a', repeat('z', 5000))",
    "UPDATE whole SET v = 'b'",
    "UPDATE whole SET id = 2",
    "DELETE FROM whole",
    "INSERT INTO keyless VALUES (2, 'b')",
    "UPDATE keyless SET b = 'c' WHERE a = 2",
    "DELETE FROM keyless WHERE a = 1",
    "INSERT INTO indexed VALUES (1, 1, 'a')",
    "UPDATE indexed SET v = 'b'",
    "UPDATE indexed SET other = 2",
    "UPDATE indexed SET id = 5",
    "DELETE FROM indexed",
    "INSERT INTO orders (name) VALUES ('in one'); UPDATE orders SET qty = 4 WHERE name = 'in one';"
    " INSERT INTO pairs VALUES (3, 'c', 3); DELETE FROM orders WHERE name = 'in one'",
    "TRUNCATE orders",
    "TRUNCATE pairs, whole",
]
SCHEMA_CHANGES = [
    "INSERT INTO t VALUES (1, 'a', 1)",
    "ALTER TABLE t ADD more int DEFAULT 7",
    "INSERT INTO t VALUES (2, 'b', 2, 3)",
    "ALTER TABLE t DROP b",
    "INSERT INTO t VALUES (3, 'c', 4)",
    "UPDATE t SET a = 'd' WHERE id = 1",
    "ALTER TABLE t RENAME more TO less; INSERT INTO t VALUES (4, 'd', 5)",
    "ALTER TABLE t ALTER less TYPE numeric(9,2)",
    "INSERT INTO t VALUES (5, 'e', 1.25)",
    "ALTER TABLE t ALTER a SET NOT NULL, ADD e text; UPDATE t SET e = 'x' WHERE id = 5",
    "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (a, id)",
    "INSERT INTO t VALUES (6, 'f', 2, 'y')",
    "CREATE TABLE late (id int PRIMARY KEY, v text)",
    "INSERT INTO late VALUES (1, 'a')",
]


def modes(
    name: str, tables: Sequence[str], rows: Sequence[str], more: Sequence[str] = (), **config: str
) -> Case:
    """Rows of all types, in the snapshot and streamed, and more that are streamed only."""
    again = [
        each.replace("VALUES (", "VALUES (1", 1)
        if "0000-0000" not in each
        else each.replace("VALUES ('00000000", "VALUES ('10000000", 1)
        for each in [*rows, *more]
    ]
    return Case(name, [*tables, *rows], again, {key.replace("_", "."): text for key, text in config.items()})


CASES = [
    modes("numbers", [NUMBERS], NUMBER_ROWS),
    modes("doubles", [NUMBERS], NUMBER_ROWS, decimal_handling_mode="double"),
    modes("strings", [NUMBERS], NUMBER_ROWS, decimal_handling_mode="string"),
    modes("times", [TIMES], TIME_ROWS, FAR_ROWS),
    *(
        modes(f"times_{mode}", [TIMES], TIME_ROWS, FAR_ROWS, time_precision_mode=mode, interval_handling_mode="string")
        for mode in ("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")
    ),
    modes("texts", [TEXTS], TEXT_ROWS),
    modes("texts64", [TEXTS], TEXT_ROWS, binary_handling_mode="base64", hstore_handling_mode="map"),
    modes("textsurl", [TEXTS], TEXT_ROWS, binary_handling_mode="base64-url-safe"),
    modes("textshex", [TEXTS], TEXT_ROWS, binary_handling_mode="hex", include_unknown_datatypes="true"),
    modes("arrays", [ARRAYS], ARRAY_ROWS),
    modes("arrays_alike", [ARRAYS], ARRAY_ROWS, decimal_handling_mode="string", time_precision_mode="connect"),
    modes("propagated", [NUMBERS, TIMES, TEXTS, ARRAYS.replace("CREATE TYPE mood AS ENUM ('sad', 'ok');", "")], [],
          ["INSERT INTO numbers (id, n52) VALUES (1, 1)", f"INSERT INTO times (id, dn) VALUES (1, {FIXED})",
           "INSERT INTO texts (id, du) VALUES ('00000000-0000-0000-0000-000000000001', NULL)",
           "INSERT INTO arrays (id) VALUES (1)"], column_propagate_source_type=".*"),
    modes("toasts", [TOASTED], ["INSERT INTO toasted VALUES (2)"], ["UPDATE toasted SET v = 2 WHERE id = 1"]),
    Case("unique", ["CREATE TABLE u (id int, a int NOT NULL, b text, UNIQUE (a, id))", "CREATE UNIQUE INDEX aa ON u (a)",
                    "CREATE UNIQUE INDEX a0 ON u ((a + 1))"], ["INSERT INTO u VALUES (1, 1, 'a')"], {"publication.autocreate.mode": "all_tables"}),
    Case("shop", SHOP, CHANGES, {"skipped.operations": "none"}),
    Case("skips", SHOP, CHANGES, {"skipped.operations": "d,t", "tombstones.on.delete": "false",
         "provide.transaction.metadata": "true"}),
    Case("counted", SHOP, CHANGES, {"provide.transaction.metadata": "true", "skip.messages.without.change": "true"}),
    Case("masks", SHOP, CHANGES, {
        "column.mask.with.3.chars": "public.orders.name", "column.truncate.to.4.chars": "public.*.big",
        "column.mask.hash.SHA-256.with.salt.abc": "public.pairs.b", "column.exclude.list": "public.whole.v",
        "message.key.columns": "public.orders:name,qty;public.keyless:b", "topic.delimiter": "-",
        "column.propagate.source.type": "public.orders.*", "column.mask.with.0.chars": "public.keyless.a",
    }),
    Case("changing", ["CREATE TABLE t (id int PRIMARY KEY, a text, b int)"], SCHEMA_CHANGES,
         {"publication.autocreate.mode": "all_tables"}),
    Case("nodata", SHOP, CHANGES, {"snapshot.mode": "no_data", "publish.via.partition.root": "true",
        "schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro",
        "datatype.propagate.source.type": ".+varchar,.+int4"}),
    Case("messages", ["CREATE TABLE t (id int PRIMARY KEY, a text)", "INSERT INTO t VALUES (1, 'a')"], [
        "SELECT pg_logical_emit_message(true, 'p', 'hello')",
        "INSERT INTO t VALUES (2, 'b'); SELECT pg_logical_emit_message(true, 'p', 'hello')",
        "SELECT pg_logical_emit_message(false, 'q', 'there')",
        "SELECT pg_logical_emit_message(true, 'other', 'x')",
    ], {"message.prefix.exclude.list": "other", "provide.transaction.metadata": "true"}),
    Case("odd names", [
        'CREATE SCHEMA "My Schema"', 'CREATE TABLE "My Schema"."My Table" ("Id" int PRIMARY KEY, "a-b" text, "1c" int)',
        """INSERT INTO "My Schema"."My Table" VALUES (1, 'a', 2)""",
    ], ["""INSERT INTO "My Schema"."My Table" VALUES (2, 'b', 3)"""], {}),
    Case("parts", [
        "CREATE TABLE p (id int, at date, v text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')",
        "INSERT INTO p VALUES (1, '2024-02-02', 'a'), (2, '2025-02-02', 'b')",
    ], ["INSERT INTO p VALUES (3, '2024-03-03', 'c')", "UPDATE p SET at = '2025-03-03' WHERE id = 3"],
       {"publication.autocreate.mode": "all_tables"}),
]  # fmt: skip
