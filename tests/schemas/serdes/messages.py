"""Protobuf messages for tests, made from texts: a file that imports another."""

from __future__ import annotations

import base64
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from barnabas.schemas.model import Reference, ResolvedReference
from barnabas.schemas.parsing import parse

ADDRESS = """syntax = "proto3";
package shop;
message Address { string street = 1; }
"""
ORDER = """syntax = "proto3";
package shop;
import "shop/address.proto";
import "google/protobuf/timestamp.proto";
message Customer { string name = 1; Address home = 2; }
message Order {
  int64 id = 1;
  Customer by = 2;
  google.protobuf.Timestamp at = 3;
  message Line { string sku = 1; uint32 count = 2; }
  repeated Line lines = 4;
}
"""
ORDER_2 = ORDER.replace("repeated Line lines = 4;", "repeated Line lines = 4; string note = 5;")


def classes(order: str = ORDER) -> dict[str, Any]:
    """Classes by name: Address, Customer, Order, Line."""
    pool = DescriptorPool()
    from google.protobuf import timestamp_pb2

    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    known = ResolvedReference(Reference("shop/address.proto", "a", 1), ADDRESS)
    for name, text, references in (
        ("shop/address.proto", ADDRESS, []),
        ("shop/order.proto", order, [known]),
    ):
        described = parse("PROTOBUF", text, references).formatted("serialized")
        file = FileDescriptorProto.FromString(base64.b64decode(described))
        file.name = name
        pool.Add(file)
    names = {
        "Address": "shop.Address",
        "Customer": "shop.Customer",
        "Order": "shop.Order",
        "Line": "shop.Order.Line",
    }
    return {short: GetMessageClass(pool.FindMessageTypeByName(full)) for short, full in names.items()}
