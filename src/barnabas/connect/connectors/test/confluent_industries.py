"""Confluent's quickstarts of fleets, pizza shops, insurers, games, payrolls, logs and shoe shops: its names,
fields and types, with values of our own.
"""

from __future__ import annotations

from typing import Any

from barnabas.connect.connectors.test.people import ADDRESSES, BUYER_IDS, PEOPLE, SHOE_IDS, STATES, mail_of
from barnabas.connect.connectors.test.rows import between, chosen, days, field, moments, record, rows_of

PIZZA = (between("store_id", "int", 1, 10),)
LINE = record(
    "order_line",
    between("product_id", "int", 1, 100),
    chosen("category", "pizza", "calzone", "salad", "dessert", "wings"),
    between("quantity", "int", 1, 6),
    between("unit_price", "double", 2, 25),
    between("net_price", "double", 2, 125),
    namespace="pizza_orders",
)
END_POINT = (chosen("ip", *ADDRESSES), between("port", "int", 10_000, 65_536))


def pizza_order(name: str, status: str, start: int, step: int, *more: Any) -> dict[str, Any]:
    number = field("store_order_id", "int", iteration={"start": start, "step": step})
    return record(
        name, *PIZZA, number, days("date"), chosen("status", status), *more, namespace="pizza_orders"
    )


