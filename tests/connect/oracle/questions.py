"""Random questions about converters and transforms: the same for a seed, as JSON that both sides read."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

STORAGE, CONVERTERS = "org.apache.kafka.connect.storage.", "org.apache.kafka.connect.converters."
JSON = "org.apache.kafka.connect.json.JsonConverter"
DATA = "org.apache.kafka.connect.data."
SCALARS = ("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes")
LOGICAL = {"Decimal": "bytes", "Date": "int32", "Time": "int32", "Timestamp": "int64"}
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
WORDS = ("", "a", "zwölf", "true", "17", "-3", "2026-11-18", "x,y", '"', "日本", "a b", "1.50", "NaN")
# Left out: `1,2` (Java reads 1 and forgets the rest), `null` (Java fails), `[1,2.5]` (Java writes 1.0). Empty
# and mixed arrays and maps have a schema of Java's without a type, which is none here: `written` is compared.
HEADERS = (
    "true", "false", "TRUE", "1", "127", "128", "-129", "32768", "2147483648", "9223372036854775807",
    "9223372036854775808", "1.5", "1e3", "-0.0", "0.1", "abc", '"quoted"', "[]", "[1,2]",
    '["a","b"]', "[1,\"a\"]", "{}", '{"a":1}', '{"a":1,"b":2}', '{"a":1,"b":"x"}', "2026-11-18",
    "12:30:00.000Z", "2026-11-18T12:30:00.000Z", "", " ", " 7", "7 ", "[1,", "{a:1}", "\\",
    "NaN", "Infinity", "0x10", "1L", "1f", "+5", "-", ".5", "5.", "[[1],[2]]", "[null]", "00012", "[1,null]",
)  # fmt: skip


def has_bytes(schema: dict[str, Any]) -> bool:
    """Bytes, whose text in Java is an address."""
    if schema["type"] == "bytes" and "name" not in schema:
        return True
    parts = [*schema.get("fields", ()), *(schema[each] for each in ("items", "values") if each in schema)]
    return any(has_bytes(each) for each in parts)


class Questions:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def all(self, count: int) -> list[dict[str, Any]]:
        makers = (self.with_schema, self.without_schema, self.number, self.transform, self.transform)
        found = [{"op": "header", "data": text} for text in HEADERS]
        return [*found, *(self.random.choice(makers)() for _ in range(count))]

    # -- converters --------------------------------------------------------------------------------

    def with_schema(self) -> dict[str, Any]:
        schema = self.struct(2) if self.random.random() < 0.8 else self.schema(1)
        settings = {
            "schemas.enable": "true",
            "replace.null.with.default": self.random.choice(["true", "false"]),
            "decimal.format": self.random.choice(["BASE64", "NUMERIC"]),
        }
        envelope = {"schema": schema, "payload": self.value(schema)}
        writers = [JSON, JSON, f"{STORAGE}StringConverter"]
        writer = self.random.choice(writers[:2] if has_bytes(schema) else writers)
        return {"op": "convert", "reader": JSON, "writer": writer, "settings": settings,
                "data": json.dumps(envelope, ensure_ascii=False)}  # fmt: skip

    def without_schema(self) -> dict[str, Any]:
        settings = {"schemas.enable": "false"}
        return {"op": "convert", "reader": JSON, "writer": JSON, "settings": settings,
                "data": json.dumps(self.anything(2), ensure_ascii=False)}  # fmt: skip

    def number(self) -> dict[str, Any]:
        """Bytes of number converters cannot be texts; those of texts and of booleans can."""
        text = self.random.choice(WORDS)
        return {"op": "convert", "reader": f"{STORAGE}StringConverter", "settings": {},
                "writer": self.random.choice([JSON, f"{STORAGE}StringConverter"]), "data": text}  # fmt: skip

    # -- schemas and values ------------------------------------------------------------------------

    def schema(self, depth: int) -> dict[str, Any]:
        kind = self.random.choice(["scalar", "scalar", "logical", "struct", "array", "map"])
        if depth <= 0 and kind in ("struct", "array", "map"):
            kind = "scalar"
        found: dict[str, Any]
        if kind == "struct":
            found = self.struct(depth - 1)
        elif kind == "array":
            found = {"type": "array", "items": self.schema(depth - 1)}
        elif kind == "map":
            found = {
                "type": "map",
                "keys": {"type": "string", "optional": False},
                "values": self.schema(depth - 1),
            }
        elif kind == "logical":
            name = self.random.choice(list(LOGICAL))
            found = {"type": LOGICAL[name], "name": DATA + name, "version": 1}
            if name == "Decimal":
                found["parameters"] = {"scale": str(self.random.choice([0, 2, 5]))}
        else:
            found = {"type": self.random.choice(SCALARS)}
        found["optional"] = self.random.random() < 0.4
        if kind == "scalar" and self.random.random() < 0.2:
            found["default"] = self.value({**found, "optional": False})
        return found

    def struct(self, depth: int) -> dict[str, Any]:
        fields = [{**self.schema(depth), "field": f"f{n}"} for n in range(self.random.randint(1, 5))]
        return {"type": "struct", "optional": False, "name": "test.Row", "fields": fields}

    def value(self, schema: dict[str, Any]) -> Any:
        chosen = self.random
        if schema.get("optional") and chosen.random() < 0.25:
            return None
        kind, name = schema["type"], schema.get("name", "").removeprefix(DATA)
        if kind == "struct":
            return {each["field"]: self.value(each) for each in schema["fields"]}
        if kind == "array":
            return [self.value(schema["items"]) for _ in range(chosen.randint(0, 3))]
        if kind == "map":  # one entry: Java's maps have an order of their own
            return {chosen.choice(WORDS): self.value(schema["values"])} if chosen.random() < 0.8 else {}
        if name == "Decimal":
            number = chosen.randint(-(10**12), 10**12)
            return (
                base64.b64encode(number.to_bytes(9, "big", signed=True).lstrip(b"\0") or b"\0").decode()
                if number > 0 and number.to_bytes(9, "big", signed=True).lstrip(b"\0")[0] < 128
                else "AA=="
            )
        if name == "Date":
            return chosen.randint(-20_000, 60_000)
        if name == "Time":
            return chosen.randint(0, 86_399_999)
        if name == "Timestamp":
            return chosen.randint(-(10**11), 4 * 10**12)
        if kind in BITS:
            bound = 2 ** (BITS[kind] - 1)
            return chosen.choice([0, 1, -1, bound - 1, -bound, chosen.randint(-bound, bound - 1)])
        if kind in ("float", "double"):
            return chosen.choice([0.0, -1.5, 0.1, 1e10, 123456.75, 1e-5, 3.0e38, chosen.uniform(-1e6, 1e6)])
        if kind == "boolean":
            return chosen.random() < 0.5
        if kind == "bytes":
            return base64.b64encode(chosen.randbytes(chosen.randint(0, 5))).decode()
        return chosen.choice(WORDS)

    def anything(self, depth: int) -> Any:
        chosen = self.random
        kind = chosen.choice(["text", "number", "truth", "list", "object"]) if depth else "text"
        if kind == "list":
            return [self.anything(depth - 1) for _ in range(chosen.randint(0, 3))]
        if kind == "object":
            return {chosen.choice(WORDS): self.anything(depth - 1)}
        if kind == "number":
            return chosen.choice([0, -1, 2**40, 1.5, 1e20, -0.25, 123456789])
        return {"truth": chosen.random() < 0.5, "null": None}.get(kind, chosen.choice(WORDS))

    # -- transforms --------------------------------------------------------------------------------

    def transform(self) -> dict[str, Any]:
        has_schema = self.random.random() < 0.75
        schema = self.struct(1)
        payload = self.value(schema)
        names = [each["field"] for each in schema["fields"]]
        kinds = self.kinds(names)
        if not has_schema:  # times without a schema cannot be written by Java's JsonConverter
            kinds = [each for each in kinds if each[1].get("target.type", "") in ("", "string", "unix")]
            # Java 17 prints a digit more of some floats than are needed.
            kinds = [each for each in kinds if not each[1].get("spec", "").endswith("float32")]
        # Masked decimals fail in Java, whose zero has no scale.
        decimals = {each["field"] for each in schema["fields"] if each.get("name", "").endswith("Decimal")}
        kinds = [each for each in kinds if "Mask" not in each[0] or each[1]["fields"] not in decimals]
        kind, settings = self.random.choice(kinds)
        data = {"schema": schema, "payload": payload} if has_schema else payload
        return {"op": "transform", "type": kind, "settings": settings, "schemas": has_schema,
                "data": json.dumps(data, ensure_ascii=False)}  # fmt: skip

    def kinds(self, names: list[str]) -> list[tuple[str, dict[str, str]]]:
        chosen = self.random
        one, two = chosen.choice(names), chosen.choice([*names, "none"])
        side = chosen.choice(["Value", "Value", "Key"])
        casts = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
        keep = {"replace.null.with.default": chosen.choice(["true", "false"])}
        target = chosen.choice(["string", "unix", "Date", "Time", "Timestamp"])
        return [
            (f"Cast${side}", {"spec": f"{one}:{chosen.choice(casts)}", **keep}),
            (f"ExtractField${side}", {"field": two, **keep}),
            (f"Flatten${side}", {"delimiter": chosen.choice([".", "_"])}),
            (f"HoistField${side}", {"field": "whole"}),
            (f"InsertField${side}", {"topic.field": "topic", "partition.field": "part", "static.field": "s",
                                     "static.value": "v", "timestamp.field": "at!", **keep}),
            (f"MaskField${side}", {"fields": one, **keep}),
            (f"MaskField${side}", {"fields": one, "replacement": chosen.choice(["7", "x"]), **keep}),
            (f"ReplaceField${side}", {"exclude": two, **keep}),
            (f"ReplaceField${side}", {"include": f"{one},{two}", "renames": f"{one}:other", **keep}),
            (f"SetSchemaMetadata${side}", {"schema.name": "new.Name", "schema.version": "3"}),
            (f"TimestampConverter${side}", {"field": one, "target.type": target,
                                            "format": "yyyy-MM-dd HH:mm:ss.SSS", **keep}),
            ("ValueToKey", {"fields": f"{one}", **keep}),
            ("InsertHeader", {"header": "h", "value.literal": chosen.choice(HEADERS[:17])}),
            (f"HeaderFrom${side}", {"fields": one, "headers": "h",
                                    "operation": chosen.choice(["move", "copy"]), **keep}),
            ("RegexRouter", {"regex": "(.*)-(.*)", "replacement": "$2.$1"}),
            ("TimestampRouter", {"timestamp.format": "yyyyMMddHH"}),
        ]  # fmt: skip
