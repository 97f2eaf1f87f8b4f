"""The file: what is read, what is written again, and everything that is wrong with it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.engine.secrets import Secret, SecretError, scrubbed, unresolved
from barnabas.pipeline.file.checks import problems_of
from barnabas.pipeline.file.plan_costs import costs
from barnabas.pipeline.file.reading import FileProblems, pipeline_from, read_pipeline, read_text
from barnabas.pipeline.file.writing import document, to_yaml
from barnabas.pipeline.spec import durations
from barnabas.pipeline.spec.model import (
    Audit,
    FilesSource,
    Merging,
    Pace,
    Pipeline,
    RuleKind,
    TableSource,
    TopicSource,
)

GOOD = """
name: shop
lake: ./lake
spark: {master: "local[2]", settings: {spark.sql.shuffle.partitions: 4}}
sources:
  orders:
    topic: {bootstrap.servers: localhost:9092, subscribe: orders, settings: {kafka.client.rack: a}}
    schema: >-
      order_id STRING, shop STRING, customer_id BIGINT, amount DOUBLE, email STRING, card STRING, at TIMESTAMP
    event_time: at
    lateness: 10 minutes
    bandwidth: 10 MB/s
  customers:
    table:
      url: jdbc:postgresql://localhost/shop
      table: customers
      user: ${env:PGUSER}
      password: ${env:PGPASSWORD}
      mode: timestamp+incrementing
      incrementing: id
      timestamp: updated_at
      snapshot_below: 100
    schema: "id BIGINT, name STRING, updated_at TIMESTAMP"
    frequency: {batch: "*/5 * * * *"}
  photos:
    files: {path: /data/photos, kind: binary}
    frequency: {near_real_time: 1 minute}
staging:
  orders: {source: orders, key: [order_id], drift: add}
  customers: {key: id}
trusted:
  orders:
    from: orders
    rules:
      - {not_null: order_id}
      - {range: {amount: [0, 10000]}}
      - {pattern: {shop: "[a-z]+"}}
      - {unique: [order_id]}
      - {reference: {customer_id: customers.id}}
      - {expression: "amount * 2 > 1", name: positive}
      - {freshness: {at: 1 hour}}
    mask: {card: last4}
    hash: [email]
    salt: ${env:SALT}
  customers: {from: customers}
refined:
  daily: {sql: "SELECT shop, date(at) AS day, sum(amount) AS total FROM orders GROUP BY shop, date(at)"}
views:
  revenue:
    from: trusted.orders
    sql: "SELECT shop, count(*) AS orders, sum(amount) AS revenue FROM orders GROUP BY shop"
    keys: [shop]
    measures: {orders: count, revenue: sum}
    batch: "0 * * * *"
