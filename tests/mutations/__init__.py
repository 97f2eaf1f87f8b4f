"""Bugs planted in the source of the core, one at a time: the tests of the module must notice each."""
