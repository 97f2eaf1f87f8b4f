"""Confluent's quickstarts of made-up data: its names, fields and types, with values of our own.

Each entry is an Avro schema with hints for `avro_maker`, and the field that becomes the key. Quickstarts that
belong together share their numbers (customers 1 to 40, shoes 1 to 12 …), so that their topics can be joined.
"""

from __future__ import annotations

from typing import Any

from barnabas.connect.connectors.test.confluent_industries import INDUSTRIES
from barnabas.connect.connectors.test.people import ADDRESSES, FIRST, LAST, STATES, TOWNS
from barnabas.connect.connectors.test.rows import (
    T0_MS,
    T1_MS,
    between,
    chosen,
    counted,
    field,
    record,
    rows_of,
)

PAGES = ["/", "/menu", "/menu/espresso", "/cart", "/login", "/images/logo.png"]
USER = (
    between("registertime", "long", T0_MS, T1_MS),
    field("userid", "string", regex="User_[1-9]"),
    field("regionid", "string", regex="Region_[1-9]"),
    chosen("gender", "MALE", "FEMALE", "OTHER"),
)
PLACE = record(
    "address",
    field("city", "string", regex="City_[1-9]{0,2}"),
    field("state", "string", regex="State_[1-9]{0,2}"),
    between("zipcode", "long", 10_000, 99_999),
)
CONTACTS = [
    {"phone": f"00{number}55512{number}", "city": town, "state": state, "zipcode": f"{number}0{number}0"}
    for number, (town, state) in enumerate(zip(TOWNS, STATES, strict=True), 1)
]
CLASSIC: dict[str, tuple[dict[str, Any], str]] = {
    "clickstream_codes": (
        rows_of(
            record("codes", field("code", "int"), field("definition", "string"), namespace="clickstream"),
            [
                {"code": 200, "definition": "OK"},
                {"code": 302, "definition": "Found"},
                {"code": 404, "definition": "Not Found"},
                {"code": 405, "definition": "Method Not Allowed"},
                {"code": 406, "definition": "Not Acceptable"},
                {"code": 407, "definition": "Proxy Authentication Required"},
            ],
        ),
        "code",
    ),
    "clickstream": (
        record(
            "events",
            chosen("ip", *ADDRESSES),
            between("userid", "int", 1, 41),
            chosen("remote_user", "-"),
            field("time", "string", iteration={"start": 1, "step": 10}),
            field("_time", "long", iteration={"start": 1, "step": 10}),
            chosen("request", *(f"GET {page} HTTP/1.1" for page in PAGES)),
            chosen("status", "200", "302", "404", "405", "406", "407"),
            chosen("bytes", "312", "1024", "2048", "4096", "15000"),
            chosen("referrer", "-"),
            chosen("agent", "Mozilla/5.0 (X11; Linux x86_64)", "curl/8.5.0"),
            namespace="clickstream",
        ),
        "ip",
    ),
    "clickstream_users": (
        record(
            "users",
            field("user_id", "int", iteration={"start": 1}),
            chosen("username", *(f"{first.lower()}_{number}" for number, first in enumerate(FIRST))),
            between("registered_at", "long", T0_MS, T1_MS),
            chosen("first_name", *FIRST),
            chosen("last_name", *LAST),
            chosen("city", *TOWNS),
            chosen("level", "Gold", "Silver", "Platinum"),
            namespace="clickstream",
        ),
        "user_id",
    ),
    "orders": (
        record(
            "orders",
            between("ordertime", "long", T0_MS, T1_MS),
            field("orderid", "int", iteration={"start": 0}),
            field("itemid", "string", regex="Item_[1-9][0-9]{0,2}"),
            between("orderunits", "double", 0.1, 10.0),
            {"name": "address", "type": PLACE},
        ),
        "orderid",
    ),
    "ratings": (
        record(
            "ratings",
            counted("rating_id"),
            between("user_id", "int", -1, 20),
            between("stars", "int", 1, 5),
            between("route_id", "int", 1, 9999),
            field("rating_time", "long", iteration={"start": 1, "step": 12}),
            chosen("channel", "web", "iOS", "ios", "iOS-test", "android"),
            chosen("message", "clean and quick", "late again", "friendly crew", "no seat"),
        ),
        "rating_id",
    ),
    "users": (record("users", *USER), "userid"),
    "users_": (
        record(
            "users",
            *USER,
            {
                "name": "interests",
                "type": {"type": "array", "items": "string"},
                "arg.properties": {"options": [["News", "Music"], ["Music", "Sport"], ["News", "Books"]]},
            },
            {
                "name": "contactinfo",
                "type": {"type": "map", "values": "string"},
                "arg.properties": {"options": CONTACTS},
            },
        ),
        "userid",
    ),
    "pageviews": (
        record(
            "pageviews",
            field("viewtime", "long", iteration={"start": 1, "step": 10}),
            field("userid", "string", regex="User_[1-9]"),
            field("pageid", "string", regex="Page_[1-9][0-9]"),
        ),
        "viewtime",
    ),
    "stock_trades": (
        record(
            "StockTrade",
            chosen("side", "BUY", "SELL"),
            between("quantity", "int", 1, 5000),
            chosen("symbol", "ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT"),
            between("price", "int", 5, 1000),
            chosen("account", "ABC123", "LMN456", "XYZ789"),
            field("userid", "string", regex="User_[1-9]"),
        ),
        "symbol",
    ),
    "inventory": (
        record("inventory", *(field(name, "long", iteration={"start": 0}) for name in
                              ("id", "quantity", "productid"))),
        "id",
    ),
    "product": (
        record(
            "product",
            field("id", "long", iteration={"start": 0}),
            field("name", "string", iteration={"start": 0}),
            field("description", "string", iteration={"start": 0}),
            field("price", "double", iteration={"start": 0}),
        ),
        "id",
    ),
    "purchases": (
        record(
            "purchase",
            field("id", "long", iteration={"start": 0}),
            chosen("item_type", "boots", "chair", "clock", "kettle", "lamp", "scarf", "table", "vase"),
            between("quantity", "long", 1, 10),
            {
                "name": "price_per_unit",
                "type": {
                    "type": "bytes",
                    "logicalType": "decimal",
                    "precision": 4,
                    "scale": 2,
                    "arg.properties": {"range": {"min": 10.0, "max": 50.0}},
                },
            },
            namespace="datagen.example",
        ),
        "id",
    ),
    "transactions": (
        record(
            "transactions",
            counted("transaction_id"),
            between("card_id", "long", 1, 24),
            field("user_id", "string", regex="User_[1-9]{0,1}"),
            counted("purchase_id", 0),
            between("store_id", "int", 1, 7),
            namespace="datagen.example",
        ),
        "transaction_id",
    ),
    "stores": (
        rows_of(
            record("stores", field("store_id", "int"), field("city", "string"), field("state", "string"),
                   namespace="datagen.example"),
            [
                {"store_id": number, "city": town, "state": state}
                for number, (town, state) in enumerate(zip(TOWNS, STATES, strict=True), 1)
            ],
        ),
        "store_id",
    ),
    "credit_cards": (
        rows_of(
            record("users", field("card_id", "int"), field("card_number", "long"), field("cvv", "int"),
                   field("expiration_date", "string"), namespace="datagen.example"),
            [
                {
                    "card_id": number,
                    "card_number": 4_000_000_000_000_000 + number * 7_919_317,
                    "cvv": 100 + number * 37 % 900,
                    "expiration_date": f"{number % 12 + 1:02}/{27 + number % 5}",
                }
                for number in range(1, 25)
            ],
        ),
        "card_id",
    ),
    "campaign_finance": (
        record(
            "campaign_finance",
            between("time", "long", T0_MS, T1_MS),
            field("candidate_id", "string", regex="[A-Z][1-9]{8,8}"),
            chosen("party_affiliation", "REP", "DEM", "IND"),
            between("contribution", "int", 20, 3500),
            namespace="datagen",
        ),
        "candidate_id",
    ),
}  # fmt: skip
CONFLUENT = {**CLASSIC, **INDUSTRIES}
