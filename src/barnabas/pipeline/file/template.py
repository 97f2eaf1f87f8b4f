"""The file that `pipeline init` writes: small enough to read, complete enough to run."""

TEMPLATE = """\
# A pipeline: where data comes from, what is kept of it, and what is answered from it.
# `barnabas pipeline validate` checks this file, `plan` shows what a run would do, `run` does it.
name: shop
lake: ./lake                                  # raw, staging, trusted and refined tables, in Delta's format

sources:
  orders:
    topic: {bootstrap.servers: "localhost:9092", subscribe: orders}
    format: json
    schema: "order_id STRING, shop STRING, amount DOUBLE, at TIMESTAMP"
    frequency: real_time                      # or {near_real_time: 1 minute}, {batch: "0 2 * * *"}
    event_time: at
    lateness: 10 minutes

staging:                                      # parsed, typed, each key once
  orders: {source: orders, key: [order_id], drift: rescue}

trusted:                                      # rows that break a rule go to quarantine with the reason
  orders:
    from: orders
    rules:
      - {not_null: order_id}
      - {range: {amount: [0, 10000]}}

views:                                        # one SQL for both layers, batch and speed
  revenue:
    from: trusted.orders
    sql: SELECT shop, count(*) AS orders, sum(amount) AS revenue FROM orders GROUP BY shop
    keys: [shop]
    measures: {orders: count, revenue: sum}
    batch: "0 * * * *"

serving: {store: duckdb, host: 127.0.0.1, port: 8088}
"""
