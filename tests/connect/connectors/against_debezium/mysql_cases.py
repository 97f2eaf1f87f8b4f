"""What both connectors of MySQL or MariaDB are asked: settings, tables, statements while they stream."""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Sequence

from connect.connectors.against_debezium.postgres_cases import Case

NUMBERS = """
CREATE TABLE numbers (
  id int PRIMARY KEY AUTO_INCREMENT, t tinyint, tu tinyint unsigned, t1 tinyint(1), b bool, s smallint,
  su smallint unsigned, m mediumint, mu mediumint unsigned, i int, iu int unsigned, big bigint, bu bigint unsigned,
  f float, f53 float(53), f72 float(7,2), d double, d82 double(8,2), du double unsigned, n decimal, n52 decimal(5,2) NOT NULL,
  nu decimal(10,3) unsigned, nbig decimal(38,10), bit1 bit, bit5 bit(5), bit64 bit(64), y year,
  z int(5) zerofill, dn decimal(6,3) DEFAULT 1.5, di int DEFAULT 42, dd double NOT NULL DEFAULT 0.5,
  db tinyint(1) NOT NULL DEFAULT 1, dy year DEFAULT 2020, dbit bit(5) DEFAULT b'101', dbu bigint unsigned DEFAULT 7)
"""
NUMBER_ROWS = [
    "INSERT INTO numbers (id, t, tu, t1, b, s, su, m, mu, i, iu, big, bu, f, f53, f72, d, d82, du, n, n52, nu, nbig,"
    " bit1, bit5, bit64, y, z) VALUES (1, -1, 255, 1, true, -5, 65535, -7, 16777215, -9, 4294967295,"
    " 9007199254740993, 18446744073709551615, 1.5, 2.25, 3.14, 1e100, 6.28, 0.1, 12345, 9.90, 1.125,"
    " 1234567890.0123456789, b'1', b'10101', b'1000000000000000000000000000000000000000000000000000000000000001',"
    " 2024, 42)",
    "INSERT INTO numbers (id, n52, f, d) VALUES (2, -9.99, -0.1, -0.1)",
    "INSERT INTO numbers (id, n52, dn, di, dy, dbit, dbu, y) VALUES (3, 0, NULL, NULL, NULL, NULL, NULL, 1999)",
]
TIMES = """
CREATE TABLE times (
  id int PRIMARY KEY, d date, t time, t3 time(3), t6 time(6), dt datetime, dt3 datetime(3), dt6 datetime(6),
  ts timestamp NULL, ts3 timestamp(3) NULL, ts6 timestamp(6) NULL, dd date DEFAULT '2020-02-03',
  dts datetime NOT NULL DEFAULT '2020-02-03 04:05:06', dtt time DEFAULT '01:02:03',
  dtz timestamp NOT NULL DEFAULT '2020-02-03 04:05:06',
  now timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, now6 datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))
"""
NOW = "'2024-01-02 03:04:05', '2024-01-02 03:04:05.5'"
TIME_ROWS = [
    "INSERT INTO times (id, d, t, t3, t6, dt, dt3, dt6, ts, ts3, ts6, now, now6) VALUES (1, '2024-05-06', '07:08:09',"
    " '07:08:09.123', '07:08:09.123456', '2024-05-06 07:08:09', '2024-05-06 07:08:09.123',"
    " '2024-05-06 07:08:09.123456', '2024-05-06 07:08:09', '2024-05-06 07:08:09.123',"
    f" '2024-05-06 07:08:09.123456', {NOW})",
    "INSERT INTO times (id, d, t, t6, dt, dt6, now, now6) VALUES (2, '1600-01-01', '-12:30:00', '123:45:06.5',"
    f" '1600-01-01 00:00:00', '9999-12-31 23:59:59.999999', {NOW})",
    f"INSERT INTO times (id, dd, dtt, now, now6) VALUES (3, NULL, NULL, {NOW})",
    f"INSERT INTO times (id, now, now6) VALUES (4, {NOW})",
]
TEXTS = """
CREATE TABLE texts (
  id varchar(20) PRIMARY KEY, c char(5), v varchar(20), tt tinytext, t text, mt mediumtext, lt longtext, b binary(5),
  vb varbinary(10), tb tinyblob, bl blob, lb longblob, e enum('a','b','it''s c'), s set('x','y','z'), j json,
  l varchar(10) CHARACTER SET latin1, u varchar(10) CHARACTER SET utf8mb3, cb varchar(10) COLLATE utf8mb4_bin,
  g geometry, p point, ls linestring, po polygon,
  dv varchar(9) NOT NULL DEFAULT 'abc', de enum('a','b') DEFAULT 'b', ds set('x','y') NOT NULL DEFAULT 'x,y',
  dc char(3) NOT NULL DEFAULT 'x', dvb varbinary(9) DEFAULT 'abc')
"""
TEXT_ROWS = [
    "INSERT INTO texts (id, c, v, tt, t, mt, lt, b, vb, tb, bl, lb, e, s, j, l, u, cb, g, p, ls, po) VALUES ('1', 'c',"
    """ 'v ', 'täxt', 't "q" \\\\', 'm', 'l', 'bin', 'varbin', 'tb', 0x00ff, 'lb', 'it''s c', 'x,z',"""
    """ '{"b": 1, "a": [true, null, 1.50, "ü"]}', 'ü', 'ü', 'cb', ST_GeomFromText('POINT(1 2)'), POINT(1.5, -2),"""
    " ST_GeomFromText('LINESTRING(0 0,1 1)'), ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))'))",
    "INSERT INTO texts (id, e, s, vb, bl, v) VALUES ('2', 'a', '', '', '', '')",
    "INSERT INTO texts (id, de, dvb) VALUES ('3', NULL, NULL)",
]
SHOP = [
    "CREATE TABLE orders (id int PRIMARY KEY AUTO_INCREMENT, name varchar(50) NOT NULL, qty int)",
    "CREATE TABLE pairs (a int, b varchar(5), v int, PRIMARY KEY (b, a))",
    "CREATE TABLE keyless (a int, b varchar(5))",
    "CREATE TABLE uniq (a int NOT NULL, b varchar(5), UNIQUE (a))",
    "INSERT INTO orders (name, qty) VALUES ('one', 1), ('two', NULL)",
    "INSERT INTO pairs VALUES (1, 'a', 1), (2, 'b', 2)",
    "INSERT INTO keyless VALUES (1, 'a')",
]
CHANGES = [
    "INSERT INTO orders (name, qty) VALUES ('three', 3), ('four', 4)",
    "UPDATE orders SET qty = 10 WHERE id < 3",
    "UPDATE orders SET id = 100 WHERE id = 3",
    "DELETE FROM orders WHERE id = 2",
    "UPDATE pairs SET a = 7, v = 6 WHERE a = 1",
    "DELETE FROM pairs",
    "INSERT INTO keyless VALUES (2, 'b')",
    "UPDATE keyless SET b = 'c' WHERE a = 2",
    "DELETE FROM keyless WHERE a = 1",
    "INSERT INTO uniq VALUES (1, 'a')",
    "UPDATE uniq SET a = 2",
    "BEGIN; INSERT INTO orders (id, name) VALUES (200, 'in one'); UPDATE orders SET qty = 4 WHERE id = 200;"
    " INSERT INTO pairs VALUES (3, 'c', 3); DELETE FROM orders WHERE id = 200; COMMIT",
    "TRUNCATE TABLE orders",
]
SCHEMA_CHANGES = [
    "INSERT INTO t VALUES (1, 'a', 1)",
    "ALTER TABLE t ADD COLUMN more int DEFAULT 7 AFTER a",
    "INSERT INTO t VALUES (2, 'b', 2, 3)",
    "ALTER TABLE t DROP COLUMN b",
    "INSERT INTO t VALUES (3, 'c', 4)",
    "ALTER TABLE t CHANGE more less decimal(9,2)",
    "INSERT INTO t VALUES (4, 'd', 5.25)",
    "ALTER TABLE t MODIFY a varchar(30) NOT NULL, ADD INDEX (a), ADD e enum('p','q') DEFAULT 'q' FIRST",
    "INSERT INTO t (id, a, less) VALUES (5, 'e', 1)",
    "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a, id)",
    "INSERT INTO t (id, a, less) VALUES (6, 'f', 2)",
    "CREATE TABLE late (id int PRIMARY KEY, v varchar(10))",
    "INSERT INTO late VALUES (1, 'a')",
    "RENAME TABLE late TO later",
    "INSERT INTO later VALUES (2, 'b')",
    "CREATE TABLE copied LIKE t",
    "INSERT INTO copied (id, a) VALUES (1, 'a')",
    "TRUNCATE TABLE copied",
    "DROP TABLE later",
]


