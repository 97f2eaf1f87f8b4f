"""Made-up data by name: a shop, drivers of a fleet, and all of Confluent's quickstarts.

Each entry is an Avro schema with hints for `avro_maker`, and the field that becomes the key.
"""

from __future__ import annotations

from typing import Any

from barnabas.connect.connectors.test.confluent_quickstarts import CONFLUENT
from barnabas.connect.connectors.test.rows import between, counted, field, record, times

CITIES = ["Berlin", "Lisbon", "Oslo", "Vienna", "Zurich"]
PRODUCTS = ["espresso", "filter", "cortado", "beans", "grinder", "kettle", "cups", "scale"]

OWN: dict[str, tuple[dict[str, Any], str]] = {
    "shop_customers": (
        record(
            "Customer",
            counted("id"),
            field("name", "string", options=["Ada", "Bela", "Cleo", "Dora", "Edin", "Fay", "Gil", "Hana"]),
            field("email", "string", regex="customer[1-9][0-9]{0,2}@example[.]com"),
            field("country", "string", options=["AT", "CH", "DE", "NO", "PT"]),
            namespace="shop",
        ),
        "id",
    ),
    "shop_orders": (
        record(
            "Order",
            field("order_id", "string", regex="o[0-9a-f]{12}"),
            between("customer_id", "long", 1, 201),
            field("shop", "string", options=[each.lower() for each in CITIES]),
            field("product", "string", options=PRODUCTS),
            between("amount", "double", 2.0, 350.0),
            times("at"),
            namespace="shop",
        ),
        "order_id",
    ),
    "shop_payments": (
        record(
            "Payment",
            field("payment_id", "string", regex="p[0-9a-f]{12}"),
            field("order_id", "string", regex="o[0-9a-f]{12}"),
            field("card", "string", regex="4[0-9]{15}"),
            field("country", "string", options=["AT", "CH", "DE", "NO", "PT", "XX"]),
            between("amount", "double", 2.0, 350.0),
            times("at"),
            namespace="shop",
        ),
        "payment_id",
    ),
    "shop_page_views": (
        record(
            "PageView",
            field("view_id", "string", regex="v[0-9a-f]{12}"),
            between("customer_id", "long", 1, 201),
            field("product", "string", options=PRODUCTS),
            field("channel", "string", options=["search", "newsletter", "direct", "shared link"]),
            times("at"),
            namespace="shop",
        ),
        "view_id",
    ),
    "drivers": (
        record(
            "Driver",
            counted("driver_id"),
            field("name", "string", options=["Ada", "Bela", "Cleo", "Dora", "Edin", "Fay", "Gil", "Hana"]),
            field("license", "string", regex="[A-Z]{2}[0-9]{6}"),
            field("city", "string", options=CITIES),
            between("rating", "double", 1.0, 5.0),
            times("updated_at"),
            namespace="fleet",
        ),
        "driver_id",
    ),
}
QUICKSTARTS = {**CONFLUENT, **OWN}
