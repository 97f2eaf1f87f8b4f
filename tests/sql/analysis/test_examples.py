"""The examples that ksqlDB's users begin with, on data of our own."""

from __future__ import annotations

import pytest

from barnabas.sql.testing import SqlTestDriver

RIDERS = """
CREATE STREAM rides (rider VARCHAR, lat DOUBLE, lon DOUBLE)
  WITH (KAFKA_TOPIC='rides', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE here AS
  SELECT rider, LATEST_BY_OFFSET(lat) AS lat, LATEST_BY_OFFSET(lon) AS lon FROM rides GROUP BY rider
  EMIT CHANGES;
CREATE TABLE near AS
  SELECT ROUND(GEO_DISTANCE(lat, lon, 46.95, 7.45), -1) AS km, COLLECT_LIST(rider) AS riders, COUNT(*) AS n
  FROM here GROUP BY ROUND(GEO_DISTANCE(lat, lon, 46.95, 7.45), -1);
"""


def test_riders_near_a_place() -> None:
    driver = SqlTestDriver(RIDERS)
    close = driver.push(
        "SELECT rider FROM rides WHERE GEO_DISTANCE(lat, lon, 46.95, 7.45) <= 5 EMIT CHANGES;"
    )
    for rider, lat, lon in (("ann", 46.96, 7.46), ("bob", 47.37, 8.54), ("cid", 46.94, 7.44)):
        driver.run(f"INSERT INTO rides (rider, lat, lon) VALUES ('{rider}', {lat}, {lon});")
    assert close.read() == [["ann"], ["cid"]]
    assert driver.table("NEAR") == {
        (0.0,): {"RIDERS": ["ann", "cid"], "N": 2},
        (90.0,): {"RIDERS": ["bob"], "N": 1},
    }
    driver.run("INSERT INTO rides (rider, lat, lon) VALUES ('bob', 46.95, 7.45);")
    assert driver.pull("SELECT km, n FROM near WHERE km <= 10;") == [[0.0, 3]]
    assert driver.pull("SELECT * FROM near WHERE km = 90;") == [[90.0, [], 0]]
    assert driver.pull("SELECT rider, lat FROM here WHERE rider IN ('ann', 'zoe');") == [["ann", 46.96]]


def test_page_views_enriched_with_users() -> None:
    driver = SqlTestDriver(
        """
        CREATE STREAM views (user VARCHAR KEY, page VARCHAR) WITH (KAFKA_TOPIC='v', PARTITIONS=1);
        CREATE TABLE users (user VARCHAR PRIMARY KEY, gender VARCHAR, region VARCHAR)
          WITH (KAFKA_TOPIC='u', PARTITIONS=1);
        CREATE STREAM enriched WITH (KEY_FORMAT='JSON') AS
          SELECT users.user AS user, page, region, gender
          FROM views LEFT JOIN users ON views.user = users.user;
        CREATE STREAM from_bern AS SELECT user, page FROM enriched WHERE region LIKE '%_bern';
        CREATE TABLE per_region AS
          SELECT gender, region, COUNT(*) AS n FROM enriched WINDOW TUMBLING (SIZE 30 SECONDS)
          GROUP BY gender, region HAVING COUNT(*) > 1;
        """
    )
    driver.pipe("USERS", {"USER": "ann", "GENDER": "F", "REGION": "be_bern"}, timestamp=0)
    driver.pipe("VIEWS", {"USER": "ann", "PAGE": "home"}, timestamp=1000)
    driver.pipe("VIEWS", {"USER": "bob", "PAGE": "home"}, timestamp=2000)
    driver.pipe("VIEWS", {"USER": "ann", "PAGE": "shop"}, timestamp=3000)
    assert driver.values("ENRICHED") == [
        {"USER": "ann", "PAGE": "home", "REGION": "be_bern", "GENDER": "F"},
        {"USER": "bob", "PAGE": "home", "REGION": None, "GENDER": None},
        {"USER": "ann", "PAGE": "shop", "REGION": "be_bern", "GENDER": "F"},
    ]
    assert driver.values("FROM_BERN") == [{"USER": "ann", "PAGE": "home"}, {"USER": "ann", "PAGE": "shop"}]
    assert driver.table("PER_REGION") == {(("F", "be_bern"), 0, 30_000): {"N": 2}}


def test_possible_fraud_by_windows() -> None:
    driver = SqlTestDriver(
        """
        CREATE STREAM payments (tx VARCHAR KEY, card VARCHAR, amount DECIMAL(9, 2), made TIMESTAMP)
          WITH (KAFKA_TOPIC='p', VALUE_FORMAT='JSON', TIMESTAMP='made', PARTITIONS=1);
        CREATE TABLE possible_fraud AS
          SELECT card, AS_VALUE(card) AS number, COUNT(*) AS attempts, SUM(amount) AS total,
                 COLLECT_LIST(tx) AS txs, WINDOWSTART AS opened, WINDOWEND AS closed
          FROM payments WINDOW TUMBLING (SIZE 30 SECONDS, GRACE PERIOD 10 SECONDS)
          GROUP BY card HAVING COUNT(*) >= 3;
        """
    )
    for number, second in enumerate((0, 5, 9, 40)):
        driver.run(f"INSERT INTO payments VALUES ('t{number}', '77', 10.50, '2024-01-01T00:00:{second:02}');")
    start = 1_704_067_200_000
    assert driver.table("POSSIBLE_FRAUD") == {
        (("77",), start, start + 30_000): {
            "NUMBER": "77",
            "ATTEMPTS": 3,
            "TOTAL": pytest.approx(31.50),
            "TXS": ["t0", "t1", "t2"],
            "OPENED": start,
            "CLOSED": start + 30_000,
        }
    }


