"""Imports what registers forms over columns, so that tasks of persistent queries run by them."""

from barnabas.sql.columns import aggregates, expressions, formats

FORMS = (aggregates, expressions, formats)
