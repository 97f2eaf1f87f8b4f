"""Protobuf schemas: text and descriptors read, printed in canonical form, checked and compared."""
