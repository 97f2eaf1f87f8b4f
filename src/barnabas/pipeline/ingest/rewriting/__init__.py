"""Rows that were read before go through the zones again: replay, backfill, release."""
