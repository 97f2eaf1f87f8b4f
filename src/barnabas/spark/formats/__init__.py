"""Keys and values as typed columns: JSON, CSV, text, numbers, Avro, Protocol buffers."""