def test_a_materialized_cache_of_calls() -> None:
    driver = SqlTestDriver(
        """
        CREATE STREAM calls (name VARCHAR, reason VARCHAR, seconds INT)
          WITH (KAFKA_TOPIC='c', VALUE_FORMAT='JSON', PARTITIONS=1);
        CREATE TABLE support AS
          SELECT name, COUNT_DISTINCT(reason) AS reasons, LATEST_BY_OFFSET(reason) AS last_reason
          FROM calls GROUP BY name;
        CREATE TABLE lifetime AS
          SELECT name, COUNT(reason) AS total, (SUM(seconds) / 60) AS minutes FROM calls GROUP BY name;
        """
    )
    for name, reason, seconds in (("m", "purchase", 540), ("d", "help", 224), ("m", "help", 800)):
        driver.run(f"INSERT INTO calls VALUES ('{name}', '{reason}', {seconds});")
    assert driver.pull("SELECT name, reasons, last_reason FROM support WHERE name = 'm';") == [
        ["m", 2, "help"]
    ]
    assert driver.pull("SELECT name, total, minutes FROM lifetime WHERE name = 'm';") == [["m", 2, 22]]


def test_an_event_driven_service_for_unusual_activity() -> None:
    driver = SqlTestDriver(
        """
        CREATE TYPE person AS STRUCT<first VARCHAR, email VARCHAR>;
        CREATE STREAM transactions (tx VARCHAR, who person, card VARCHAR, amount DECIMAL(5, 2))
          WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);
        CREATE TABLE suspicious AS
          SELECT who->email AS email, LATEST_BY_OFFSET(who->first) AS first, COUNT(*) AS n,
                 COLLECT_LIST(tx) AS txs, SUM(amount) AS total
          FROM transactions WINDOW TUMBLING (SIZE 1 DAY) GROUP BY who->email HAVING COUNT(*) > 1;
        """
    )
    for tx in ("a", "b"):
        driver.run(
            f"INSERT INTO transactions VALUES ('{tx}', STRUCT(first := 'Ann', email := 'a@x'), '4', 10.25);"
        )
    [row] = driver.table("SUSPICIOUS").values()
    assert row == {"FIRST": "Ann", "N": 2, "TXS": ["a", "b"], "TOTAL": pytest.approx(20.50)}


def test_errors_a_minute_possible_fraud_and_views_per_region_of_the_courses() -> None:
    driver = SqlTestDriver(
        """
        CREATE STREAM log (line VARCHAR) WITH (KAFKA_TOPIC='log', VALUE_FORMAT='DELIMITED', PARTITIONS=1);
        CREATE TABLE errors AS
          SELECT SPLIT(line, ' ')[2] AS service, COUNT(*) AS n
          FROM log WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 0 SECONDS)
          WHERE SPLIT(line, ' ')[1] = 'ERROR' GROUP BY SPLIT(line, ' ')[2] EMIT FINAL;
        CREATE STREAM orders (id VARCHAR KEY, account VARCHAR, amount INT)
          WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=1);
        CREATE STREAM logins (account VARCHAR KEY, country VARCHAR)
          WITH (KAFKA_TOPIC='logins', VALUE_FORMAT='JSON', PARTITIONS=1);
        CREATE STREAM fraud AS
          SELECT o.account AS account, o.id, country, amount FROM orders o
          JOIN logins l WITHIN 5 MINUTES GRACE PERIOD 1 MINUTE ON o.account = l.account
          WHERE amount > 1000 AND country <> 'CH';
        """
    )
    for second, line in ((1, "ERROR web x"), (5, "INFO web y"), (59, "ERROR web z"), (61, "ERROR db q")):
        driver.pipe("LOG", {"LINE": line}, timestamp=second * 1000)
    assert driver.table("ERRORS") == {(("web",), 0, 60_000): {"N": 2}}
    driver.pipe("LOGINS", {"ACCOUNT": "a", "COUNTRY": "XX"}, timestamp=0)
    driver.pipe("ORDERS", {"ID": "1", "ACCOUNT": "a", "AMOUNT": 5000}, timestamp=60_000)
    driver.pipe("ORDERS", {"ID": "2", "ACCOUNT": "a", "AMOUNT": 5000}, timestamp=400_000)
    driver.pipe("ORDERS", {"ID": "3", "ACCOUNT": "a", "AMOUNT": 5}, timestamp=60_000)
    assert driver.values("FRAUD") == [{"ACCOUNT": "a", "ID": "1", "COUNTRY": "XX", "AMOUNT": 5000}]