serving: {store: duckdb, port: 8090}
retention: {raw: 90 days}
maintenance: {compact: "0 3 * * *", vacuum: 7 days}
"""


def problems(text: str) -> dict[str, str]:
    """By `line name`, with message and hint."""
    with pytest.raises(FileProblems) as caught:
        read_text(text)
    return {f"{each.line} {each.path}": f"{each.message} ({each.hint})" for each in caught.value.problems}


def test_every_section_of_the_file_is_read() -> None:
    pipeline = read_text(GOOD, Path("/etc/pipelines/pipeline.yaml"))
    orders, customers, photos = pipeline.sources
    assert isinstance(orders, TopicSource) and isinstance(customers, TableSource)
    assert isinstance(photos, FilesSource)
    assert (orders.lateness_s, orders.bandwidth_bytes_s, orders.frequency.pace) == (600, 1e7, Pace.REAL_TIME)
    assert customers.password == Secret("${env:PGPASSWORD}") and customers.merging is Merging.UPSERT
    assert photos.frequency.interval_s == 60
    assert [rule.label for rule in pipeline.trusted[0].rules][:2] == ["not_null_order_id", "range_amount"]
    assert pipeline.lake_location.root == "/etc/pipelines/lake"
    assert pipeline.retention_s == {"raw": 90 * 86400.0}


def test_a_written_pipeline_reads_back_equal() -> None:
    pipeline = read_text(GOOD)
    again = pipeline_from(document(pipeline))
    assert document(again) == document(pipeline)
    assert again.sources == pipeline.sources and again.trusted == pipeline.trusted
    assert "${env:PGPASSWORD}" in to_yaml(pipeline)


def test_a_key_may_have_a_horizon() -> None:
    short = "orders: {source: orders, key: [order_id], drift: add}"
    within = short.replace("[order_id]", "{columns: [order_id], within: 7 days}")
    assert read_text(GOOD).staging[0].within_s is None
    found = read_text(GOOD.replace(short, within))
    assert (found.staging[0].key, found.staging[0].within_s) == (("order_id",), 7 * 86400.0)
    assert document(found)["staging"]["orders"]["key"] == {"columns": ["order_id"], "within": "7 days"}
    assert read_text(to_yaml(found)).staging == found.staging
    looks = [line for line in costs(found) if "staging." in line]
    assert len(looks) == 1 and "the last 7 days" in looks[0]
    assert "all keys of the table" in "".join(costs(read_text(GOOD)))
    for wrong, problem in (
        ("{within: 7 days}", "staging.orders.key.columns: is missing"),
        ("{columns: [order_id], within: soon}", "staging.orders.key.within"),
        ("{columns: [order_id], within: 0 days}", "staging.orders.key.within: is not longer than 0"),
        ("{columns: [order_id], until: 1 day}", "staging.orders.key.until"),
    ):
        with pytest.raises(FileProblems) as refused:
            read_text(GOOD.replace(short, short.replace("[order_id]", wrong)))
        assert problem in str(refused.value)
    changes = GOOD.replace("{key: id}", "{key: {columns: [id], within: 1 day}}")
    with pytest.raises(FileProblems, match=r"staging\.customers\.key\.within: has no meaning here"):
        read_text(changes)


def test_a_rule_unique_may_have_a_horizon() -> None:
    found = read_text(GOOD.replace("{unique: [order_id]}", "{unique: {columns: order_id, within: 7 days}}"))
    [rule] = [each for each in found.trusted[0].rules if each.kind is RuleKind.UNIQUE]
    assert (rule.columns, rule.within_s, rule.label) == (("order_id",), 7 * 86400.0, "unique_order_id")
    assert read_text(to_yaml(found)).trusted == found.trusted
    assert "values of the last 7 days" in "".join(costs(found))
    for wrong, problem in (
        ("{columns: [order_id], within: soon}", r"rules\[3\]: unique cannot be understood"),
        ("{within: 1 day}", r"rules\[3\]: unique cannot be understood"),
        ("{columns: [order_id], within: 0 days}", r"rules\[3\]\.unique\.within: is not longer than 0"),
    ):
        with pytest.raises(FileProblems, match=problem):
            read_text(GOOD.replace("{unique: [order_id]}", f"{{unique: {wrong}}}"))


@pytest.mark.parametrize(
    ("written", "audit"),
    [
        ("true", Audit(is_enabled=True)),
        ("false", Audit()),
        ("{}", Audit(is_enabled=True)),
        ("{topic: counts, bucket: 1 hour}", Audit(is_enabled=True, topic="counts", bucket_s=3600.0)),
    ],
)
def test_the_audit_is_a_switch_or_names(written: str, audit: Audit) -> None:
    found = read_text(f"{GOOD}\naudit: {written}\n")
    assert found.audit == audit and read_text(to_yaml(found)).audit == audit


def test_buckets_of_the_audit_divide_a_day() -> None:
    with pytest.raises(FileProblems, match=r"audit\.bucket: does not divide a day"):
        read_text(f"{GOOD}\naudit: {{bucket: 7 hours}}\n")
    with pytest.raises(FileProblems, match=r"audit: must be true or false"):
        read_text(f"{GOOD}\naudit: often\n")


def test_all_problems_are_listed_with_line_name_and_hint() -> None:
    found = problems(
        """name: shop
lake: ./lake
sorces: {}
sources:
  orders:
    topic: {bootstrap.servers: localhost:9092, subscribe: orders, startin: earliest}
    format: jsn
    schema: "order_id STRING, amount DOUBLE"
    frequency: {batch: "99 * * * *"}
    lateness: ten minutes
staging:
  orders: {source: ordrs, key: [order_id]}
  customers: {source: orders, key: [order]}
trusted:
  customers:
    from: customers
    rules:
      - {not_nul: id}
      - {range: {amount: [10, 1]}}
      - {pattern: {amount: "[a-z"}}
      - {reference: {amount: nowhere.id}}
      - {expression: "amout > 1"}
    mask: {amount: last}
