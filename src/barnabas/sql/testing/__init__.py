"""Statements run without a broker and without Spark: `SqlTestDriver`."""

from barnabas.sql.testing.driver import SqlTestDriver, TestRow

__all__ = ["SqlTestDriver", "TestRow"]
