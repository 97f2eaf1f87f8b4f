"""The DSL: builder, streams, tables and groups."""
