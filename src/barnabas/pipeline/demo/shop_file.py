"""The demo's pipeline, which is also the worked example of docs/pipelines.md (examples/shop/pipeline.yaml).

Three speeds in one file: fraud alerts in real time, recommendations near real time, a warehouse load in
batch. Addresses and passwords come from the environment.
"""

TEXT = """\
# A coffee shop: fraud alerts in real time, recommendations near real time, a warehouse load in batch.
name: shop
lake: ./lake

sources:
  payments:                                   # real time: a payment is judged as it comes
    topic: {bootstrap.servers: "${env:SHOP_BROKER}", subscribe: payments}
    format: json
    schema: "payment_id STRING, order_id STRING, card STRING, country STRING, amount DOUBLE, at TIMESTAMP"
    frequency: real_time
    event_time: at
    lateness: 10 minutes
  page_views:                                 # near real time: what people look at, every few seconds
    topic: {bootstrap.servers: "${env:SHOP_BROKER}", subscribe: page_views}
    format: json
    schema: "view_id STRING, customer_id BIGINT, product STRING, channel STRING, at TIMESTAMP"
    frequency: {near_real_time: 5 seconds}
    event_time: at
    lateness: 10 minutes
  orders:
    topic: {bootstrap.servers: "${env:SHOP_BROKER}", subscribe: orders}
    format: json
    schema: "order_id STRING, customer_id BIGINT, shop STRING, product STRING, amount DOUBLE, at TIMESTAMP"
    frequency: {near_real_time: 5 seconds}
    event_time: at
    lateness: 10 minutes
  customers:                                  # batch: a small table of a database, as a whole
    table:
      url: "${env:SHOP_DATABASE}"
      table: customers
      user: ${env:SHOP_USER}
      password: ${env:SHOP_PASSWORD}
      mode: snapshot
    frequency: {batch: "* * * * *"}           # every minute here; "0 2 * * *" is every night at two

staging:                                      # parsed, typed, each key once
  payments: {source: payments, key: [payment_id], drift: rescue}
  page_views: {source: page_views, key: [view_id], drift: rescue}
  orders: {source: orders, key: [order_id], drift: rescue}
  customers: {source: customers, key: [id], drift: add}

trusted:                                      # rows that break a rule are quarantined, with the reason
  payments:
    from: payments
    rules:
      - {not_null: payment_id}
      - {range: {amount: [0, 10000]}}
      - {pattern: {card: "[0-9]{16}"}}
    mask: {card: last4}
  page_views:
    from: page_views
    rules:
      - {not_null: view_id}
      - {not_null: at}
  orders:
    from: orders
    rules:
      - {not_null: order_id}
      - {not_null: at}
      - {range: {amount: [0, 10000]}}
      - {pattern: {shop: "[a-z]+"}}
  customers:
    from: customers
    rules:
      - {not_null: id}
    hash: [email]

refined:
  suspicious:                                 # filled batch by batch, as payments come
    sql: >
      SELECT payment_id, order_id, card, country, amount, at FROM payments
      WHERE country = 'XX' OR amount > 300
  sales:                                      # the warehouse: orders with the country of their customer
    sql: >
      SELECT o.order_id, c.country, o.shop, o.product, o.amount, date(o.at) AS day
      FROM orders o JOIN customers c ON o.customer_id = c.id
    schedule: "* * * * *"

views:                                        # one SQL for both layers; measures say how results are merged
  fraud_alerts:
    from: refined.suspicious
    sql: >
      SELECT country, count(*) AS alerts, sum(amount) AS amount, max(amount) AS largest, max(at) AS last_seen
      FROM suspicious GROUP BY country
    keys: [country]
    measures: {alerts: count, amount: sum, largest: max, last_seen: max}
    batch: "*/5 * * * *"
  recommendations:
    from: trusted.page_views
    sql: >
      SELECT product, count(*) AS views, count(DISTINCT customer_id) AS people, max(at) AS last_seen
      FROM page_views GROUP BY product
    keys: [product]
    measures: {views: count, people: distinct, last_seen: max, views_each: "views / people"}
    batch: "*/5 * * * *"
  revenue:
    from: trusted.orders
    sql: >
      SELECT shop, count(*) AS orders, sum(amount) AS revenue, max(at) AS last_order
      FROM orders GROUP BY shop
    keys: [shop]
    measures: {orders: count, revenue: sum, last_order: max, mean: "revenue / orders"}
    batch: "*/5 * * * *"
  warehouse:
    from: refined.sales
    sql: >
      SELECT country, day, count(*) AS orders, sum(amount) AS revenue FROM sales GROUP BY country, day
    keys: [country, day]
    measures: {orders: count, revenue: sum}

serving: {store: duckdb, host: 127.0.0.1, port: 8088}
retention: {raw: 90 days, quarantine: 30 days}
maintenance: {compact: "0 3 * * *", vacuum: 7 days}
"""
