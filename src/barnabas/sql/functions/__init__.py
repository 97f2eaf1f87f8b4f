"""Built-in functions of SQL: their table, and what each computes in Python."""