INDUSTRIES: dict[str, tuple[dict[str, Any], str]] = {
    "fleet_mgmt_description": (
        record(
            "fleet_mgmt_description",
            between("vehicle_id", "int", 1000, 9999),
            chosen("driver_name", *(" ".join(each) for each in PEOPLE)),
            field("license_plate", "string", regex=r"[A-Z]{2}\d{6}[A-Z]"),
            namespace="fleet_mgmt",
        ),
        "vehicle_id",
    ),
    "fleet_mgmt_location": (
        record(
            "fleet_mgmt_location",
            between("vehicle_id", "int", 1000, 9999),
            {
                "name": "location",
                "type": record("location", between("latitude", "double", 46, 48),
                               between("longitude", "double", 6, 10), namespace="fleet_mgmt"),
            },
            moments("ts", 100_000),
            namespace="fleet_mgmt",
        ),
        "vehicle_id",
    ),
    "fleet_mgmt_sensors": (
        record(
            "fleet_mgmt_sensors",
            between("vehicle_id", "int", 1000, 9999),
            between("engine_temperature", "int", 150, 250),
            between("average_rpm", "int", 1800, 5000),
            namespace="fleet_mgmt",
        ),
        "vehicle_id",
    ),
    "pizza_orders": (
        record(
            "pizza_orders",
            *PIZZA,
            field("store_order_id", "int", iteration={"start": 1000}),
            between("coupon_code", "int", 1000, 2000),
            days("date"),
            chosen("status", "accepted"),
            {
                "name": "order_lines",
                "type": {"type": "array", "items": LINE, "arg.properties": {"length": {"min": 1, "max": 5}}},
            },
            namespace="pizza_orders",
        ),
        "store_id",
    ),
    "pizza_orders_completed": (
        pizza_order("pizza_orders_completed", "completed", 1000, 2,
                    between("rack_time_secs", "int", 130, 230),
                    between("order_delivery_time_secs", "int", 1100, 2000)),
        "store_id",
    ),
    "pizza_orders_cancelled": (pizza_order("pizza_orders_cancelled", "cancelled", 1001, 2), "store_id"),
    "insurance_offers": (
        rows_of(
            record("insurance_offers", field("offer_id", "int"), field("offer_name", "string"),
                   field("offer_url", "string"), namespace="insurance"),
            [
                {"offer_id": number, "offer_name": name, "offer_url": f"https://example.com/offers/{number}"}
                for number, name in enumerate(("new_driver", "two_cars", "house_and_car", "long_stay"), 1)
            ],
        ),
        "offer_id",
    ),
    "insurance_customers": (
        rows_of(
            record("insurance_customers", field("customer_id", "int"), field("first_name", "string"),
                   field("last_name", "string"), field("email", "string"), field("gender", "string"),
                   field("income", "int"), field("fico", "int"), field("years_active", "int"),
                   namespace="insurance"),
            [
                {
                    "customer_id": number + 1,
                    "first_name": first,
                    "last_name": last,
                    "email": mail_of(number),
                    "gender": ("Female", "Male")[number % 2],
                    "income": 25_000 + number * 7919 % 90_000,
                    "fico": 400 + number * 37 % 400,
                    "years_active": number % 12,
                }
                for number, (first, last) in enumerate(PEOPLE)
            ],
        ),
        "customer_id",
    ),
    "insurance_customer_activity": (
        record(
            "insurance_customer_activity",
            field("activity_id", "int", iteration={"start": 1}),
            between("customer_id", "int", 1, 41),
            chosen("activity_type", "web_open", "mobile_open", "new_account"),
            between("propensity_to_churn", "double", 0.01, 1),
            chosen("ip_address", *ADDRESSES),
            namespace="insurance",
        ),
        "activity_id",
    ),
    "gaming_games": (
        record(
            "gaming_games",
            between("id", "int", 1000, 5000),
            chosen("room_name", "Arcade -- Rookie", "Arcade -- Expert", "Chess -- Open", "Racing -- Night"),
            moments("created_date", 100_000),
            namespace="gaming",
        ),
        "id",
    ),
    "gaming_players": (
        rows_of(
            record("gaming_players", field("player_id", "int"), field("player_name", "string"),
                   field("ip", "string"), namespace="gaming"),
            [
                {"player_id": 1001 + number, "player_name": " ".join(PEOPLE[number]), "ip": address}
                for number, address in enumerate(ADDRESSES)
            ],
        ),
        "player_id",
    ),
    "gaming_player_activity": (
        record(
            "gaming_player_activity",
            between("player_id", "int", 1001, 1041),
            between("game_room_id", "int", 1000, 5000),
            between("points", "int", 10, 500),
            field("coordinates", "string", regex=r"\[[0-9][0-9],[0-9][0-9]\]"),
            namespace="gaming",
        ),
        "player_id",
    ),
    "payroll_employee": (
        rows_of(
            record("payroll_employee", field("employee_id", "int"), field("first_name", "string"),
                   field("last_name", "string"), field("age", "int"), field("ssn", "string"),
                   field("hourly_rate", "int"), field("gender", "string"), field("email", "string"),
                   namespace="payroll"),
            [
                {
                    "employee_id": 1000 + number,
                    "first_name": first,
                    "last_name": last,
                    "age": 18 + number * 13 % 48,
                    "ssn": f"900-{number + 10}-{number * 313 % 9000 + 1000}",
                    "hourly_rate": 12 + number % 30,
                    "gender": ("Female", "Male")[number % 2],
                    "email": mail_of(number),
                }
                for number, (first, last) in enumerate(PEOPLE)
            ],
        ),
        "employee_id",
    ),
    "payroll_employee_location": (
        record(
            "payroll_employee_location",
            between("employee_id", "int", 1000, 1040),
            field("lab", "string", regex=r"lab-\d{1}"),
            between("department_id", "int", 1, 10),
            days("arrival_date"),
            namespace="payroll",
        ),
        "employee_id",
    ),
    "payroll_bonus": (
        record(
            "payroll_bonus",
            between("employee_id", "int", 1000, 1040),
            between("bonus", "int", 10, 50),
            moments("ts", 60_000),
            namespace="payroll",
        ),
        "employee_id",
    ),
    "syslog_logs": (
        record(
            "syslog_logs",
            field("name", "string", regex="[a-zA-Z]{5,8}"),
            chosen("type", "RFC5424", "RFC3164", "CEF", "UNKNOWN"),
            field("message", "string", regex="[a-z ]{10,15}"),
            chosen("host", *ADDRESSES[:4]),
            chosen("version", "4.2.0"),
            chosen("tag", ".source.s_src"),
            between("level", "int", 0, 191),
            chosen("facility", "syslog", "authpriv", "cron"),
            between("severity", "int", 0, 8),
            field("appName", "string", regex="[A-Z]{5,8}"),
            chosen("remoteAddress", *ADDRESSES),
            field("rawMessage", "string", regex="[a-z ]{10,15}"),
            field("processId", "string", regex="[1-9]{1}[0-9]{6}"),
            field("messageId", "string", regex="[1-9]{1}[0-9]{2}"),
            field("deviceVendor", "string", regex="[a-z]{5}"),
            field("deviceProduct", "string", regex="[a-z]{5}"),
            chosen("deviceVersion", "1.0", "2.0", "3.0"),
            field("ts", "long", iteration={"start": 1_760_000_000_000, "step": 100}),
            namespace="syslogs",
        ),
        "host",
    ),
    "device_information": (
        record(
            "device_information",
            chosen("device_ip", *ADDRESSES),
            field("mac_address", "string", regex="02(-[0-9A-F]{2}){5}"),
            chosen("owner", *(" ".join(each) for each in PEOPLE)),
            namespace="device_information",
        ),
        "device_ip",
    ),
    "siem_logs": (
        record(
            "siem_logs",
            chosen("hostname", *ADDRESSES),
            chosen("action", "allow", "deny"),
            chosen("l4", "tcp"),
            chosen("access_group", "group-1", "group-2", "group-3", "admin"),
            {"name": "source", "type": record("source", *END_POINT, namespace="siem_logs")},
            {"name": "destination", "type": record("destination", *END_POINT, namespace="siem_logs")},
            namespace="siem_logs",
        ),
        "hostname",
    ),
    "shoes": (
        rows_of(
            record("shoe_product", field("id", "string"), field("brand", "string"), field("name", "string"),
                   field("sale_price", "int"), field("rating", "double"), namespace="shoes"),
            [
                {
                    "id": each,
                    "brand": ("Fern", "Granite", "Harbour")[number % 3],
                    "name": f"{('Trail', 'Road', 'Track')[number % 3]} {number + 1}",
                    "sale_price": 4995 + number * 1000,
                    "rating": number % 5 + 0.5,
                }
                for number, each in enumerate(SHOE_IDS)
            ],
        ),
        "id",
    ),
    "shoe_customers": (
        rows_of(
            record("shoe_customers", *(field(name, "string") for name in (
                "id", "first_name", "last_name", "email", "phone", "street_address", "state", "zip_code",
                "country", "country_code")), namespace="shoes"),
            [
                {
                    "id": each,
                    "first_name": PEOPLE[number][0],
                    "last_name": PEOPLE[number][1],
                    "email": mail_of(number),
                    "phone": f"555-010-{number:04}",
                    "street_address": f"{number + 1} Harbour Street",
                    "state": STATES[number % 7],
                    "zip_code": f"{10_000 + number * 131}",
                    "country": "Norway",
                    "country_code": "NO",
                }
                for number, each in enumerate(BUYER_IDS)
            ],
        ),
        "id",
    ),
    "shoe_orders": (
        record(
            "shoe_orders",
            field("order_id", "int", iteration={"start": 1000}),
            chosen("product_id", *SHOE_IDS),
            chosen("customer_id", *BUYER_IDS),
            moments("ts", 100_000),
            namespace="shoes",
        ),
        "order_id",
    ),
    "shoe_clickstream": (
        record(
            "shoe_clickstream",
            chosen("product_id", *SHOE_IDS),
            chosen("user_id", *BUYER_IDS),
            between("view_time", "int", 10, 120),
            field("page_url", "string", regex="https://www[.]example[.]com/product/[a-z]{5}"),
            chosen("ip", *ADDRESSES),
            moments("ts", 10_000),
            namespace="shoes",
        ),
        "product_id",
    ),
}  # fmt: skip