def modes(name: str, tables: Sequence[str], rows: Sequence[str], **config: str) -> Case:
    """Rows of all types, in the snapshot and streamed."""
    again = [
        each.replace("VALUES ('", "VALUES ('1", 1)
        if "VALUES ('" in each
        else each.replace("VALUES (", "VALUES (1", 1)
        for each in rows
    ]
    return Case(name, [*tables, *rows], again, {key.replace("_", "."): text for key, text in config.items()})


CASES = [
    modes("numbers", [NUMBERS], NUMBER_ROWS),
    modes("doubles", [NUMBERS], NUMBER_ROWS, decimal_handling_mode="double", bigint_unsigned_handling_mode="precise"),
    modes("strings", [NUMBERS], NUMBER_ROWS, decimal_handling_mode="string"),
    modes("times", [TIMES], TIME_ROWS),
    modes("times_connect", [TIMES], TIME_ROWS, time_precision_mode="connect"),
    modes("times_micro", [TIMES], TIME_ROWS, time_precision_mode="microseconds"),
    modes("times_iso", [TIMES], TIME_ROWS, time_precision_mode="isostring"),
    modes("texts", [TEXTS], TEXT_ROWS),
    modes("texts64", [TEXTS], TEXT_ROWS, binary_handling_mode="base64", column_propagate_source_type=".*"),
    modes("textshex", [TEXTS], TEXT_ROWS, binary_handling_mode="hex"),
    Case("shop", SHOP, CHANGES, {"skipped.operations": "none"}),
    Case("counted", SHOP, CHANGES[:-1], {"provide.transaction.metadata": "true", "tombstones.on.delete": "false"}),
    Case("masks", SHOP, CHANGES, {
        "column.mask.with.3.chars": r".*\.orders\.name", "column.mask.hash.SHA-256.with.salt.abc": r".*\.pairs\.b",
        "column.mask.hash.v2.SHA-256.with.salt.abc": r".*\.keyless\.b", "skipped.operations": "d",
    }),
    Case("changing", ["CREATE TABLE t (id int PRIMARY KEY, a varchar(10), b int)"], SCHEMA_CHANGES,
         {"include.schema.changes": "true"}),
    Case("nodata", SHOP, CHANGES, {"snapshot.mode": "no_data", "include.schema.changes": "true"}),
]  # fmt: skip