serving: {port: 99999}
"""
    )
    assert found["3 sorces"] == "is unknown here (did you mean sources?)"
    assert found["6 sources.orders.topic.startin"] == "is unknown here (did you mean starting?)"
    assert found["7 sources.orders.format"] == "is 'jsn' (did you mean json?)"
    assert "not a cron expression" in found["9 sources.orders.frequency.batch"]
    assert "not a duration" in found["10 sources.orders.lateness"]
    assert found["12 staging.orders.source"] == "there is no source 'ordrs' (did you mean orders?)"
    assert "did you mean order_id?" in found["13 staging.customers.key"]
    assert found["18 trusted.customers.rules[0]"] == "is not a rule (did you mean not_null?)"
    assert "is empty" in found["19 trusted.customers.rules[1]"]
    assert "not a regular expression" in found["20 trusted.customers.rules[2]"]
    assert "no table 'nowhere'" in found["21 trusted.customers.rules[3]"]
    assert "did you mean amount?" in found["22 trusted.customers.rules[4]"]
    assert "no mask 'last'" in found["23 trusted.customers.mask.amount"]
    assert "from 0 to 65535" in found["24 serving.port"]


def test_secrets_in_the_file_are_refused() -> None:
    found = problems(
        """name: shop
lake: x
sources:
  t: {table: {url: "jdbc:mysql://me:hunter2@x/y", table: a, password: hunter2}}
  k: {topic: {bootstrap.servers: "a:1", subscribe: b, settings: {kafka.sasl.jaas.config: hunter2}}}
  e: {table: {url: "jdbc:sqlite:x", table: a, password: "${vault:x}"}}
serving: {store: "postgresql://me:hunter2@x/y"}
"""
    )
    assert set(found) == {
        "4 sources.t.table.password", "4 sources.t.table.url", "5 sources.k.topic.settings",
        "6 sources.e.table.password", "7 serving.store",
    }  # fmt: skip
    assert not any("hunter2" in message for message in found.values())


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "0 file"),
        ("- a\n- b", "1 file"),
        ("name: [1", "1 file"),
        ("name: a\nlake: b\nname: c\nsources: {}", "3 name"),
        ("name: a\nlake: b", "1 sources"),
        ("name: a\nlake: b\nsources:\n  x:\n    topc: {}", "5 sources.x.topc"),
        ("name: a\nlake: b\nsources: {x: 1}", "3 sources.x"),
    ],
)
def test_a_file_that_is_not_a_pipeline_is_refused_with_the_line(text: str, where: str) -> None:
    assert where in problems(text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileProblems, match=r"nothing\.yaml"):
        read_pipeline(tmp_path / "nothing.yaml")


def test_columns_of_sql_are_checked_where_they_are_declared() -> None:
    text = GOOD.replace("drift: add", "drift: rescue").replace("sum(amount) AS total", "sum(amuont) AS total")
    assert "did you mean amount?" in next(iter(problems(text).values()))


def test_python_values_are_checked_like_a_file() -> None:
    pipeline = Pipeline(name="shop", lake="x", sources=[FilesSource(name="a", path="/x", event_time="y")])
    assert problems_of(pipeline) == []
    wrong = Pipeline(name="1", lake="x", sources=[TopicSource(name="a", bootstrap_servers="x", lateness_s=1)])
    assert {each.path for each in problems_of(wrong)} == {
        "name", "sources.a.lateness", "sources.a.topic.bootstrap.servers", "sources.a.topic.subscribe",
    }  # fmt: skip


def test_a_secret_shows_itself_only_when_it_is_revealed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("hunter2\n")
    monkeypatch.setenv("WHO", "me")
    secret = Secret(f"${{env:WHO}}:${{file:{tmp_path}/password}}")
    assert secret.reveal() == "me:hunter2"
    assert "hunter2" not in f"{secret} {secret!r} {[secret]}" and f"{secret}" == "***"
    monkeypatch.delenv("WHO")
    with pytest.raises(SecretError, match="WHO is not set"):
        secret.reveal()
    assert unresolved(secret) == ["${env:WHO}: the environment variable WHO is not set"]
    assert (
        scrubbed("jdbc:mysql://me:hunter2@host/db?password=x") == "jdbc:mysql://me:***@host/db?password=***"
    )


@pytest.mark.parametrize(
    ("text", "value"), [("10 minutes", 600), ("1h 30m", 5400), ("90 days", 7_776_000), ("500 ms", 0.5)]
)
def test_durations_are_read_and_written(text: str, value: float) -> None:
    assert durations.seconds(text) == value
    assert durations.seconds(durations.duration_text(value)) == value


def test_rates_and_sizes() -> None:
    assert durations.bytes_per_second("60 KB/min") == 1000
    assert durations.size_bytes("1 KiB") == 1024
    for wrong in ("10", "10 MB", "0 B/s", "MB/s"):
        with pytest.raises(ValueError, match=r"is not a|too slow"):
            durations.bytes_per_second(wrong)
