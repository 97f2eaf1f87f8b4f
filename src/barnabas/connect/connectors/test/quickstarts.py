"""Made-up data by name: the topics of Confluent's quickstarts, a shop, drivers of a fleet.

Each entry is an Avro schema with hints for `avro_maker`, and the field that becomes the key.
"""

from __future__ import annotations

from typing import Any

CITIES = ["Berlin", "Lisbon", "Oslo", "Vienna", "Zurich"]
PRODUCTS = ["espresso", "filter", "cortado", "beans", "grinder", "kettle", "cups", "scale"]
T0_MS, T1_MS = 1_487_715_775_521, 1_519_273_364_600


def field(name: str, kind: str, **hints: Any) -> dict[str, Any]:
    return {"name": name, "type": {"type": kind, "arg.properties": hints} if hints else kind}


def times(name: str) -> dict[str, Any]:
    """Times that go on by one second with each row."""
    given = {
        "type": "long",
        "logicalType": "timestamp-millis",
        "arg.properties": {"iteration": {"start": 1_760_000_000_000, "step": 1000}},
    }
    return {"name": name, "type": given}


def counted(name: str, start: int = 1) -> dict[str, Any]:
    return field(name, "long", iteration={"start": start, "step": 1})


def between(name: str, kind: str, low: float, high: float) -> dict[str, Any]:
    return field(name, kind, range={"min": low, "max": high})


def record(name: str, *fields: Any, namespace: str = "ksql") -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": namespace, "fields": list(fields)}


ADDRESS = record(
    "address",
    field("city", "string", regex="City_[1-9]{0,1}[0-9]"),
    field("state", "string", regex="State_[1-9]{0,1}[0-9]"),
    between("zipcode", "long", 10_000, 99_999),
)
QUICKSTARTS: dict[str, tuple[dict[str, Any], str]] = {
    "users": (
        record(
            "users",
            between("registertime", "long", T0_MS, T1_MS),
            field("userid", "string", regex="User_[1-9]"),
            field("regionid", "string", regex="Region_[1-9]"),
            field("gender", "string", options=["MALE", "FEMALE", "OTHER"]),
        ),
        "userid",
    ),
    "pageviews": (
        record(
            "pageviews",
            field("viewtime", "long", iteration={"start": 1, "step": 10}),
            field("userid", "string", regex="User_[1-9]"),
            field("pageid", "string", regex="Page_[1-9][0-9]?"),
        ),
        "viewtime",
    ),
    "orders": (
        record(
            "orders",
            field("ordertime", "long", range={"min": T0_MS, "max": T1_MS}),
            field("orderid", "int", iteration={"start": 0, "step": 1}),
            field("itemid", "string", regex="Item_[1-9][0-9]{0,2}"),
            between("orderunits", "double", 0.1, 10.0),
            {"name": "address", "type": ADDRESS},
        ),
        "orderid",
    ),
    "ratings": (
        record(
            "ratings",
            counted("rating_id"),
            between("user_id", "int", 1, 20),
            between("stars", "int", 1, 6),
            between("route_id", "int", 1, 10_000),
            field("rating_time", "long", iteration={"start": 1, "step": 12}),
            field("channel", "string", options=["web", "ios", "android", "ios-test"]),
            field("message", "string", options=["clean and quick", "late again", "friendly crew", "no seat"]),
        ),
        "rating_id",
    ),
    "stock_trades": (
        record(
            "StockTrade",
            field("side", "string", options=["BUY", "SELL"]),
            between("quantity", "int", 1, 5000),
            field("symbol", "string", options=["ZVV", "ZVZZT", "ZXZZT", "ZJZZT", "ZWZZT"]),
            between("price", "int", 5, 1000),
            field("account", "string", regex="[A-C][A-Z]{2}[0-9]{3}"),
            field("userid", "string", regex="User_[1-9]"),
        ),
        "symbol",
    ),
    "inventory": (
        record(
            "inventory",
            counted("id"),
            between("quantity", "int", 1, 150),
            field("productid", "string", regex="Product_[1-9][0-9]?"),
        ),
        "id",
    ),
    "transactions": (
        record(
            "transactions",
            counted("transaction_id"),
            field("card_id", "string", regex="[0-9]{16}"),
            field("user_id", "string", regex="User_[1-9]"),
            between("purchase_id", "long", 0, 1_000_000),
            between("store_id", "int", 1, 8),
        ),
        "transaction_id",
    ),
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
